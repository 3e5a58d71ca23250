/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_backend.h - the one interface between yoctuned and a compute backend.
 *
 * A backend is a table of functions (struct yt_api) obtained from the only
 * symbol a backend library exports, yt_get_api(). The CPU backend is linked
 * into yoctuned; libyoctune_cuda.so is opened with dlopen(RTLD_NOW|RTLD_LOCAL)
 * and never closed, because a GPU driver does not survive being unloaded.
 *
 *
 * THE MODEL
 *
 *   device   one processor with its memory. Opened by index.
 *   buffer   memory owned by the backend, named by a 64-bit id. The id carries
 *            a generation: an id used after its buffer was freed is
 *            YT_E_INVALID, not another buffer's memory.
 *   stream   an order of execution. Lists submitted to one stream run one after
 *            another; two streams have no order between them.
 *   list     an array of struct yt_cmd. A command is flat: ids and numbers, no
 *            pointers into the caller. So a list is checked completely before
 *            anything runs, may be logged or sent to another process, and costs
 *            one call however long it is.
 *   event    a mark in a stream: for time between two marks, and for one stream
 *            to wait for another.
 *   graph    lists that were checked and recorded once, to be launched often.
 *   pool     buffers cut from larger allocations, with a limit and statistics.
 *   module   kernels that were compiled elsewhere (PTX, cubin); their ids are
 *            used by YT_OP_LAUNCH.
 *
 *
 * RULES
 *
 *   Errors     Every function that can fail returns a status, which it also
 *              writes, with a message, to the caller's struct yt_error when
 *              that is not NULL. There is no per-thread error state. Wrong
 *              arguments are YT_E_INVALID and have no effect: not one command
 *              of a list runs when any of them is wrong.
 *   Sticky     error.sticky = 1 means that the device answers this way until
 *              the process ends. The only remedy is another process.
 *   Threads    All functions may be called from any thread. Calls that name the
 *              same stream must not overlap.
 *   Blocking   Only the functions that say so block, and none blocks past its
 *              deadline.
 *   Versions   abi_major differs: refused. Functions and fields are only ever
 *              appended; struct_size tells which of them exist. A caller that
 *              needs a function beyond struct_size does without it, and so does
 *              one that finds NULL: only device_* to event_elapsed, the functions
 *              of 1.0, are always there. `ops` has a bit for each operation.
 *              1.0  devices, buffers, streams, lists, events
 *              1.1  arguments of all operations, stream options, waiting for
 *                   events, graphs, pools, registration, prefetch and advice,
 *                   choice of memory, statistics, modules and kernels, launch
 *                   configuration, peer copies, fault injection
 *              1.2  chains as modules of the CPU backend
 *   Sizes      Structs that may grow start with their size, set by the caller;
 *              what is beyond it is not written, and read as 0.
 *   Types      Fixed width, native endianness. Addresses that a caller may
 *              dereference are void *; all others are uint64_t.
 */
#ifndef YT_BACKEND_H
#define YT_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define YT_ABI_MAJOR 1u
#define YT_ABI_MINOR 2u

/* ---- status ------------------------------------------------------------- */

typedef int32_t yt_status;

enum {
	YT_OK = 0,
	YT_E_INVALID = 1,       /* the call is wrong; nothing ran                  */
	YT_E_OOM = 2,           /* no memory of the wanted kind                    */
	YT_E_NOT_SUPPORTED = 3, /* this backend or device cannot; says what can    */
	YT_E_TIMEOUT = 4,       /* deadline passed; the work may still be running  */
	YT_E_DEVICE_LOST = 5,   /* gone from the bus, or the driver says so        */
	YT_E_KERNEL_FAULT = 6,  /* illegal address and the like; always sticky     */
	YT_E_ABI = 7,           /* versions do not fit                             */
	YT_E_NO_BACKEND = 8,    /* no driver or no device on this machine          */
	YT_E_NOT_READY = 9,     /* not finished yet                                */
	YT_E_BUSY = 10,         /* in use by submitted work, or children are open  */
	YT_E_IO = 11,           /* the operating system refused                    */
	YT_E_CANCELLED = 12,
	YT_E_INTERNAL = 13      /* a defect in the backend; see native             */
};

typedef struct yt_error {
	yt_status code;
	uint32_t sticky; /* 1: this device fails until the process ends          */
	int32_t native;  /* cudaError_t or errno; 0: none                        */
	char msg[240];   /* what, where, what helps; always NUL-terminated       */
} yt_error;

/* ---- devices ------------------------------------------------------------ */

typedef struct yt_device yt_device;
typedef struct yt_stream yt_stream;

/* What is not known is 0; none of these has 0 as a meaningful value. The
 * caller sets `size` to sizeof(yt_device_info); no more than that is written. */
