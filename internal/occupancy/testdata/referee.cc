// SPDX-License-Identifier: Apache-2.0
//
// NVIDIA's calculator, host only: a line of numbers in, a line of answers out.
#include <cuda_occupancy.h>

#include <stdio.h>

int main()
{
	cudaOccDeviceProp d;
	cudaOccFuncAttributes f;
	cudaOccDeviceState s;
	int threads, opt_in, carveout;
	size_t dynamic;

	while (scanf("%d %d %d %d %d %d %d %zu %zu %zu %zu %d %d %zu %d %zu %d %d %d %zu", &d.computeMajor, &d.computeMinor,
		     &d.maxThreadsPerBlock, &d.maxThreadsPerMultiprocessor, &d.regsPerBlock, &d.regsPerMultiprocessor, &d.warpSize,
		     &d.sharedMemPerBlock, &d.sharedMemPerMultiprocessor, &d.sharedMemPerBlockOptin, &d.reservedSharedMemPerBlock,
		     &f.maxThreadsPerBlock, &f.numRegs, &f.sharedSizeBytes, &opt_in, &f.maxDynamicSharedSizeBytes, &f.numBlockBarriers,
		     &carveout, &threads, &dynamic) == 20) {
		cudaOccResult r;

		d.numSms = 8;
		f.shmemLimitConfig = opt_in ? FUNC_SHMEM_LIMIT_OPTIN : FUNC_SHMEM_LIMIT_DEFAULT;
		s.carveoutConfig = carveout;
		cudaOccError e = cudaOccMaxActiveBlocksPerMultiprocessor(&r, &d, &f, &s, threads, dynamic);
		if (e != CUDA_OCC_SUCCESS) {
			printf("error\n");
			continue;
		}
		printf("%d %u %d %d %d %d %d %d %zu\n", r.activeBlocksPerMultiprocessor, r.limitingFactors & 31u, r.blockLimitWarps,
		       r.blockLimitRegs, r.blockLimitSharedMem, r.blockLimitBlocks, r.blockLimitBarriers, r.allocatedRegistersPerBlock,
		       r.allocatedSharedMemPerBlock);
	}
	return 0;
}
