// Float and double arithmetic that is exactly rounded on both sides: division, square root, fused
// multiply-add, minimum and maximum, floor, conversions. Nothing is contracted.
#include "dev.h"

__global__ void single_precision(const float *a, const float *b, float *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  float x = a[i];
  float y = b[i];
  float r;
  if (y != 0.0f)
    r = x / y;
  else
    r = 0.0f;
  if (r > 1.0f)
    r = __builtin_sqrtf(r);
  else if (r < -1.0f)
    r = __builtin_fabsf(r);
  r = __builtin_fmaf(r, x, y);
  r = __builtin_fminf(__builtin_fmaxf(r, -100.0f), 100.0f);
  r += __builtin_floorf(x) + static_cast<float>(static_cast<int>(y));
  out[i] = r;
}
REGISTER_KERNEL(single_precision);

__global__ void double_precision(const double *a, const double *b, double *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  double x = a[i];
  if (x > 2.0)
    x = x * 1.5 + 1.0;
  else
    x = x - 0.25;
  double quotient = b[i] == 0.0 ? x / 3.0 : x / b[i];
  if (quotient < 0.0)
    quotient = -quotient;
  out[i] = __builtin_fma(quotient, x, 0.5) - __builtin_sqrt(quotient);
}
REGISTER_KERNEL(double_precision);

__global__ void conversions(const double *a, float *single, int *integer, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  float narrow = static_cast<float>(a[i]);
  single[i] = narrow * 0.5f + static_cast<float>(i);
  int whole = static_cast<int>(a[i]);
  integer[i] = whole < 0 ? -whole : whole + static_cast<int>(static_cast<u32>(narrow * narrow));
}
REGISTER_KERNEL(conversions);