typedef struct yt_device_info {
	uint32_t size;
	int32_t cc_major, cc_minor; /* CUDA compute capability                   */
	uint32_t sm_count;          /* multiprocessors; CPU: cores of the machine */
	uint32_t integrated;        /* 1: CPU and device share physical memory   */
	uint32_t concurrent_managed;
	uint32_t host_register;
	int32_t driver_version; /* CUDA: 1000 * major + 10 * minor               */
	uint64_t mem_total, mem_free; /* bytes; CPU: physical memory             */
	uint64_t l2;                  /* bytes of last-level cache on the device */
	char name[64];
	/* 1.1. The first eight are answers to yes or no, 0 also for "no". */
	uint32_t unified_addressing, managed, pageable_access, map_host, mempools;
	uint32_t copy_engines;
	uint32_t direct_managed; /* 1: the CPU reads managed memory in place      */
	uint32_t reserved;
	uint32_t warp, max_threads_per_block, threads_per_sm, blocks_per_sm, regs_per_sm, regs_per_block;
	uint64_t smem_per_sm, smem_per_block, smem_per_block_optin, smem_reserved; /* bytes */
	uint32_t clock_khz, mem_clock_khz, mem_bus_bits; /* nominal               */
	uint32_t pci_domain, pci_bus, pci_device;
	uint8_t uuid[16];
} yt_device_info;

/* ---- buffers ------------------------------------------------------------ */

enum {
	YT_MEM_AUTO = 0,   /* mapped where memory is shared, else device          */
	YT_MEM_DEVICE = 1, /* device only: host address is NULL, on every backend */
	YT_MEM_PINNED = 2, /* host memory the device copies from without staging  */
	YT_MEM_MAPPED = 3, /* one memory, both addresses                          */
	YT_MEM_HOST = 4,   /* ordinary host memory                                */
	YT_MEM_MANAGED = 5,   /* the driver moves pages; only where it may be used
	                         by both sides at once, else YT_E_NOT_SUPPORTED   */
	YT_MEM_REGISTERED = 6 /* foreign pages, from buf_register; not for alloc  */
};

#define YT_ALIGN_MIN 256u       /* every buffer starts on this boundary       */
#define YT_ALIGN_MAX 2097152u   /* 2 MiB                                      */

typedef uint64_t yt_buf_id; /* 0 is never a buffer */

/* The caller sets `size`; buf_alloc fills the rest. */
typedef struct yt_buffer {
	uint32_t size;
	uint32_t mode; /* the mode chosen, never YT_MEM_AUTO                      */
	yt_buf_id id;
	void *host;      /* where the CPU reads and writes it; NULL: it cannot    */
	uint64_t device; /* the device's address, for interoperation              */
	uint64_t bytes;
} yt_buffer;

/* Bytes [off, off + len) of a buffer.
 *
 * buf = 0 names host memory of the caller: off is its address. Backends with
 * YT_CAP_HOST_RANGES take it; the memory must stay valid until the list has
 * finished. The CUDA backend refuses it, because a copy from pageable memory
 * quietly is not asynchronous. */
typedef struct yt_range {
	yt_buf_id buf;
	uint64_t off;
	uint64_t len;
} yt_range;

/* ---- commands ----------------------------------------------------------- */

enum {
	YT_OP_COPY = 1,       /* dst <- src[0]; equal len, no overlap              */
	YT_OP_MEMSET = 2,     /* dst <- byte `value`                               */
	YT_OP_PREPROCESS = 3, /* dst <- tensor of the frame in src; uses `pre`     */
	YT_OP_REDUCE = 4,     /* dst <- one float of src[0]; `value` = YT_REDUCE_* */
	YT_OP_RECORD = 5,     /* event `event` marks this point                    */
	/* 1.1 */
	YT_OP_WAIT = 6,     /* go on when the last submitted record of `event` passed;
	                       at once if there was none                            */
	YT_OP_SIGNAL = 7,   /* 4 bytes at dst <- `value`, visible to the CPU; wakes
	                       futex waiters where the CPU did the work             */
	YT_OP_LAUNCH = 8,   /* a kernel of a module; uses `launch`                 */
	YT_OP_DECODE = 9,   /* dst: boxes <- detector's output in src[0]; `decode` */
	YT_OP_NMS = 10,     /* dst: boxes <- boxes in src[0]; uses `nms`           */
	YT_OP_SOFTMAX = 11, /* dst <- softmax of each row of src[0]; uses `rows`   */
	YT_OP_ARGMAX = 12,  /* dst: int32 a row; uses `rows`                       */
	YT_OP_TOPK = 13,    /* dst: k yt_ranked a row; uses `rows`                 */
	YT_OP_MAP = 14,     /* dst <- chain of steps on src[0]; uses `map`         */
	YT_OP_CONVERT = 15, /* dst <- src[0] in another type or layout; `convert`  */
	YT_OP_GEMM = 16,    /* dst <- src[0] * src[1] + ...; uses `gemm`           */
	YT_OP_ROI = 17,     /* dst <- a tensor a box of the frame in src; `roi`    */
	YT_OP_DIFF = 18     /* dst: yt_motion <- planes src[0], src[1]; `diff`     */
};
#define YT_OP_LAST YT_OP_DIFF

