/* SPDX-License-Identifier: Apache-2.0
 *
 * yt_backend.h - the interface between yoctuned and a compute backend.
 *
 * A backend is a table of functions, struct yt_api. A backend library exports one
 * symbol, yt_get_api(), which fills the table. The CPU backend is linked into
 * yoctuned. libyoctune_cuda.so is opened with dlopen(RTLD_NOW | RTLD_LOCAL) and never
 * closed, because a GPU driver does not survive unloading.
 *
 *
 * CONCEPTS
 *
 *   device   One processor with its memory, opened by index.
 *   buffer   Memory owned by the backend, named by a 64-bit id. The id contains a
 *            generation: using the id of a freed buffer is YT_E_INVALID and never
 *            reaches another buffer's memory.
 *   stream   An order of execution. Lists submitted to one stream run one after
 *            another. Two streams are not ordered with respect to each other.
 *   list     An array of struct yt_cmd. A command holds ids and numbers and no
 *            pointers into the caller. A list can therefore be checked completely
 *            before anything runs, logged, or sent to another process. Submitting
 *            it is one call, whatever its length.
 *   event    A mark in a stream. Two events measure the time between them.
 *   module   A kernel compiled outside the backend: a chain of expressions, as a cubin
 *            or for the CPU (yt_chain.h). YT_OP_LAUNCH takes its id.
 *
 *
 * RULES
 *
 *   Errors     Every function that can fail returns a status. It also stores the
 *              status and a message in the caller's struct yt_error, unless that
 *              pointer is NULL. There is no per-thread error state. An invalid
 *              argument is YT_E_INVALID and has no effect: if one command of a list
 *              is invalid, no command of the list runs.
 *   Sticky     error.sticky = 1 means that every later call on the device fails the
 *              same way until the process exits.
 *   Threads    Any thread may call any function. Calls on the same stream must not
 *              overlap.
 *   Blocking   A function blocks only where its comment says so, and never past its
 *              deadline.
 *   Versions   A different abi_major is refused. Within a major version functions and
 *              fields are only appended, and struct_size gives the bytes of the table
 *              that the backend filled. A function beyond struct_size, or one that is
 *              NULL, is not available. Those from device_count to event_elapsed are
 *              always present. `ops` has one bit per operation.
 *              2.0  what no stage of a pipeline used was removed: graphs, pools, copies
 *                   between devices, hints, priorities, waiting for events, and the
 *                   operations memset, signal, argmax and map
 *   Sizes      A struct that may grow starts with its size, set by the caller. The
 *              backend writes nothing beyond that size and reads missing fields as 0.
 *   Types      Fixed width, native endianness. An address that the caller may
 *              dereference is a void *; every other address is a uint64_t.
 */
#ifndef YT_BACKEND_H
#define YT_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define YT_ABI_MAJOR 2u
#define YT_ABI_MINOR 0u

/* ---- status ------------------------------------------------------------- */

typedef int32_t yt_status;

enum {
	YT_OK = 0,
	YT_E_INVALID = 1,       /* invalid call; nothing ran                       */
	YT_E_OOM = 2,           /* no memory of the requested kind                 */
	YT_E_NOT_SUPPORTED = 3, /* not on this backend or device; msg names what is */
	YT_E_TIMEOUT = 4,       /* deadline passed; the work may still be running  */
	YT_E_DEVICE_LOST = 5,   /* off the bus, or reported lost by the driver     */
	YT_E_KERNEL_FAULT = 6,  /* such as an illegal address; always sticky       */
	YT_E_ABI = 7,           /* incompatible versions                           */
	YT_E_NO_BACKEND = 8,    /* no driver or no device on this machine          */
	YT_E_NOT_READY = 9,     /* not finished yet                                */
	YT_E_BUSY = 10,         /* in use by submitted work, or children are open  */
	YT_E_IO = 11,           /* a system call failed; see native                */
	YT_E_CANCELLED = 12,
	YT_E_INTERNAL = 13      /* a defect in the backend; see native             */
};

typedef struct yt_error {
	yt_status code;
	uint32_t sticky; /* 1: the device fails until the process exits          */
	int32_t native;  /* cudaError_t or errno; 0: none                        */
	char msg[240];   /* what, where and what to do; always NUL-terminated    */
} yt_error;

