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
 *   event    a mark in a stream, for time between two marks.
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
 *              needs a function beyond struct_size does without it.
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
#define YT_ABI_MINOR 0u

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
} yt_device_info;

/* ---- buffers ------------------------------------------------------------ */

enum {
	YT_MEM_AUTO = 0,   /* mapped where memory is shared, else device          */
	YT_MEM_DEVICE = 1, /* device only: host address is NULL, on every backend */
	YT_MEM_PINNED = 2, /* host memory the device copies from without staging  */
	YT_MEM_MAPPED = 3, /* one memory, both addresses                          */
	YT_MEM_HOST = 4    /* ordinary host memory                                */
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
	YT_OP_RECORD = 5      /* event `event` marks this point                    */
};

enum { YT_FORMAT_NV12 = 0, YT_FORMAT_I420 = 1 };
enum { YT_FIT_STRETCH = 0, YT_FIT_LETTERBOX = 1 };
enum { YT_COLOR_RGB = 0, YT_COLOR_BGR = 1 };
enum { YT_CHROMA_NEAREST = 0, YT_CHROMA_BILINEAR = 1 };
enum { YT_MATRIX_BT601_LIMITED = 0, YT_MATRIX_BT709_LIMITED = 1, YT_MATRIX_BT601_FULL = 2 };

#define YT_MAX_SIDE 16384u /* pixels, of frames and tensors */

/* One YUV frame to one NCHW float32 tensor with three channels: crop, resize
 * (bilinear luma), convert, clamp to 0..255, then (v/255 - mean) / std.
 *
 * Sample positions: the centre of output column i of an inner width w maps to
 * crop.x + (i + 1/2) * crop.w / w - 1/2 in luma samples, clamped to the crop;
 * rows likewise. Chroma samples lie centred between their four luma samples.
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
} yt_preprocess;

/* Reductions of float32 are computed in one fixed tree (yt_math.h), so the
 * result does not depend on threads, blocks or backend. Any NaN gives NaN.
 * Of nothing: sum 0, min +inf, max -inf. */
enum { YT_REDUCE_SUM = 0, YT_REDUCE_MIN = 1, YT_REDUCE_MAX = 2 };

typedef struct yt_cmd {
	uint32_t op;
	uint32_t value;
	uint64_t event;
	yt_range dst;
	yt_range src[3];
	yt_preprocess pre;
} yt_cmd;

#define YT_MAX_CMDS 256u /* in one list */

/* ---- the table ---------------------------------------------------------- */

enum {
	YT_CAP_HOST_RANGES = 1u << 0, /* ranges with buf = 0 are accepted        */
	YT_CAP_SYNCHRONOUS = 1u << 1  /* submit returns when the list has run    */
};

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
} yt_api;

/* Fills at most out_size bytes of *out. YT_E_ABI when want_major is not the
 * backend's. The only symbol a backend library exports. */
#define YT_GET_API_SYMBOL "yt_get_api"
typedef yt_status (*yt_get_api_fn)(uint32_t want_major, yt_api *out, uint32_t out_size, yt_error *err);

#ifdef __cplusplus
}
#endif
#endif /* YT_BACKEND_H */
