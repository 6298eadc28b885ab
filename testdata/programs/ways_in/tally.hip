// One kernel, and the function that runs it: in the program itself, or in a shared library.
// TALLY_KERNEL renames the kernel, so that two of them can be in one process.
#include "tally.h"
#include "../hip.h"

#ifndef TALLY_KERNEL
#define TALLY_KERNEL tally_kernel
#endif

extern "C" __global__ void TALLY_KERNEL(int *tallies, int limit) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < limit) {
    tallies[i] += 1;
  }
}

#define CHECK(call)                                                                                                    \
  if (hipError_t error = (call)) {                                                                                     \
    return error;                                                                                                      \
  }

extern "C" __attribute__((visibility("default"))) int run_tally(int times) {
  int tallies[WORK_ITEMS] = {};
  int *on_device = nullptr;
  CHECK(hipMalloc(reinterpret_cast<void **>(&on_device), sizeof(tallies)));
  CHECK(hipMemcpy(on_device, tallies, sizeof(tallies), hipMemcpyHostToDevice));
  for (int i = 0; i < times; i++) {
    TALLY_KERNEL<<<WORK_ITEMS / 64, 64>>>(on_device, TALLIED);
  }
  CHECK(hipMemcpy(tallies, on_device, sizeof(tallies), hipMemcpyDeviceToHost));
  CHECK(hipFree(on_device));
  for (int i = 0; i < WORK_ITEMS; i++) {
    if (tallies[i] != (i < TALLIED ? times : 0)) {
      return 1000 + i;
    }
  }
  return 0;
}
