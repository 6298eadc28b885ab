// Compiled by the tests without HIP's headers; what ran is made up by them.
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))

__device__ __attribute__((noinline)) int doubled(int value) {
  return value * 2;
}

extern "C" __global__ void kernel(int *value) {
  if (*value > 3) {
    *value = doubled(*value);
  } else {
    *value = 0;
  }
}