/* Element types. Ranges of tensors start on a whole element. */
enum { YT_F32 = 0, YT_F16 = 1, YT_BF16 = 2, YT_I8 = 3, YT_U8 = 4, YT_I32 = 5 };
enum { YT_LAYOUT_NCHW = 0, YT_LAYOUT_NHWC = 1 };

/* I420 and NV12: half the luma's resolution both ways. YUYV and UYVY: one plane,
 * 4 bytes for two pixels, pitch at least 4 * ((width + 1) / 2). RGB and BGR: one
 * plane of 3 bytes a pixel. GRAY: one plane, full range. */
enum {
	YT_FORMAT_NV12 = 0, YT_FORMAT_I420 = 1,
	YT_FORMAT_YUYV = 2, YT_FORMAT_UYVY = 3, YT_FORMAT_RGB = 4, YT_FORMAT_BGR = 5, YT_FORMAT_GRAY = 6 /* 1.1 */
};
enum { YT_FIT_STRETCH = 0, YT_FIT_LETTERBOX = 1 };
/* GRAY: one channel. From YUV its luma, stretched to full range; from RGB 0.299 R + 0.587 G + 0.114 B. */
enum { YT_COLOR_RGB = 0, YT_COLOR_BGR = 1, YT_COLOR_GRAY = 2 /* 1.1 */ };
enum { YT_CHROMA_NEAREST = 0, YT_CHROMA_BILINEAR = 1 };
enum { YT_MATRIX_BT601_LIMITED = 0, YT_MATRIX_BT709_LIMITED = 1, YT_MATRIX_BT601_FULL = 2 };

#define YT_MAX_SIDE 16384u /* pixels, of frames and tensors */

/* One frame to one tensor: crop, resize (bilinear luma, RGB or gray), convert,
 * clamp to 0..255, then (v/255 - mean) / std, then to `type`: floats are rounded
 * to nearest even; integers too, and saturate.
 *
 * A batch is several of these commands in a row, each writing its part of the
 * tensor; sources may differ in size and format. A backend may run such commands
 * as one kernel when out_w, out_h, color, type and layout agree.
 *
 * Sample positions: the centre of output column i of an inner width w maps to
 * crop.x + (i + 1/2) * crop.w / w - 1/2 in luma samples, clamped to the crop;
 * rows likewise. Chroma samples lie centred between their four luma samples, in YUYV
 * and UYVY between their two.
 * Source bytes outside the crop's samples are never read.
 *
 * Planes: src[0] luma; NV12: src[1] U and V interleaved; I420: src[1] U,
 * src[2] V. Chroma planes have (width + 1) / 2 by (height + 1) / 2 samples. */
typedef struct yt_preprocess {
	uint32_t format, fit, color, chroma, matrix;
	uint32_t width, height;                  /* frame, pixels                */
	uint32_t pitch[3];                       /* bytes per row; 0: tight      */
	uint32_t crop_x, crop_y, crop_w, crop_h; /* pixels; all 0: whole frame   */
	uint32_t out_w, out_h;                   /* tensor, pixels               */
	uint32_t pad;                            /* letterbox border, 0..255     */
	float mean[3], std[3];                   /* per channel, in 0..1 units   */
	uint8_t type, layout;                    /* 1.1: YT_F32 ..., YT_LAYOUT_* */
	uint16_t reserved;                       /* 0                            */
} yt_preprocess;

/* Reductions of float32 are computed in one fixed tree (yt_math.h), so the
 * result does not depend on threads, blocks or backend. Any NaN gives NaN.
 * Of nothing: sum 0, min +inf, max -inf. */
enum { YT_REDUCE_SUM = 0, YT_REDUCE_MIN = 1, YT_REDUCE_MAX = 2, YT_REDUCE_MEAN = 3 /* 1.1; of nothing: NaN */ };

/* 1.1. All 0: float32, the fixed tree. YT_REDUCE_FAST allows another order of
 * additions, which may differ from run to run. */
enum { YT_REDUCE_FAST = 1u << 0 };
typedef struct yt_reduce {
	uint32_t type; /* of src: YT_F32, YT_F16, YT_BF16; the result is float32  */
	uint32_t flags;
} yt_reduce;

/* A kernel of a module. It gets, in this order, the device addresses of dst and
 * of src[0..ranges-2], then the params; a parameter shorter than 8 bytes takes
 * the low bytes of its word. What a kernel touches beyond its ranges is not
 * checked: a module is trusted. */
typedef struct yt_launch {
	uint64_t kernel;                /* from kernel_get                        */
	uint32_t grid[3], block[3];     /* each at least 1                        */
	uint32_t shared;                /* bytes of dynamic shared memory         */
	uint16_t ranges;                /* 0: none, 1: dst, 2..4: and src         */
	uint16_t params;                /* 0..6                                   */
	uint64_t param[6];
} yt_launch;