/* ---- devices ------------------------------------------------------------ */

typedef struct yt_device yt_device;
typedef struct yt_stream yt_stream;

/* An unknown value is 0; no field has 0 as a meaningful value. The caller sets `size`
 * to sizeof(yt_device_info). */
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
	/* The first five and direct_managed are flags: 0 also means "no". */
	uint32_t unified_addressing, managed, pageable_access, map_host, mempools;
	uint32_t copy_engines;
	uint32_t direct_managed; /* 1: the CPU reads managed memory in place      */
	uint32_t reserved;
	uint32_t warp, max_threads_per_block, threads_per_sm, blocks_per_sm, regs_per_sm, regs_per_block;
	uint64_t smem_per_sm, smem_per_block, smem_per_block_optin, smem_reserved; /* bytes */
	uint32_t clock_khz, mem_clock_khz, mem_bus_bits; /* nominal values        */
	uint32_t pci_domain, pci_bus, pci_device;
	uint8_t uuid[16];
} yt_device_info;

/* ---- buffers ------------------------------------------------------------ */

enum {
	YT_MEM_AUTO = 0,   /* mapped where CPU and device share memory, else device */
	YT_MEM_DEVICE = 1, /* device only: the host address is NULL on every backend */
	YT_MEM_PINNED = 2, /* page-locked host memory, copied without staging     */
	YT_MEM_MAPPED = 3, /* one memory with a host and a device address         */
	YT_MEM_HOST = 4,   /* pageable host memory                                */
	YT_MEM_MANAGED = 5,   /* pages migrate; YT_E_NOT_SUPPORTED unless CPU and
	                         device may access them concurrently              */
	YT_MEM_REGISTERED = 6 /* caller's pages, from buf_register; not for alloc */
};

#define YT_ALIGN_MIN 256u       /* every buffer starts on this boundary       */
#define YT_ALIGN_MAX 2097152u   /* 2 MiB                                      */

typedef uint64_t yt_buf_id; /* 0 is never a buffer */

/* The caller sets `size`; buf_alloc fills the rest. */
typedef struct yt_buffer {
	uint32_t size;
	uint32_t mode; /* the mode chosen, never YT_MEM_AUTO                      */
	yt_buf_id id;
	void *host;      /* address for the CPU; NULL: not accessible by the CPU  */
	uint64_t device; /* address for the device, for interoperation            */
	uint64_t bytes;
} yt_buffer;

/* Bytes [off, off + len) of a buffer.
 *
 * buf = 0 names host memory of the caller, and off is its address. Only backends with
 * YT_CAP_HOST_RANGES accept it. The memory must stay valid until the list has
 * finished. The CUDA backend refuses it, because a copy from pageable memory is
 * silently synchronous. */
typedef struct yt_range {
	yt_buf_id buf;
	uint64_t off;
	uint64_t len;
} yt_range;

/* ---- commands ----------------------------------------------------------- */

enum {
	YT_OP_COPY = 1,       /* dst <- src[0]; equal len, no overlap              */
	YT_OP_PREPROCESS = 2, /* dst <- tensor made from the frame in src; `pre`   */
	YT_OP_REDUCE = 3,     /* dst <- one float of src[0]; `value` = YT_REDUCE_* */
	YT_OP_RECORD = 4,     /* `event` marks this point of the stream            */
	YT_OP_LAUNCH = 5,     /* launch a kernel of a module; uses `launch`        */
	YT_OP_DECODE = 6,     /* dst: boxes <- detector's output in src[0]; `decode` */
	YT_OP_NMS = 7,        /* dst: boxes <- boxes in src[0]; uses `nms`         */
	YT_OP_SOFTMAX = 8,    /* dst <- softmax of each row of src[0]; uses `rows` */
	YT_OP_TOPK = 9,       /* dst: k yt_ranked a row; uses `rows`               */
	YT_OP_CONVERT = 10,   /* dst <- src[0] in another type or layout; `convert` */
	YT_OP_GEMM = 11,      /* dst <- src[0] * src[1] + ...; uses `gemm`         */
	YT_OP_ROI = 12,       /* dst <- one tensor per box of the frame in src; `roi` */
	YT_OP_DIFF = 13,      /* dst: yt_motion <- planes src[0], src[1]; `diff`   */
	YT_OP_GATHER = 14,    /* dst: floats of the boxes src[1] <- src[0]; `gather` */
	YT_OP_MASKS = 15,     /* dst: bits <- prototypes src[0]; `masks`           */
	YT_OP_STATS = 16      /* dst: yt_stats <- plane src[0]; uses `stats`      */
};
#define YT_OP_LAST YT_OP_STATS

