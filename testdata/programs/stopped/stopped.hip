// A kernel with known counts, then one that writes where no memory is.
#include <hip/hip_runtime.h>

#include <cstddef>

// 256 calls, 64 of them in the branch.
extern "C" __global__ void counted(unsigned *sum) {
  if (threadIdx.x < 16) {
    atomicAdd(sum, 1);
  }
}

extern "C" __global__ void broken(unsigned *sum, size_t far) { sum[far + threadIdx.x] = 1; }

int main() {
  unsigned *sum;
  if (hipMalloc(&sum, sizeof *sum) != hipSuccess) return 2;
  counted<<<4, 64>>>(sum);
  if (hipDeviceSynchronize() != hipSuccess) return 3;
  broken<<<1, 64>>>(sum, size_t{1} << 40);
  // HIP 7 returns an error, earlier releases end the program.
  return hipDeviceSynchronize() == hipSuccess ? 4 : 5;
}
