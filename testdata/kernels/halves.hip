// Half precision: arithmetic one by one and in pairs, mixed with single precision, conversions,
// comparisons, and the hardware's functions. Every operation has a variable of its own for its
// result: a host without half precision keeps more digits within an expression.
#include "half.h"

__global__ void arithmetic(const float *a, const float *b, u16 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  half x = static_cast<half>(a[i]);
  half y = static_cast<half>(b[i]);
  half sum = x + y;
  half difference = x - y;
  half product = sum * difference;
  half fused = half_fma(x, y, product);
  half chosen = fused < product ? -fused : product;
  if (chosen > static_cast<half>(100.0f)) {
    half halved = chosen * static_cast<half>(0.5f);
    chosen = halved;
  }
  half smaller = __builtin_fminf16(chosen, y);
  half larger = __builtin_fmaxf16(__builtin_fabsf16(x), smaller);
  half rounded = __builtin_floorf16(larger);
  half up = __builtin_ceilf16(smaller);
  half nearest = __builtin_rintf16(chosen);
  half cut = __builtin_truncf16(x);
  half first = rounded - up;
  half second = nearest - cut;
  half middle = half_middle(first, second, x);
  out[i] = __builtin_bit_cast(u16, first);
  out[n + i] = __builtin_bit_cast(u16, second);
  out[2 * n + i] = __builtin_bit_cast(u16, middle);
  out[3 * n + i] = __builtin_bit_cast(u16, fused);
}
REGISTER_KERNEL(arithmetic);

__global__ void functions(const float *in, u16 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  half x = static_cast<half>(in[i]);
  half results[9];
  results[0] = half_sqrt(x);
  results[1] = half_rsq(x);
  results[2] = half_rcp(x);
  results[3] = half_exp2(-x);
  results[4] = half_log2(x);
  results[5] = half_fract(x);
  results[6] = half_scaled(half_mantissa(x), half_exponent(x) - 3);
  // By eighths of a turn.
  half eighths = static_cast<half>(static_cast<float>(i & 31) + 0.5f);
  half turns = eighths * static_cast<half>(0.125f);
  results[7] = half_sin_turns(turns);
  results[8] = half_cos_turns(turns);
  for (u32 number = 0; number < 9; ++number)
    out[number * n + i] = __builtin_bit_cast(u16, results[number]);
}
REGISTER_KERNEL(functions);

// Two at a time.
__global__ void pairs(const float *a, const float *b, u32 *out, u32 n) {
  u32 i = global_x();
  if (2 * i + 1 >= n)
    return;
  half2 x = {static_cast<half>(a[2 * i]), static_cast<half>(a[2 * i + 1])};
  half2 y = {static_cast<half>(b[2 * i]), static_cast<half>(b[2 * i + 1])};
  half2 sum = x + y;
  half2 crossed = {y.y, x.x};
  half2 product = sum * crossed;
  half2 difference = product - y;
  half2 smaller = half_min(difference, x);
  half2 larger = half_max(-smaller, y);
  if (larger.x > larger.y)
    larger = larger.yx;
  out[3 * i] = __builtin_bit_cast(u32, difference);
  out[3 * i + 1] = __builtin_bit_cast(u32, larger);
  half2 packed = {x.y, larger.x};
  out[3 * i + 2] = __builtin_bit_cast(u32, packed);
}
REGISTER_KERNEL(pairs);

// A sum of products in single precision of numbers in half precision, as matrix products have it.
__global__ void mixed(const u16 *a, const u16 *b, float *sums, u16 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  float sum = 0;
  for (u32 k = 0; k < 8; ++k) {
    half x = static_cast<half>(a[(i + k) % n]);
    half y = static_cast<half>(b[(i * 3 + k) % n]);
    sum = __builtin_fmaf(static_cast<float>(x), static_cast<float>(y), sum);
  }
  half2 first = {static_cast<half>(a[i]), static_cast<half>(b[i])};
  half2 second = {static_cast<half>(b[n - 1 - i]), static_cast<half>(a[n - 1 - i])};
  float dot = half_dot(first, second, sum);
  sums[i] = sum;
  sums[n + i] = dot;
  // Multiplied and added in single precision, then rounded.
  half2 scaled;
  scaled.x = static_cast<half>(__builtin_fmaf(static_cast<float>(first.x), 0.5f, sum));
  scaled.y = static_cast<half>(
      __builtin_fmaf(static_cast<float>(first.y), static_cast<float>(second.x), 0.25f));
  out[2 * i] = __builtin_bit_cast(u16, scaled.x);
  out[2 * i + 1] = __builtin_bit_cast(u16, scaled.y);
}
REGISTER_KERNEL(mixed);

__global__ void conversions(const float *in, const int *integers, u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  half x = static_cast<half>(in[i]);
  short with_sign = static_cast<short>(x);
  u16 without = static_cast<u16>(__builtin_fabsf16(x));
  half from_short = static_cast<half>(static_cast<short>(integers[i]));
  half from_unsigned = static_cast<half>(static_cast<u16>(integers[i] & 0x7fff));
  double wide = static_cast<double>(x);
  half narrowed = static_cast<half>(wide * 1.0009765625);
  out[4 * i] = static_cast<u32>(static_cast<int>(with_sign)) ^ static_cast<u32>(without) << 16;
  half2 both = {from_short, from_unsigned};
  out[4 * i + 1] = __builtin_bit_cast(u32, both);
  out[4 * i + 2] = half_pack_toward_zero(in[i], in[n - 1 - i]);
  out[4 * i + 3] = __builtin_bit_cast(u16, narrowed);
}
REGISTER_KERNEL(conversions);