/* Element types. The range of a tensor starts at a multiple of its element size. */
enum { YT_F32 = 0, YT_F16 = 1, YT_BF16 = 2, YT_I8 = 3, YT_U8 = 4, YT_I32 = 5 };
enum { YT_LAYOUT_NCHW = 0, YT_LAYOUT_NHWC = 1 };

/* NV12 and I420: chroma at half the luma resolution in both directions. YUYV and UYVY:
 * one plane with 4 bytes per two pixels, pitch at least 4 * ((width + 1) / 2). RGB and
 * BGR: one plane with 3 bytes per pixel. GRAY: one plane, full range. */
enum {
	YT_FORMAT_NV12 = 0, YT_FORMAT_I420 = 1,
	YT_FORMAT_YUYV = 2, YT_FORMAT_UYVY = 3, YT_FORMAT_RGB = 4, YT_FORMAT_BGR = 5, YT_FORMAT_GRAY = 6
};
enum { YT_FIT_STRETCH = 0, YT_FIT_LETTERBOX = 1 };
/* GRAY: one channel. From YUV: luma, expanded to full range. From RGB: 0.299 R + 0.587 G + 0.114 B. */
enum { YT_COLOR_RGB = 0, YT_COLOR_BGR = 1, YT_COLOR_GRAY = 2 };
enum { YT_CHROMA_NEAREST = 0, YT_CHROMA_BILINEAR = 1 };
enum { YT_MATRIX_BT601_LIMITED = 0, YT_MATRIX_BT709_LIMITED = 1, YT_MATRIX_BT601_FULL = 2 };

#define YT_MAX_SIDE 16384u /* pixels, of frames and tensors */

/* Makes one tensor from one frame: crop, resize (bilinear in luma, RGB or gray),
 * convert the colours, clamp to 0..255, compute (v / 255 - mean) / std, and convert to
 * `type`. Conversion rounds to nearest even; integers saturate.
 *
 * A batch is a sequence of these commands, each writing its part of the tensor. Their
 * frames may differ in size and format. A backend may run such commands as one kernel
 * when out_w, out_h, color, type and layout agree.
 *
 * Sample positions: the centre of output column i of an inner width w maps to
 * crop.x + (i + 1/2) * crop.w / w - 1/2 in luma samples, clamped to the crop;
 * rows likewise. A chroma sample lies at the centre of its four luma samples, in YUYV
 * and UYVY at the centre of its two. Bytes outside the crop's samples are never read.
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
	uint8_t type, layout;                    /* YT_F32 ..., YT_LAYOUT_* */
	uint16_t reserved;                       /* 0                            */
} yt_preprocess;

/* Reductions of float32 follow one fixed tree (yt_math.h), so that the result depends neither on
 * threads nor on blocks nor on the backend. Any NaN gives NaN. Without elements the sum
 * is 0, min is +inf and max is -inf. */
enum { YT_REDUCE_SUM = 0, YT_REDUCE_MIN = 1, YT_REDUCE_MAX = 2 };

/* A kernel of a module. Its arguments are the device addresses of dst and of
 * src[0..ranges-2], then the params, in this order. A parameter shorter than 8 bytes is
 * passed in the low bytes of its word. Accesses outside the ranges are not checked:
 * modules are trusted. */
typedef struct yt_launch {
	uint64_t kernel;                /* from kernel_get                        */
	uint32_t grid[3], block[3];     /* each at least 1                        */
	uint32_t shared;                /* bytes of dynamic shared memory         */
	uint16_t ranges;                /* 0: none, 1: dst, 2..4: dst and src     */
	uint16_t params;                /* 0..6                                   */
	uint64_t param[6];
} yt_launch;

