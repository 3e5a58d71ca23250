// SPDX-License-Identifier: Apache-2.0
//
// device.h - internal declarations of the CUDA backend.
//
//   backend.cu  devices, the table of functions
//   memory.cu   buffers
//   stream.cu   streams, lists, events
//   module.cu   modules and kernels compiled outside the backend
//   lt.cu       products by cuBLASLt, where it is installed
//   faults.cu   faults for tests, only with YT_FAULTS
#ifndef YT_DEVICE_H
#define YT_DEVICE_H

#include "kernels.h"
#include "lt.h"
#include "yt_faults.h"
#include "yt_memory.h"
#include "yt_names.h"
#include "yt_table.h"

#include <cuda_runtime_api.h>

#include <pthread.h>
#include <time.h>

struct yt_device {
	pthread_mutex_t lock; // guards all below
	yt_table table;
	yt_stream *streams; // list
	uint32_t modules;
	yt_error dead;        // sticky error; code 0: alive
	yt_device_info info;  // without mem_free
	int index;
	yt_mem_stats stats;
	uint32_t block[YT_OP_LAST + 1]; // threads a block, see kernel_config
	struct yt_kernel *kernels; // list, of all modules
	yt_lt lt;
	yt_faults faults;
	uint32_t *fault_flag; // mapped: ends an injected hang
};

struct yt_stream {
	yt_device *dev;
	yt_stream *next;
	cudaStream_t handle;
	uint64_t *pending; // buffers named by work that may still run
	uint32_t pending_n, pending_cap;
	float *scratch;           // partial results of reductions
	uint64_t scratch_bytes;
	char name[16];
};

struct locked {
	pthread_mutex_t *m;
	explicit locked(yt_device *d) : m(&d->lock) { pthread_mutex_lock(m); }
	~locked() { pthread_mutex_unlock(m); }
	locked(const locked &) = delete;
	locked &operator=(const locked &) = delete;
};

extern const uint64_t yt_cuda_ops;

// Reports e and stores it if it is sticky. The lock is held, or d is NULL.
yt_status yt_fail_cuda(yt_device *d, yt_error *err, cudaError_t e, const char *what);

// Makes the device current for this thread. The lock is held.
yt_status yt_enter(yt_device *d, yt_error *err);

// Releases the buffers of finished work. The lock is held. Returns the result of the query:
// cudaSuccess, cudaErrorNotReady or a fault.
cudaError_t yt_drain(yt_stream *s);

uint64_t yt_now_ns(void);

// Waits by polling: first without sleeping, since most lists finish sooner than a sleep would,
// then every 50 us. ask takes and releases the lock.
template <typename Ask> static yt_status yt_wait(uint64_t timeout_ns, const char *what, yt_error *err, Ask ask)
{
	const uint64_t spin_ns = 20000;
	const struct timespec nap = {0, 50000};
	uint64_t start = yt_now_ns(), spent;

	for (;;) {
		yt_status rc = ask();

		if (rc != YT_E_NOT_READY)
			return rc;
		spent = yt_now_ns() - start;
		if (timeout_ns == 0)
			return yt_fail(err, YT_E_NOT_READY, "%s: work is running", what);
		if (spent >= timeout_ns)
			return yt_fail(err, YT_E_TIMEOUT, "%s: work is still running after %llu ns", what,
				       (unsigned long long)spent);
		if (spent >= spin_ns)
			nanosleep(&nap, NULL);
	}
}

// ---- the table's functions, by file ----------------------------------------

yt_status cuda_buf_alloc(yt_device *, uint32_t, uint64_t, uint64_t, yt_buffer *, yt_error *);
yt_status cuda_buf_free(yt_device *, yt_buf_id, yt_error *);
yt_status cuda_buf_register(yt_device *, void *, uint64_t, yt_buffer *, yt_error *);
yt_status cuda_buf_address(yt_device *, yt_buf_id, uint64_t *, yt_error *);
yt_status cuda_mem_choose(yt_device *, uint32_t, uint32_t, yt_mem_choice *, yt_error *);
yt_status cuda_mem_stats(yt_device *, yt_mem_stats *, yt_error *);

yt_status cuda_stream_open(yt_device *, const yt_stream_options *, yt_stream **, yt_error *);
yt_status cuda_stream_destroy(yt_stream *, yt_error *);
yt_status cuda_submit(yt_stream *, const yt_cmd *, uint32_t, yt_error *);
yt_status cuda_stream_poll(yt_stream *, uint64_t, yt_error *);
yt_status cuda_event_create(yt_device *, uint64_t *, yt_error *);
yt_status cuda_event_destroy(yt_device *, uint64_t, yt_error *);
yt_status cuda_event_elapsed(yt_device *, uint64_t, uint64_t, uint64_t *, yt_error *);

yt_status cuda_module_load(yt_device *, const void *, uint64_t, yt_module **, yt_error *);
yt_status cuda_module_unload(yt_module *, yt_error *);
yt_status cuda_kernel_get(yt_module *, const char *, uint64_t *, yt_error *);

// Whether a launch names a kernel that exists.
yt_status yt_module_check(yt_device *d, const yt_launch *l, uint32_t at, yt_error *err);

// Queues a kernel of a module; the error is the driver's, in words.
yt_status yt_module_launch(yt_stream *s, const yt_launch *l, uint8_t *const p[], uint32_t at, yt_error *err);

// Injects the faults that are due before and after command `at` of a list. YT_OK without
// YT_FAULTS.
yt_status yt_fault_before(yt_stream *s, const yt_cmd *c, yt_error *err);
yt_status yt_fault_after(yt_stream *s, const yt_cmd *c, uint8_t *dst, yt_error *err);
yt_status yt_fault_alloc(yt_device *d, uint64_t bytes, const char *what, yt_error *err);
yt_status cuda_fault_inject(yt_device *, const char *, yt_error *);
void yt_fault_end(yt_device *d);

#endif // YT_DEVICE_H
