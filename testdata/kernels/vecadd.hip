// The simplest kernels: a bounds check around a load, an add and a store; a fused multiply-add
// after an early return.
#include "dev.h"

__global__ void vecadd(const float *a, const float *b, float *c, u32 n) {
  u32 i = global_x();
  if (i < n) {
    c[i] = a[i] + b[i];
  }
}
REGISTER_KERNEL(vecadd);

__global__ void saxpy(float k, const float *x, float *y, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  y[i] = __builtin_fmaf(k, x[i], y[i]);
}
REGISTER_KERNEL(saxpy);