/* Detections. `count` boxes follow the header, best score first, equal scores by
 * ascending `anchor`. */
typedef struct yt_box {
	float x0, y0, x1, y1; /* pixel edges: a pixel is [i, i + 1)               */
	float score;
	int32_t cls;    /* class, from 0                                          */
	int32_t anchor; /* index in the detector's output                         */
	uint32_t reserved;
} yt_box;
typedef struct yt_boxes {
	uint32_t count; /* boxes that follow                                      */
	uint32_t found; /* boxes before the list was cut to `max`                 */
	uint32_t reserved[6];
} yt_boxes;
#define YT_BOXES_BYTES(max) (sizeof(yt_boxes) + (uint64_t)(max) * sizeof(yt_box))
#define YT_MAX_BOXES 16384u

/* Output of a YOLO detector: centre x, centre y, width and height in tensor pixels, then
 * the class scores. A box is kept if the score of its best class (the lowest index among
 * equals) is at least `threshold`; NaN is not. The box is then mapped to the frame:
 * x = x * scale_x + shift_x, clamped to [0, limit_x], or to +-YT_FAR if limit_x is 0; y
 * likewise. NaN becomes 0. */
#define YT_FAR 16777216.0f
enum {
	YT_HEAD_PLANES = 0,     /* [4 + classes][anchors]: v8 and newer           */
	YT_HEAD_ROWS = 1,       /* [anchors][4 + classes]                         */
	YT_HEAD_OBJECTNESS = 2  /* [anchors][5 + classes]: v5; score = obj * class */
};
typedef struct yt_decode {
	uint32_t head, type;        /* type: YT_F32, YT_F16                       */
	uint32_t anchors, classes;
	uint32_t max;               /* boxes kept, 1..YT_MAX_BOXES                */
	uint32_t batch;             /* images, consecutive in src and dst; dst: YT_BOXES_BYTES(max) each */
	float threshold;
	float scale_x, scale_y, shift_x, shift_y, limit_x, limit_y;
	uint32_t after;             /* values of an anchor after the classes, not read */
} yt_decode;

/* Values of boxes that a detector's output has beside their scores: keypoints, or the
 * coefficients of masks. dst has `count` floats for each of `max` boxes: the values from
 * `first` on of the anchor of each box in src[1] (a yt_boxes). They are 0 beyond the
 * number of boxes, and for an anchor that the output does not have. */
typedef struct yt_gather {
	uint32_t head, type;        /* of src[0]; head: YT_HEAD_PLANES or not     */
	uint32_t anchors, values;   /* src[0] has anchors * values elements       */
	uint32_t first, count;      /* first + count is at most values            */
	uint32_t max;               /* boxes, 1..YT_MAX_BOXES                     */
} yt_gather;

/* Greedy non-maximum suppression. A box is dropped if its intersection over union with a
 * kept box of higher rank is above `iou`. Only boxes of the same class suppress each
 * other, unless YT_NMS_AGNOSTIC is set. Boxes rank by descending score, then ascending
 * anchor, then position; the input may be in any order. A box with an edge as far as YT_FAR, or
 * with an infinite score, suppresses none. */
enum { YT_NMS_AGNOSTIC = 1u << 0 };
typedef struct yt_nms {
	uint32_t flags;
	uint32_t in_max, max;       /* capacity of src and dst, boxes per image   */
	uint32_t batch;
	float iou;                  /* 0..1                                       */
} yt_nms;

/* Masks of boxes from prototypes src[0], [values][height][width]. The boxes are the `count`
 * yt_grid of src[2]: a bit is set where the prototypes, weighted by the `values` floats of
 * row `row` of src[1] and added in rising order, are above 0. The sum is interpolated
 * bilinearly between the centres of prototype pixels, with the edge repeated, at
 * x = x * scale_x + shift_x of the centre of a cell in the frame, y likewise. Cell i of a
 * grid, row by row, is bit i % 32 of the word i / 32 from byte `at` of dst on. A grid with
 * a row beyond `rows`, or bits beyond dst, is left out; other bytes of dst become 0. */