/* What detectors find. `count` boxes follow the header, best first; equal scores
 * by rising `anchor`. */
typedef struct yt_box {
	float x0, y0, x1, y1; /* pixel edges: a pixel is [i, i + 1)               */
	float score;
	int32_t cls;    /* class, from 0                                          */
	int32_t anchor; /* index in the detector's output                         */
	uint32_t reserved;
} yt_box;
typedef struct yt_boxes {
	uint32_t count; /* boxes that follow                                      */
	uint32_t found; /* boxes there were before `max` cut                      */
	uint32_t reserved[6];
} yt_boxes;
#define YT_BOXES_BYTES(max) (sizeof(yt_boxes) + (uint64_t)(max) * sizeof(yt_box))
#define YT_MAX_BOXES 16384u

/* Output of a YOLO detector: centre x, centre y, width, height in tensor pixels,
 * then class scores. A box is kept when its best class (lowest index of equals)
 * scores at least `threshold`; NaN never does. It is then brought to the frame:
 * x = x * scale_x + shift_x, clamped to [0, limit_x], y alike. */
enum {
	YT_HEAD_PLANES = 0,     /* [4 + classes][anchors]: v8 and newer           */
	YT_HEAD_ROWS = 1,       /* [anchors][4 + classes]                         */
	YT_HEAD_OBJECTNESS = 2  /* [anchors][5 + classes]: v5; score = obj * class */
};
typedef struct yt_decode {
	uint32_t head, type;        /* type: YT_F32, YT_F16                       */
	uint32_t anchors, classes;
	uint32_t max;               /* boxes kept, 1..YT_MAX_BOXES                */
	uint32_t batch;             /* images, one after another in src and dst; dst: YT_BOXES_BYTES(max) each */
	float threshold;
	float scale_x, scale_y, shift_x, shift_y, limit_x, limit_y;
} yt_decode;

/* Greedy: a box is dropped when its intersection over union with a kept box of
 * higher rank (of the same class, unless YT_NMS_AGNOSTIC) is above `iou`. Rank is by
 * falling score, then rising anchor, then place; the boxes may come in any order. */
enum { YT_NMS_AGNOSTIC = 1u << 0 };
typedef struct yt_nms {
	uint32_t flags;
	uint32_t in_max, max;       /* room in src and in dst, boxes an image     */
	uint32_t batch;
	float iou;                  /* 0..1                                       */
} yt_nms;

/* Rows of `cols` elements, `stride` elements from one to the next (0: cols).
 * SOFTMAX writes rows of the same stride in `out`. ARGMAX and TOPK take the
 * lowest index of equals, and NaN as above all numbers. */
typedef struct yt_ranked {
	float value;
	int32_t index;
} yt_ranked;
typedef struct yt_rows {
	uint32_t in, out;           /* YT_F32, YT_F16, YT_BF16; out: SOFTMAX only */
	uint32_t rows, cols, stride;
	uint32_t k;                 /* TOPK: 1..32, at most cols                  */
} yt_rows;

/* x runs through the steps in float32, each rounded once an operation. The
 * channel of element i is (i / inner) % channels; `src[1]` has a float32 per
 * channel for CH_MUL, `src[2]` for CH_ADD. YT_MAP_ADD_SRC and YT_MAP_MUL_SRC take
 * element i of src[1], of type `in`; one chain uses src[1] one way. */
enum {
	YT_MAP_ADD = 1,       /* x + a            */
	YT_MAP_MUL = 2,       /* x * a            */
	YT_MAP_SCALE = 3,     /* x * a + b        */
	YT_MAP_CLAMP = 4,     /* min(max(x, a), b); NaN stays */
	YT_MAP_RELU = 5,      /* max(x, 0); NaN stays */
	YT_MAP_LEAKY = 6,     /* x < 0 ? x * a : x */
	YT_MAP_ABS = 7,
	YT_MAP_NEG = 8,
	YT_MAP_SQRT = 9,
	YT_MAP_EXP = 10,
	YT_MAP_LOG = 11,
	YT_MAP_SIGMOID = 12,
	YT_MAP_TANH = 13,
	YT_MAP_GELU = 14,     /* x * Phi(x), by erf */
	YT_MAP_SILU = 15,     /* x * sigmoid(x)   */
	YT_MAP_CH_MUL = 16,
	YT_MAP_CH_ADD = 17,
	YT_MAP_ADD_SRC = 18,
	YT_MAP_MUL_SRC = 19
};
#define YT_MAX_STEPS 6u
typedef struct yt_step {
	uint32_t op;
	float a, b;
} yt_step;
typedef struct yt_map {
	uint32_t steps;             /* 1..YT_MAX_STEPS                            */
	uint8_t in, out;            /* element types                              */
	uint16_t reserved;
	uint32_t channels, inner;   /* 0 without CH_ steps                        */
	yt_step step[YT_MAX_STEPS];
} yt_map;

