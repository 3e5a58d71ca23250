// SPDX-License-Identifier: Apache-2.0
//
// faults.cu - injects the faults of yt_faults.h on a GPU, in builds with YT_FAULTS. In release
// builds only the empty functions at the end exist.
//
// A hang is a kernel that ends after 2 s of the GPU's clock, or when the CPU sets its flag,
// because killing a process with an endless kernel has wedged cards. Only the CPU backend
// implements "slow:".
#include "device.h"

#ifdef YT_FAULTS

static __global__ void hang_kernel(const volatile uint32_t *stop, uint64_t ns)
{
	uint64_t start, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
	do {
		__nanosleep(1000);
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while (now - start < ns && *stop == 0);
}

static __global__ void trap_kernel(void)
{
	asm volatile("trap;");
}

static __global__ void flip_kernel(uint8_t *at, uint8_t bit)
{
	*at ^= bit;
}

yt_status cuda_fault_inject(yt_device *d, const char *spec, yt_error *err)
{
	yt_faults faults;
	void *flag = NULL;

	if (d == NULL || spec == NULL)
		return yt_fail(err, YT_E_INVALID, "fault_inject: device and specification are required");
	yt_status rc = yt_faults_parse(spec, yt_now_ns(), &faults, err);
	for (uint32_t i = 0; rc == YT_OK && i < faults.n; i++)
		if (faults.fault[i].what == YT_FAULT_SLOW)
			rc = yt_fail(err, YT_E_NOT_SUPPORTED, "fault_inject: slow: only the CPU backend slows down");
	if (rc != YT_OK)
		return rc;
	locked hold(d);
	if (d->fault_flag == NULL && faults.n != 0) {
		cudaError_t e = cudaHostAlloc(&flag, sizeof(uint32_t), cudaHostAllocMapped | cudaHostAllocPortable);
		if (e != cudaSuccess)
			return yt_fail_cuda(d, err, e, "fault_inject: flag");
		d->fault_flag = (uint32_t *)flag;
	}
	if (d->fault_flag != NULL) // ends a hang, or re-arms the flag
		*(volatile uint32_t *)d->fault_flag = faults.n == 0;
	d->faults = faults;
	return yt_ok(err);
}

static yt_status alive(yt_device *d, yt_error *err)
{
	if (d->faults.n != 0 && d->dead.code == YT_OK &&
	    yt_faults_due(&d->faults, YT_FAULT_LOST, 0, yt_now_ns(), "", "") != NULL)
		yt_report(&d->dead, YT_E_DEVICE_LOST, 0, 1, "injected fault: the device is lost");
	if (d->dead.code != YT_OK && err != NULL)
		*err = d->dead;
	return d->dead.code;
}

yt_status yt_fault_before(yt_stream *s, const yt_cmd *c, yt_error *err)
{
	yt_device *d = s->dev;
	uint64_t now = yt_now_ns();
	yt_fault *f;

	if (d->faults.n == 0 || c->op == YT_OP_RECORD)
		return YT_OK;
	yt_status rc = alive(d, err);
	if (rc != YT_OK)
		return rc;
	f = yt_faults_due(&d->faults, YT_FAULT_HANG, 0, now, yt_op_name(c->op), s->name);
	if (f != NULL) {
		void *flag = NULL;
		cudaError_t e = cudaHostGetDevicePointer(&flag, d->fault_flag, 0);

		if (e == cudaSuccess) {
			hang_kernel<<<1, 1, 0, s->handle>>>((const volatile uint32_t *)flag, f->hang_ns);
			e = cudaGetLastError();
		}
		if (e != cudaSuccess)
			return yt_fail_cuda(d, err, e, "injected hang");
	}
	if (yt_faults_due(&d->faults, YT_FAULT_LAUNCH, 0, now, yt_op_name(c->op), s->name) != NULL) {
		trap_kernel<<<1, 1, 0, s->handle>>>();
		cudaError_t e = cudaGetLastError();
		if (e != cudaSuccess)
			return yt_fail_cuda(d, err, e, "injected fault");
	}
	return YT_OK;
}

yt_status yt_fault_after(yt_stream *s, const yt_cmd *c, uint8_t *dst, yt_error *err)
{
	yt_device *d = s->dev;
	yt_fault *f;

	if (d->faults.n == 0 || c->op != YT_OP_COPY || c->dst.len == 0)
		return YT_OK;
	f = yt_faults_due(&d->faults, YT_FAULT_CORRUPT, c->dst.len, yt_now_ns(), "copy", s->name);
	if (f == NULL)
		return YT_OK;
	yt_fault_random(f);
	flip_kernel<<<1, 1, 0, s->handle>>>(dst + f->random % c->dst.len, (uint8_t)(1u << (f->random >> 60 & 7)));
	cudaError_t e = cudaGetLastError();
	return e != cudaSuccess ? yt_fail_cuda(d, err, e, "injected corruption") : YT_OK;
}

yt_status yt_fault_alloc(yt_device *d, uint64_t bytes, const char *what, yt_error *err)
{
	yt_status rc = alive(d, err);

	if (rc == YT_OK && d->faults.n != 0 && yt_faults_due(&d->faults, YT_FAULT_OOM, bytes, yt_now_ns(), "", "") != NULL)
		rc = yt_fail(err, YT_E_OOM, "%s: injected fault: no memory for %llu bytes", what, (unsigned long long)bytes);
	return rc;
}

void yt_fault_end(yt_device *d)
{
	if (d->fault_flag != NULL && d->dead.code == YT_OK)
		cudaFreeHost(d->fault_flag);
}

#else

yt_status yt_fault_before(yt_stream *, const yt_cmd *, yt_error *)
{
	return YT_OK;
}

yt_status yt_fault_after(yt_stream *, const yt_cmd *, uint8_t *, yt_error *)
{
	return YT_OK;
}

yt_status yt_fault_alloc(yt_device *, uint64_t, const char *, yt_error *)
{
	return YT_OK;
}

void yt_fault_end(yt_device *)
{
}

#endif