typedef struct yt_grid {
	int32_t x, y;             /* of the first cell's corner, frame pixels      */
	uint32_t step;            /* frame pixels a cell, 1..YT_MAX_SIDE           */
	uint32_t width, height;   /* cells, each at most YT_MAX_SIDE               */
	uint32_t row;
	uint32_t at;              /* a multiple of 4                               */
	uint32_t reserved;
} yt_grid;
typedef struct yt_masks {
	uint32_t type;            /* of the prototypes: YT_F32, YT_F16             */
	uint32_t values, width, height;
	uint32_t rows, count;     /* each 1..YT_MAX_BOXES                          */
	float scale_x, scale_y, shift_x, shift_y;
} yt_masks;

/* Rows of `cols` elements, `stride` elements from one row to the next (0: cols).
 * SOFTMAX writes rows of the same stride with elements of type `out`. TOPK
 * prefers the lowest index among equals and orders NaN above all numbers. */
typedef struct yt_ranked {
	float value;
	int32_t index;
} yt_ranked;
typedef struct yt_rows {
	uint32_t in, out;           /* YT_F32, YT_F16, YT_BF16; out: SOFTMAX only */
	uint32_t rows, cols, stride;
	uint32_t k;                 /* TOPK: 1..32, at most cols                  */
} yt_rows;

/* Conversion between float types rounds to nearest even. From a float to I8, U8 or I32:
 * saturate(round(x / scale) + zero), NaN becomes 0. Back: (q - zero) * scale. With
 * YT_CONVERT_CHANNEL_SCALE, src[1] holds one float32 scale per channel instead. */
enum { YT_CONVERT_CHANNEL_SCALE = 1u << 0 };
typedef struct yt_convert {
	uint8_t in, out, in_layout, out_layout;
	uint32_t flags;
	uint32_t n, c, h, w;        /* dimensions of the tensor                   */
	float scale;                /* not 0                                      */
	int32_t zero;
} yt_convert;

/* C = act(alpha * A * B + beta * C + bias). A is m by k, B is k by n and C is m by n, all
 * row-major with lda, ldb and ldc elements per row (0: tight). With YT_GEMM_TRANS_A
 * (TRANS_B) the memory of A (B) holds its transpose. src[2] is the bias, n float32, or
 * empty. Sums are float32, for YT_I8 int32, in unspecified order. C is not read if beta
 * is 0. With output I32, bias and act are applied in float32 and the result is rounded. */
enum { YT_GEMM_TRANS_A = 1u << 0, YT_GEMM_TRANS_B = 1u << 1, YT_GEMM_OWN = 1u << 2 /* use no vendor library */ };
enum { YT_ACT_NONE = 0, YT_ACT_RELU = 1, YT_ACT_GELU = 2, YT_ACT_SILU = 3 };
typedef struct yt_gemm {
	uint32_t m, n, k;
	uint32_t lda, ldb, ldc;
	uint8_t type, out;          /* type of A and B: F32, F16, BF16, I8; of C  */
	uint8_t act, reserved;
	uint32_t flags;
	float alpha, beta;          /* for I8: 1 and 0, and out is I32 or F32     */
	uint32_t batch;             /* number of products; 0 means 1              */
	uint32_t reserved2;
	uint64_t stride_a, stride_b, stride_c; /* elements from product to product */
} yt_gemm;

/* Makes one tensor of out_h by out_w from each box in `boxes`, a yt_boxes with capacity
 * `max`. The tensors are consecutive in dst, in the order of the boxes; those beyond
 * `count` are filled with 0. A box is clamped to the frame and extended to whole pixels.
 * A box without area gives a tensor of the border value. The frame is in src as for
 * YT_OP_PREPROCESS. */
typedef struct yt_roi {
	yt_range boxes;
	uint8_t format, fit, color, chroma, matrix, type, layout, pad;
	uint32_t width, height;
	uint32_t pitch[3];
	uint32_t out_w, out_h;
	uint32_t max;
	float mean[3], std[3];
} yt_roi;

