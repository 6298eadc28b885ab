// A kernel whose lines all run, but for those that are excluded. A comment gives the rule of each.
#include <hip/hip_runtime.h>

#include <cassert>

enum Mode { ADD, DOUBLE };

__device__ int apply(int value, int mode) {
  switch (mode) {
  case ADD:
    return value + 1;
  case DOUBLE:
    return value * 2;
  default: // excluded: default
    __builtin_unreachable(); // excluded: default
  }
}

__global__ void scale(int *values, int count, int debug) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(i >= 0 && count > 0);
  if (i >= count)
    return;
  if (debug) { // excluded: LCOV_EXCL_START
    values[i] = -1; // excluded: comment
    return; // excluded: comment
  } // excluded: LCOV_EXCL_STOP
  if (values[i] < 0)
    __builtin_trap(); // excluded: default
  if (count > 1000) // LCOV_EXCL_BR_LINE
    values[i] = 0; // excluded: GCOVR_EXCL_LINE
  values[i] = apply(values[i], i % 2);
}

__global__ void dump_state(int *values) { // excluded: function
  values[0] = 0; // excluded: function
} // excluded: function

int main() {
  int host[100], *values;
  for (int i = 0; i < 100; i++)
    host[i] = i;
  if (hipMalloc(&values, sizeof host) != hipSuccess ||
      hipMemcpy(values, host, sizeof host, hipMemcpyHostToDevice) != hipSuccess)
    return 1;
  scale<<<2, 64>>>(values, 100, 0);
  if (hipMemcpy(host, values, sizeof host, hipMemcpyDeviceToHost) != hipSuccess)
    return 1;
  if (host[99] != 198)
    dump_state<<<1, 1>>>(values);
  return hipDeviceSynchronize();
}
