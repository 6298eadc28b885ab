// Device requests to the host: printf, assert and malloc.
#include <hip/hip_runtime.h>

#include <cassert>
#include <cstring>

#include "check.h"

__global__ void greet(int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) printf("work-item %d of %d: %s %.3f\n", i, count, "half is", i / 2.0);
}

__global__ void insist(int *values, int count) {
  assert(count < 3);
  values[threadIdx.x] = 1;
}

// Each work-item writes into its own memory.
__global__ void allocate(int **blocks, int *sums) {
  int i = threadIdx.x;
  int *block = static_cast<int *>(malloc(64 * sizeof(int)));
  blocks[i] = block;
  if (!block) return;
  int sum = 0;
  for (int k = 0; k < 64; k++) block[k] = i + k;
  for (int k = 0; k < 64; k++) sum += block[k];
  sums[i] = sum;
  free(block);
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (!std::strcmp(what, "printf")) {
    greet<<<3, 70>>>(200);
    CHECK_HIP(hipDeviceSynchronize());
    // A second launch: the service still works.
    greet<<<1, 2>>>(1);
    CHECK_HIP(hipDeviceSynchronize());
  }
  if (!std::strcmp(what, "assert")) {
    int *values;
    CHECK_HIP(hipMalloc(&values, 4096));
    insist<<<1, 64>>>(values, 2);
    CHECK_HIP(hipDeviceSynchronize());
    std::puts("two are fine");
    std::fflush(stdout);
    insist<<<1, 64>>>(values, 3);
    CHECK_HIP(hipDeviceSynchronize());
  }
  if (!std::strcmp(what, "malloc")) {
    int **blocks, *sums, read[64];
    CHECK_HIP(hipMalloc(&blocks, 64 * sizeof(int *)));
    CHECK_HIP(hipMalloc(&sums, sizeof read));
    allocate<<<1, 64>>>(blocks, sums);
    CHECK_HIP(hipMemcpy(read, sums, sizeof read, hipMemcpyDeviceToHost));
    for (int i = 0; i < 64; i++) CHECK(read[i] == 64 * i + 63 * 32);
  }
  return finish();
}