/* Difference of two planes of bytes. dst holds a yt_motion and, if `block` is not 0, one
 * uint32 per block of `block` by `block` samples, row by row: the sum of absolute
 * differences within the block. */
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

/* Statistics of a frame's brightness: its sum, the pixels at its ends, and the Laplacian,
 * whose variance falls as the picture gets blurred. A pixel's Laplacian is the sum of its
 * four neighbours less four times itself; beyond an edge the picture is mirrored at its last
 * pixel. src[0] is the frame's first plane. The brightness is the luma or gray sample, of RGB
 * and BGR (9798 R + 19235 G + 3735 B + 2^14) >> 15. All sums are exact. */
typedef struct yt_stats {
	uint64_t sum;               /* of brightness, 0..255 each                 */
	uint32_t low, high;         /* pixels of at most `low`, at least `high`   */
	int64_t laplace;            /* sum of the Laplacian                       */
	uint64_t squares;           /* sum of its squares                         */
} yt_stats;
typedef struct yt_plane_stats {
	uint32_t format;            /* YT_FORMAT_*                                */
	uint32_t width, height;     /* pixels                                     */
	uint32_t pitch;             /* bytes per row; 0: tight                    */
	uint32_t low, high;         /* 0..255                                     */
} yt_plane_stats;

/* The launch configuration of one command, stored in `value` by operations that have a
 * kernel and no other use for `value`. A half that is 0 keeps the device's setting
 * (kernel_config). Older backends ignore it. */
#define YT_CONFIG(block, tile) ((uint32_t)(block) | (uint32_t)(tile) << 16)

/* `op` selects the member of the union; unused bytes are 0. */
typedef struct yt_cmd {
	uint32_t op;
	uint32_t value;
	uint64_t event;
	yt_range dst;
	yt_range src[3];
	union {
		yt_preprocess pre;
		yt_launch launch;
		yt_decode decode;
		yt_nms nms;
		yt_rows rows;
		yt_convert convert;
		yt_gemm gemm;
		yt_roi roi;
		yt_diff diff;
		yt_gather gather;
		yt_masks masks;
		yt_plane_stats stats;
		uint8_t args[96];
	};
} yt_cmd;

#define YT_MAX_CMDS 256u /* in one list */

/* ---- streams ------------------------------------------------------------ */

/* A backend with YT_CAP_SYNCHRONOUS runs a list in the calling thread, which avoids a
 * thread switch. It queues the list for the device's threads if the stream is
 * YT_STREAM_QUEUED or has lists waiting. Other backends always queue. */
enum { YT_STREAM_QUEUED = 1u << 0 };
typedef struct yt_stream_options {
	uint32_t size;
	uint32_t flags;
	char name[16]; /* NUL-terminated, may be empty; matched by "stage=" of faults */
} yt_stream_options;

typedef struct yt_open_options {
	uint32_t size;
	uint32_t threads;   /* CPU: threads for queued lists; 0: one per core     */
	const char *faults; /* NULL, or as for fault_inject, plus "init:fail"     */
	uint32_t flags;     /* YT_OPEN_*                                          */
	uint32_t reserved;
} yt_open_options;

/* CPU: the device behaves like a card with its own memory. YT_MEM_DEVICE, which AUTO is then,
 * has an address that no access is allowed to; host ranges, pageable and managed memory are
 * refused, and copies in both directions are counted. For tests of programs without a GPU. */
enum { YT_OPEN_STRICT = 1u << 0 };
#define YT_MAX_QUEUED 1024u /* queued lists per stream; YT_E_BUSY beyond that */

/* ---- memory ------------------------------------------------------------- */

/* Bytes copied and allocated since the device was opened. */
typedef struct yt_mem_stats {
	uint32_t size;
	uint32_t reserved;
	uint64_t bytes[8], peak[8], allocs[8]; /* by YT_MEM_* */
	uint64_t total, total_peak;
	uint64_t h2d, d2h, d2d, h2h;           /* bytes of copies by direction     */
	uint64_t pageable_copies, pageable_bytes; /* copies that a GPU driver stages */
} yt_mem_stats;