/* Types: floats to each other, rounded to nearest even. Floats to I8, U8, I32:
 * saturate(round(x / scale) + zero), NaN to 0; back: (q - zero) * scale. With
 * YT_CONVERT_CHANNEL_SCALE src[1] has a float32 scale for each channel instead. */
enum { YT_CONVERT_CHANNEL_SCALE = 1u << 0 };
typedef struct yt_convert {
	uint8_t in, out, in_layout, out_layout;
	uint32_t flags;
	uint32_t n, c, h, w;        /* elements: their product                    */
	float scale;                /* not 0                                      */
	int32_t zero;
} yt_convert;

/* C = act(alpha * A * B + beta * C + bias). A is m by k, B k by n, C m by n, all
 * row-major with lda, ldb, ldc elements a row (0: tight); with YT_GEMM_TRANS_A the
 * memory of A holds its transpose, k by m; B alike. src[2]: bias of n float32, or
 * of length 0. Sums are float32, of YT_I8 int32; the order is not specified. Without
 * beta C is not read. To I32 with bias or act: in float32, then rounded. */
enum { YT_GEMM_TRANS_A = 1u << 0, YT_GEMM_TRANS_B = 1u << 1, YT_GEMM_OWN = 1u << 2 /* not a vendor's library */ };
enum { YT_ACT_NONE = 0, YT_ACT_RELU = 1, YT_ACT_GELU = 2, YT_ACT_SILU = 3 };
typedef struct yt_gemm {
	uint32_t m, n, k;
	uint32_t lda, ldb, ldc;
	uint8_t type, out;          /* of A and B: F32, F16, BF16, I8; of C       */
	uint8_t act, reserved;
	uint32_t flags;
	float alpha, beta;          /* I8: 1 and 0, out I32 or F32                */
	uint32_t batch;             /* products; 0 means 1                        */
	uint32_t reserved2;
	uint64_t stride_a, stride_b, stride_c; /* elements from product to product */
} yt_gemm;

/* One tensor of out_h by out_w for each of the boxes in `boxes` (a yt_boxes of
 * `max`), in their order, one after another in dst; those beyond count are filled
 * with 0. A box is clamped to the frame and widened to whole pixels; one without area
 * gives the border. The
 * frame is in src as for YT_OP_PREPROCESS. */
typedef struct yt_roi {
	yt_range boxes;
	uint8_t format, fit, color, chroma, matrix, type, layout, pad;
	uint32_t width, height;
	uint32_t pitch[3];
	uint32_t out_w, out_h;
	uint32_t max;
	float mean[3], std[3];
} yt_roi;

/* Difference of two planes of bytes. dst: a yt_motion, then, if `block` is not 0,
 * one uint32 a block of block by block samples, row by row: the sum of its
 * absolute differences. */
typedef struct yt_motion {
	uint64_t sum;               /* of absolute differences                    */
	uint32_t changed;           /* samples that differ by more than threshold */
	uint32_t peak;              /* largest difference                         */
} yt_motion;
typedef struct yt_diff {
	uint32_t width, height;
	uint32_t pitch[2];          /* 0: tight                                   */
	uint32_t threshold;         /* 0..255                                     */
	uint32_t block;             /* 0, or 4..256                               */
} yt_diff;

/* The launch configuration of one command, in `value` of those operations that use it
 * for nothing else and have a kernel: 0 keeps the device's (kernel_config), as does a
 * half that is 0. A backend of before ignores it. */
#define YT_CONFIG(block, tile) ((uint32_t)(block) | (uint32_t)(tile) << 16)

/* `op` says which member of the union counts; the rest of it is 0. */
typedef struct yt_cmd {
	uint32_t op;
	uint32_t value;
	uint64_t event;
	yt_range dst;
	yt_range src[3];
	union {
		yt_preprocess pre;
		/* 1.1 */
		yt_reduce reduce;
		yt_launch launch;
		yt_decode decode;
		yt_nms nms;
		yt_rows rows;
		yt_map map;
		yt_convert convert;
		yt_gemm gemm;
		yt_roi roi;
		yt_diff diff;
		uint8_t args[96];
	};
} yt_cmd;

#define YT_MAX_CMDS 256u /* in one list */

/* ---- streams (1.1) ------------------------------------------------------ */

/* On a backend with YT_CAP_SYNCHRONOUS a list runs in the calling thread, which
 * is the quickest way, unless the stream is YT_STREAM_QUEUED, has lists waiting,
 * or the list waits for an event that has not passed: then threads of the device
 * run it, streams of lower `priority` first. Other backends always queue. */
enum { YT_STREAM_QUEUED = 1u << 0 };
typedef struct yt_stream_options {
	uint32_t size;
	int32_t priority; /* as for stream_create                                 */
	uint32_t flags;
	uint32_t reserved;
	char name[16]; /* NUL-terminated; "" is fine. What stage= in faults means */
} yt_stream_options;

