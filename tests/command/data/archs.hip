// Compiled by the tests without HIP's headers; it is not the same on every arch.
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))

__device__ __attribute__((noinline)) int scaled(int value) {
#ifdef __gfx942__
  if (value > 3) {
    return value * 2;
  }
#else
  value++;
#endif
  return value;
}

template <class T> __device__ __attribute__((noinline)) T sum(T a, T b) {
  if (a < b) {
    return b;
  }
  return a + b;
}

extern "C" __global__ void scale(int *value) {
  if (*value > 3) {
    *value = scaled(*value);
  } else {
    *value = 0;
  }
}

extern "C" __global__ void add(int *value, double *number) {
  *value = sum(*value, 1);
  *number = sum(*number, 2.0);
}