/* Reasons for the choice of a memory mode. */
enum {
	YT_WHY_ASKED = 0,          /* as requested                                */
	YT_WHY_INTEGRATED = 1,     /* shared memory: mapping avoids every copy    */
	YT_WHY_DISCRETE = 2,       /* device memory is faster than the bus        */
	YT_WHY_CPU_NEVER = 3,      /* the CPU does not access it                  */
	YT_WHY_NO_CONCURRENT = 4,  /* no concurrent managed access on this device */
	YT_WHY_NO_MANAGED = 5,     /* no managed memory on this device            */
	YT_WHY_HOST = 6,           /* CPU backend: every mode is host memory      */
	YT_WHY_STAGING = 7,        /* read or written once: pinned for the copy engine */
	YT_WHY_NO_MAP = 8,         /* the device cannot map host memory           */
	YT_WHY_NO_REGISTER = 9     /* the device cannot register host pages       */
};
enum { YT_CPU_NEVER = 0, YT_CPU_READS = 1, YT_CPU_WRITES = 2, YT_CPU_BOTH = 3 };

typedef struct yt_mem_choice {
	uint32_t size;
	uint32_t mode; /* never AUTO                                              */
	uint32_t why;
	uint32_t allowed; /* bits 1 << YT_MEM_* of the modes this device supports */
	char text[160];
} yt_mem_choice;

/* ---- modules and kernels ------------------------------------------------ */

typedef struct yt_module yt_module;

/* The launch configuration of a built-in kernel; see kernel_config. On the CPU only gemm
 * uses it: `block` rows by `tile` columns of the second matrix are kept in cache. */
typedef struct yt_kernel_config {
	uint32_t size;
	uint32_t block; /* threads per block; 0: built-in value                   */
	uint32_t tile;  /* in the kernel's own unit; 0: built-in value            */
} yt_kernel_config;

/* ---- the table ---------------------------------------------------------- */

enum {
	YT_CAP_HOST_RANGES = 1u << 0, /* ranges with buf = 0 are accepted        */
	YT_CAP_SYNCHRONOUS = 1u << 1, /* submit may run the list itself          */
	YT_CAP_FAULTS = 1u << 2,      /* fault_inject is implemented             */
	YT_CAP_MODULES = 1u << 3,     /* module_load accepts PTX and cubin       */
	YT_CAP_VIRTUAL = 1u << 4,     /* virtual devices beyond device_count may be
	                                 opened, up to YT_MAX_VIRTUAL in all     */
	YT_CAP_CHAINS = 1u << 5       /* module_load accepts chains (yt_chain.h) */
};
#define YT_MAX_VIRTUAL 16u