typedef struct yt_open_options {
	uint32_t size;
	uint32_t threads;   /* CPU: threads for queued lists; 0: one a core       */
	const char *faults; /* NULL, or as for fault_inject, and "init:fail"      */
} yt_open_options;
#define YT_MAX_QUEUED 1024u /* lists a stream holds; then YT_E_BUSY */

/* ---- memory (1.1) ------------------------------------------------------- */

enum { YT_POOL_NO_COALESCE = 1u << 0 }; /* for measuring what joining is worth */
typedef struct yt_pool yt_pool;
typedef struct yt_pool_options {
	uint32_t size;
	uint32_t mode;  /* YT_MEM_*; AUTO is decided once                         */
	uint64_t max;   /* bytes the pool may take from the device; 0: no limit   */
	uint64_t slab;  /* bytes taken at a time; 0: 32 MiB                       */
	uint32_t flags;
	uint32_t reserved;
} yt_pool_options;

typedef struct yt_pool_stats {
	uint32_t size;
	uint32_t mode;
	uint64_t used;         /* bytes handed out, rounded to YT_ALIGN_MIN       */
	uint64_t reserved;     /* bytes taken from the device                     */
	uint64_t largest_free; /* bytes in one piece                              */
	uint64_t peak;         /* of used                                         */
	uint64_t allocs, frees;
	uint64_t blocks_free;  /* pieces; 1 - largest_free / (reserved - used) is fragmentation */
	uint64_t slabs;
	uint64_t max;
	uint64_t deferred;     /* bytes freed that a stream still orders          */
} yt_pool_stats;

/* Bytes moved and held, since the device was opened. */
typedef struct yt_mem_stats {
	uint32_t size;
	uint32_t reserved;
	uint64_t bytes[8], peak[8], allocs[8]; /* by YT_MEM_*; pools count as reserved */
	uint64_t total, total_peak;
	uint64_t h2d, d2h, d2d, h2h, p2p;      /* bytes of copies by direction     */
	uint64_t pageable_copies, pageable_bytes; /* staged by a driver, or would be */
} yt_mem_stats;

/* Why YT_MEM_AUTO became what it is, and why advice did nothing. */
enum {
	YT_WHY_ASKED = 0,          /* done as asked                               */
	YT_WHY_INTEGRATED = 1,     /* one memory: mapped saves every copy         */
	YT_WHY_DISCRETE = 2,       /* own memory: the bus is slower than it       */
	YT_WHY_CPU_NEVER = 3,      /* the CPU does not touch it                   */
	YT_WHY_NO_CONCURRENT = 4,  /* no concurrent managed access on this device */
	YT_WHY_NO_MANAGED = 5,     /* no managed memory on this device            */
	YT_WHY_NOT_MANAGED = 6,    /* the buffer's pages do not move              */
	YT_WHY_HOST = 7,           /* the CPU backend: memory is memory           */
	YT_WHY_STAGING = 8,        /* streamed once: pinned for the copy engine   */
	YT_WHY_NO_MAP = 9,         /* the device cannot map host memory           */
	YT_WHY_NO_REGISTER = 10    /* the device cannot use foreign pages         */
};
enum { YT_CPU_NEVER = 0, YT_CPU_READS = 1, YT_CPU_WRITES = 2, YT_CPU_BOTH = 3 };

typedef struct yt_mem_choice {
	uint32_t size;
	uint32_t mode; /* never AUTO                                              */
	uint32_t why;
	uint32_t allowed; /* bit 1 << YT_MEM_*: modes this device has             */
	char text[160];
} yt_mem_choice;

enum {
	YT_ADVISE_READ_MOSTLY = 1, /* no device writes it                         */
	YT_ADVISE_PREFER_DEVICE = 2,
	YT_ADVISE_PREFER_HOST = 3,
	YT_ADVISE_NORMAL = 4
};
enum { YT_TO_DEVICE = 0, YT_TO_HOST = 1 };

/* ---- modules and kernels (1.1) ------------------------------------------ */

typedef struct yt_module yt_module;
typedef struct yt_graph yt_graph;

typedef struct yt_kernel_info {
	uint32_t size;
	uint32_t registers;      /* a thread                                      */
	uint32_t max_threads;    /* a block                                       */
	uint32_t binary_version; /* 10 * major + minor                            */
	uint64_t shared, local, constant; /* bytes: static, a thread, module      */
} yt_kernel_info;

/* How a built-in kernel is launched; see kernel_config. On the CPU only gemm uses it:
 * `block` rows by `tile` columns of the second matrix stay in its cache. */
typedef struct yt_kernel_config {
	uint32_t size;
	uint32_t block; /* threads a block; 0: built-in                           */
	uint32_t tile;  /* kernel's own unit; 0: built-in                         */
	uint32_t stages;
} yt_kernel_config;

enum {
	YT_PEER_SAME = 1u << 0,    /* one device                                  */
	YT_PEER_DIRECT = 1u << 1,  /* the driver says so                          */
	YT_PEER_CHECKED = 1u << 2, /* and data arrived unchanged                  */
	YT_PEER_STAGED = 1u << 3   /* through host memory; always works           */
};

