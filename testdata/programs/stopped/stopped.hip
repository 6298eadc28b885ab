// A kernel with known counts, then one that writes where no memory is, or one that waits for a while and one that never
// ends.
#include "../hip.h"

#include <cstddef>

// 256 calls, 64 of them in the branch.
extern "C" __global__ void counted(unsigned *sum) {
  if (threadIdx.x < 16) {
    atomicAdd(sum, 1);
  }
}

static __device__ __forceinline__ void write(unsigned *to) {
  *to = 1;
}

extern "C" __global__ void broken(unsigned *sum, size_t far) { write(sum + far + threadIdx.x); }

// The first wave waits at a barrier for the second one, which waits for what the first one writes behind it.
extern "C" __global__ void deadlocked() {
  __shared__ volatile int met;
  met = 0;
  __syncthreads();
  if (threadIdx.x < 64) {
    __syncthreads();
    met = 1;
  }
  while (!met) __builtin_amdgcn_s_sleep(1);
}

extern "C" __global__ void waits(unsigned *sum) {
  for (int turn = 0; turn < 300000; ++turn) __builtin_amdgcn_s_sleep(1);
  *sum = 0;
}

int main(int count, char **) {
  unsigned *sum;
  if (hipMalloc(&sum, sizeof *sum) != hipSuccess) return 2;
  counted<<<4, 64>>>(sum);
  if (hipDeviceSynchronize() != hipSuccess) return 3;
  if (count > 1) {
    waits<<<1, 64>>>(sum);
    deadlocked<<<1, 128>>>();
    return hipDeviceSynchronize() == hipSuccess ? 6 : 7;
  }
  broken<<<1, 64>>>(sum, size_t{1} << 40);
  // HIP 7 returns an error, earlier releases end the program.
  return hipDeviceSynchronize() == hipSuccess ? 4 : 5;
}