typedef struct yt_api {
	uint32_t struct_size; /* bytes of this table that the backend filled      */
	uint32_t abi_major, abi_minor;
	uint32_t caps;
	const char *name;     /* "cpu", "cuda"                                    */
	const char *build_id; /* version and compiler, for bug reports            */

	/* Fails with YT_E_NO_BACKEND and the reason if there is no device. */
	yt_status (*device_count)(uint32_t *n, yt_error *err);

	/* Creating a CUDA context takes hundreds of milliseconds. opt may be NULL. */
	yt_status (*device_open)(uint32_t index, const yt_open_options *opt, yt_device **out, yt_error *err);
	yt_status (*device_info)(yt_device *dev, yt_device_info *info, yt_error *err);

	/* Returns the sticky error, or YT_OK while the device is usable. Launches
	 * nothing. */
	yt_status (*device_health)(yt_device *dev, yt_error *err);

	/* Fails with YT_E_BUSY while streams, buffers or events of the device exist. */
	yt_status (*device_close)(yt_device *dev, yt_error *err);

	/* `align` is a power of two up to YT_ALIGN_MAX, or 0 for YT_ALIGN_MIN. The
	 * contents are undefined. Allocate at start, not once per frame. */
	yt_status (*buf_alloc)(yt_device *dev, uint32_t mode, uint64_t bytes, uint64_t align, yt_buffer *out,
			       yt_error *err);

	/* Fails with YT_E_BUSY while a list that names the buffer is running. */
	yt_status (*buf_free)(yt_device *dev, yt_buf_id id, yt_error *err);

	yt_status (*stream_open)(yt_device *dev, const yt_stream_options *opt, yt_stream **out, yt_error *err);

	/* Fails with YT_E_BUSY while work is running. */
	yt_status (*stream_destroy)(yt_stream *s, yt_error *err);

	/* Checks all n commands, then queues them in order. Does not wait for the
	 * device, except on a backend with YT_CAP_SYNCHRONOUS. */
	yt_status (*submit)(yt_stream *s, const yt_cmd *cmds, uint32_t n, yt_error *err);

	/* Blocks for at most timeout_ns until all submitted work has finished. If it
	 * has not: YT_E_NOT_READY with timeout 0, otherwise YT_E_TIMEOUT. Reports
	 * faults of submitted work. */
	yt_status (*stream_poll)(yt_stream *s, uint64_t timeout_ns, yt_error *err);

	yt_status (*event_create)(yt_device *dev, uint64_t *event, yt_error *err);
	yt_status (*event_destroy)(yt_device *dev, uint64_t event, yt_error *err);

	/* Device time from event a to event b, in ns. YT_E_NOT_READY until both have
	 * passed. */
	yt_status (*event_elapsed)(yt_device *dev, uint64_t a, uint64_t b, uint64_t *ns, yt_error *err);

	uint64_t ops; /* bits 1 << YT_OP_* of the operations of this backend; others
	                 in a list are YT_E_NOT_SUPPORTED                         */

	/* Makes a buffer of the caller's pages (V4L2, shared memory). The pages must
	 * outlive the buffer; buf_free only ends the registration. */
	yt_status (*buf_register)(yt_device *dev, void *host, uint64_t bytes, yt_buffer *out, yt_error *err);

	/* Reports the mode that buf_alloc would choose for `mode`, given the CPU's
	 * accesses (YT_CPU_*), and the reason. Allocates nothing. */
	yt_status (*mem_choose)(yt_device *dev, uint32_t mode, uint32_t cpu, yt_mem_choice *out, yt_error *err);
	yt_status (*mem_stats)(yt_device *dev, yt_mem_stats *out, yt_error *err);

	/* image is a chain (yt_chain.h) on a backend with YT_CAP_CHAINS, else a cubin. */
	yt_status (*module_load)(yt_device *dev, const void *image, uint64_t n, yt_module **out, yt_error *err);
	yt_status (*module_unload)(yt_module *m, yt_error *err);
	yt_status (*kernel_get)(yt_module *m, const char *name, uint64_t *kernel, yt_error *err);

	/* Sets the launch configuration of a built-in kernel ("preprocess", "reduce",
	 * ...) for later lists. The message of YT_E_INVALID gives the valid values. */
	yt_status (*kernel_config)(yt_device *dev, const char *kernel, const yt_kernel_config *cfg, yt_error *err);

	/* Replaces the device's injected faults (grammar: yt_faults.h). "" removes them
	 * but does not undo their effects. While faults are set every stream is queued.
	 * NULL in builds without YT_FAULTS. */
	yt_status (*fault_inject)(yt_device *dev, const char *spec, yt_error *err);

	/* Stores in *address where a library that computes on this device, such as ONNX Runtime,
	 * finds the buffer: yt_buffer.device, but for YT_MEM_DEVICE of a strict device the
	 * kernels' own address. The program itself must not use it. */
	yt_status (*buf_address)(yt_device *dev, yt_buf_id id, uint64_t *address, yt_error *err);

	/* As submit. known: 0, or the caller's number for these commands. If the stream's last list
	 * had the same number, its commands must be the same too: what was checked then is not
	 * checked again, unless an object of the device was freed since. */
	yt_status (*submit_known)(yt_stream *s, const yt_cmd *cmds, uint32_t n, uint64_t known, yt_error *err);
} yt_api;

/* Fills at most out_size bytes of *out. Fails with YT_E_ABI if want_major is not the
 * backend's. This is the only symbol that a backend library exports. */
#define YT_GET_API_SYMBOL "yt_get_api"
typedef yt_status (*yt_get_api_fn)(uint32_t want_major, yt_api *out, uint32_t out_size, yt_error *err);

#ifdef __cplusplus
}
#endif
#endif /* YT_BACKEND_H */
