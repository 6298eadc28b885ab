// Kernels and device functions that are templates: the same lines counted once per instantiation,
// under long mangled names.
#include "dev.h"

template <class T> __device__ T clamp(T value, T low, T high) {
  if (value < low)
    return low;
  if (value > high)
    return high;
  return value;
}

template <class T, int Power> struct Raise {
  static __device__ T of(T value) {
    if constexpr (Power == 0)
      return static_cast<T>(1);
    else
      return value * Raise<T, Power - 1>::of(value);
  }
};

template <class T, int Power> __global__ void polynomial(const T *in, T *out, T bound, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  T raised = Raise<T, Power>::of(in[i]);
  T low = static_cast<T>(-bound);
  out[i] = clamp(raised, low, bound);
}

template __global__ void polynomial<float, 3>(const float *, float *, float, u32);
template __global__ void polynomial<int, 2>(const int *, int *, int, u32);
template __global__ void polynomial<double, 1>(const double *, double *, double, u32);
REGISTER_KERNEL(polynomial<float, 3>);
REGISTER_KERNEL(polynomial<int, 2>);
REGISTER_KERNEL(polynomial<double, 1>);