/* ---- the table ---------------------------------------------------------- */

enum {
	YT_CAP_HOST_RANGES = 1u << 0, /* ranges with buf = 0 are accepted        */
	YT_CAP_SYNCHRONOUS = 1u << 1, /* submit may run the list itself          */
	YT_CAP_FAULTS = 1u << 2,      /* fault_inject does something             */
	YT_CAP_MODULES = 1u << 3,     /* module_load takes PTX and cubin         */
	YT_CAP_VIRTUAL = 1u << 4,     /* devices beyond device_count may be opened,
	                                 up to YT_MAX_VIRTUAL: they share the CPU */
	YT_CAP_CHAINS = 1u << 5       /* 1.2: module_load takes chains (yt_chain.h) */
};
#define YT_MAX_VIRTUAL 16u

typedef struct yt_api {
	uint32_t struct_size; /* bytes of this table the backend filled           */
	uint32_t abi_major, abi_minor;
	uint32_t caps;
	const char *name;     /* "cpu", "cuda"                                    */
	const char *build_id; /* version and compiler, for bug reports            */

	/* YT_E_NO_BACKEND, with the reason, when there is none. */
	yt_status (*device_count)(uint32_t *n, yt_error *err);

	/* May take long (a CUDA context: hundreds of ms). */
	yt_status (*device_open)(uint32_t index, yt_device **out, yt_error *err);
	yt_status (*device_info)(yt_device *dev, yt_device_info *info, yt_error *err);

	/* The sticky state, without launching anything. YT_OK: usable. */
	yt_status (*device_health)(yt_device *dev, yt_error *err);

	/* YT_E_BUSY while streams, buffers or events of it exist. */
	yt_status (*device_close)(yt_device *dev, yt_error *err);

	/* `align` is a power of two up to YT_ALIGN_MAX, or 0. Contents are
	 * undefined. Not for the frame path: allocate at start. */
	yt_status (*buf_alloc)(yt_device *dev, uint32_t mode, uint64_t bytes, uint64_t align, yt_buffer *out,
			       yt_error *err);

	/* YT_E_BUSY while a list that names it is running. */
	yt_status (*buf_free)(yt_device *dev, yt_buf_id id, yt_error *err);

	/* priority: 0 normal, lower runs first; clamped to what the device has. */
	yt_status (*stream_create)(yt_device *dev, int32_t priority, yt_stream **out, yt_error *err);

	/* YT_E_BUSY while work is running. */
	yt_status (*stream_destroy)(yt_stream *s, yt_error *err);

	/* Checks all n commands, then queues them in order. Never waits for the
	 * device, unless YT_CAP_SYNCHRONOUS. */
	yt_status (*submit)(yt_stream *s, const yt_cmd *cmds, uint32_t n, yt_error *err);

	/* Waits at most timeout_ns for all that was submitted. YT_E_NOT_READY with
	 * timeout 0, YT_E_TIMEOUT otherwise. A fault of submitted work is reported
	 * here. */
	yt_status (*stream_poll)(yt_stream *s, uint64_t timeout_ns, yt_error *err);

	yt_status (*event_create)(yt_device *dev, uint64_t *event, yt_error *err);
	yt_status (*event_destroy)(yt_device *dev, uint64_t event, yt_error *err);

	/* Device time from event a to event b. YT_E_NOT_READY until both passed. */
	yt_status (*event_elapsed)(yt_device *dev, uint64_t a, uint64_t b, uint64_t *ns, yt_error *err);

	/* ---- 1.1 ---- */

	uint64_t ops; /* bit 1 << YT_OP_*: this backend has the operation, else it
	                 is YT_E_NOT_SUPPORTED in a list                          */

	yt_status (*stream_open)(yt_device *dev, const yt_stream_options *opt, yt_stream **out, yt_error *err);

	/* Waits at most timeout_ns until the last submitted record of the event has
	 * passed. YT_E_NOT_READY with timeout 0, YT_E_TIMEOUT otherwise;
	 * YT_E_INVALID when it was never recorded. */
	yt_status (*event_poll)(yt_device *dev, uint64_t event, uint64_t timeout_ns, yt_error *err);

	/* Between begin and end, lists submitted to s are checked and kept, not run.
	 * The graph holds its buffers in use until it is destroyed. YT_OP_WAIT is
	 * allowed; a graph waits for the event's record at the time of its launch. */
	yt_status (*graph_begin)(yt_stream *s, yt_error *err);
	yt_status (*graph_end)(yt_stream *s, yt_graph **out, yt_error *err);
	yt_status (*graph_launch)(yt_graph *g, yt_stream *s, yt_error *err);
	yt_status (*graph_destroy)(yt_graph *g, yt_error *err); /* YT_E_BUSY while it runs */

	yt_status (*pool_create)(yt_device *dev, const yt_pool_options *opt, yt_pool **out, yt_error *err);
	yt_status (*pool_stats)(yt_pool *p, yt_pool_stats *out, yt_error *err);

	/* Gives whole free slabs back until at most `keep` bytes are reserved. */
	yt_status (*pool_trim)(yt_pool *p, uint64_t keep, yt_error *err);
	yt_status (*pool_destroy)(yt_pool *p, yt_error *err); /* YT_E_BUSY while buffers exist */

	/* As buf_alloc, from the pool, and freed with pool_free or buf_free.
	 * YT_E_OOM names the limit or the fragmentation. */
	yt_status (*pool_alloc)(yt_pool *p, uint64_t bytes, uint64_t align, yt_buffer *out, yt_error *err);

	/* With `order` not NULL the buffer may be in use by work of that stream: its
	 * id is stale at once, its memory is given out again after that work. */
	yt_status (*pool_free)(yt_pool *p, yt_buf_id id, yt_stream *order, yt_error *err);

	/* Memory of others (V4L2, shared memory) as a buffer. The pages stay the
	 * caller's and must outlive it; buf_free ends the registration only. */
	yt_status (*buf_register)(yt_device *dev, void *host, uint64_t bytes, yt_buffer *out, yt_error *err);

	/* Hints. YT_OK with *why = YT_WHY_ASKED when done, with the reason when the
	 * device does not allow or need it and nothing was done. */
	yt_status (*buf_prefetch)(yt_device *dev, yt_range r, uint32_t to, yt_stream *s, uint32_t *why, yt_error *err);
	yt_status (*buf_advise)(yt_device *dev, yt_range r, uint32_t advice, uint32_t *why, yt_error *err);

	/* What YT_MEM_AUTO, or the mode asked for, becomes for memory that the CPU
	 * touches so (YT_CPU_*), and why. Allocates nothing. */
	yt_status (*mem_choose)(yt_device *dev, uint32_t mode, uint32_t cpu, yt_mem_choice *out, yt_error *err);
	yt_status (*mem_stats)(yt_device *dev, yt_mem_stats *out, yt_error *err);

	/* PTX (text, NUL-terminated within n) or cubin. opts: "" or options of the
	 * JIT as "name=value,...": "max_registers", "opt_level". */
	yt_status (*module_load)(yt_device *dev, const void *image, uint64_t n, const char *opts, yt_module **out,
				 yt_error *err);

	/* The linked image, for a cache. *n: room before, bytes after; with out NULL
	 * only *n is set. */
	yt_status (*module_image)(yt_module *m, void *out, uint64_t *n, yt_error *err);
	yt_status (*module_unload)(yt_module *m, yt_error *err);
	yt_status (*kernel_get)(yt_module *m, const char *name, uint64_t *kernel, yt_kernel_info *info, yt_error *err);

	/* Blocks of `block` threads and `shared` dynamic bytes that one
	 * multiprocessor holds, by the driver. */
	yt_status (*occupancy)(yt_device *dev, uint64_t kernel, uint32_t block, uint64_t shared, uint32_t *blocks,
			       yt_error *err);

	/* Launch configuration of a built-in kernel ("preprocess", "reduce", ...) for
	 * lists submitted from now on. YT_E_INVALID says what is allowed. */
	yt_status (*kernel_config)(yt_device *dev, const char *kernel, const yt_kernel_config *cfg, yt_error *err);

	/* YT_PEER_*. The first query of a pair copies a pattern and compares it. */
	yt_status (*peer_query)(yt_device *from, yt_device *to, uint32_t *caps, yt_error *err);

	/* s is a stream of dst's device, all work on both ranges has finished, and
	 * they stay until s has. Equal lengths. *how: YT_PEER_DIRECT, or
	 * YT_PEER_STAGED where DIRECT and CHECKED are not both there; then, and on
	 * the CPU, the copy has finished when the call returns. YT_E_BUSY while s has
	 * work. */
	yt_status (*peer_copy)(yt_stream *s, yt_range dst, yt_device *from, yt_range src, uint32_t *how, yt_error *err);

	/* Replaces the device's faults by those of the specification (yt_faults.h);
	 * "" removes them, but not what they did. While there are faults every stream
	 * is queued. NULL in builds without YT_FAULTS. */
	yt_status (*fault_inject)(yt_device *dev, const char *spec, yt_error *err);

	/* device_open with options. */
	yt_status (*device_start)(uint32_t index, const yt_open_options *opt, yt_device **out, yt_error *err);
} yt_api;

/* Fills at most out_size bytes of *out. YT_E_ABI when want_major is not the
 * backend's. The only symbol a backend library exports. */
#define YT_GET_API_SYMBOL "yt_get_api"
typedef yt_status (*yt_get_api_fn)(uint32_t want_major, yt_api *out, uint32_t out_size, yt_error *err);

#ifdef __cplusplus
}
#endif
#endif /* YT_BACKEND_H */
