// Compiled by the tests without HIP's headers: conditions for MC/DC.
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))

__device__ __attribute__((noinline)) bool within(int value, int low, int high) {
  return value >= low && (value < high || low == high);
}

extern "C" __global__ void select(int *value, int low, int high) {
  for (int i = 0; i < 4; ++i) {
    if (within(value[i], low, high) && value[i] != 3) {
      value[i] = 1;
    } else {
      value[i] = 0;
    }
  }
}
