// Two kernels and the device functions that they call: one by a call, one that is inlined.
#include "../hip.h"

constexpr int ITEMS = 64;

__device__ __noinline__ int called(int value) { return value % 2 ? value * 3 + 1 : value / 2; }

__device__ int inlined(int value) { return value > 3 ? value : -value; }

extern "C" __global__ void first(int *values) { values[threadIdx.x] = called(threadIdx.x); }

extern "C" __global__ void second(int *values) { values[threadIdx.x] += inlined(threadIdx.x); }

int main() {
  int *values = nullptr, found[ITEMS];
  if (hipMalloc(&values, sizeof found) != hipSuccess) {
    return 2;
  }
  first<<<1, ITEMS>>>(values);
  second<<<1, ITEMS>>>(values);
  return hipMemcpy(found, values, sizeof found, hipMemcpyDeviceToHost) != hipSuccess;
}
