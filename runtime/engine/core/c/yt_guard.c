/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE

#include "yt_guard.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

int yt_guard_mode;

void yt_guard_init(void)
{
	long rc;

	if (__atomic_load_n(&yt_guard_mode, __ATOMIC_ACQUIRE) != 0)
		return;
	rc = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
	if (rc == 0) /* qemu and old kernels may accept the first call and reject the second */
		rc = syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	__atomic_store_n(&yt_guard_mode, rc == 0 ? 1 : 2, __ATOMIC_RELEASE);
}

void yt_guard_heavy(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (yt_guard_mode == 1)
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}
