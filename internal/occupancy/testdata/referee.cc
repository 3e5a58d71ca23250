// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's calculator, host only: a line of numbers in, a line of answers out.
#include <cuda_occupancy.h>

#include <stdio.h>

static size_t a_thread; // bytes of dynamic shared memory a thread

static size_t dynamic_of(int threads)
{
	return a_thread * (size_t)threads;
}

int main()
{
	cudaOccDeviceProp d;
	cudaOccFuncAttributes f;
	cudaOccDeviceState s;
	int threads, opt_in, carveout;
	size_t dynamic;

	while (scanf("%d %d %d %d %d %d %d %zu %zu %zu %zu %d %d %zu %d %zu %d %d %d %zu %zu", &d.computeMajor, &d.computeMinor,
		     &d.maxThreadsPerBlock, &d.maxThreadsPerMultiprocessor, &d.regsPerBlock, &d.regsPerMultiprocessor, &d.warpSize,
		     &d.sharedMemPerBlock, &d.sharedMemPerMultiprocessor, &d.sharedMemPerBlockOptin, &d.reservedSharedMemPerBlock,
		     &f.maxThreadsPerBlock, &f.numRegs, &f.sharedSizeBytes, &opt_in, &f.maxDynamicSharedSizeBytes, &f.numBlockBarriers,
		     &carveout, &threads, &dynamic, &a_thread) == 21) {
		cudaOccResult r;
		int grid = 0, best = 0;

		d.numSms = 8;
		f.shmemLimitConfig = opt_in ? FUNC_SHMEM_LIMIT_OPTIN : FUNC_SHMEM_LIMIT_DEFAULT;
		s.carveoutConfig = carveout;
		cudaOccError e = cudaOccMaxActiveBlocksPerMultiprocessor(&r, &d, &f, &s, threads, dynamic);
		if (e != CUDA_OCC_SUCCESS) {
			printf("error\n");
			continue;
		}
		e = cudaOccMaxPotentialOccupancyBlockSize(&grid, &best, &d, &f, &s, dynamic_of, 0);
		if (e != CUDA_OCC_SUCCESS)
			best = -1;
		printf("%d %u %d %d %d %d %d %d %zu %d\n", r.activeBlocksPerMultiprocessor, r.limitingFactors & 31u, r.blockLimitWarps,
		       r.blockLimitRegs, r.blockLimitSharedMem, r.blockLimitBlocks, r.blockLimitBarriers, r.allocatedRegistersPerBlock,
		       r.allocatedSharedMemPerBlock, best);
	}
	return 0;
}
