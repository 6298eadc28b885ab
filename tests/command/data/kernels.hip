// Kernels with mangled names, compiled by the tests without HIP's headers.
#define __global__ __attribute__((global))

__global__ void scale(float *values, float factor) {
  if (factor != 1) {
    *values *= factor;
  } else {
    *values += 1;
  }
}

template <class T>
__global__ void fill(T *values, T value) {
  *values = value;
}
template __global__ void fill<int>(int *, int);
