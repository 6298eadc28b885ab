// Integers that saturate instead of wrapping, and values that change places: instructions with the
// clamp modifier, and v_swap_b32.
#include "dev.h"

typedef short i16;
typedef i16 i16x2 __attribute__((ext_vector_type(2)));
typedef u16 u16x2 __attribute__((ext_vector_type(2)));

// Sums and differences of two numbers; about half of them do not fit.
template <class T>
static __device__ T limited(T a, T b) {
  T sum = __builtin_elementwise_add_sat(a, b);
  T difference = __builtin_elementwise_sub_sat(b, a);
  if (sum < difference)
    return __builtin_elementwise_sub_sat(difference, sum);
  return __builtin_elementwise_add_sat(sum, difference);
}

__global__ void words(const u32 *a, const u32 *b, u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u32 without_sign = limited(a[i], b[i]);
  int with_sign = limited(static_cast<int>(a[i]), static_cast<int>(b[i]));
  out[i] = without_sign ^ static_cast<u32>(with_sign) << 1;
}
REGISTER_KERNEL(words);

__global__ void shorts(const u32 *a, const u32 *b, u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u16 without_sign = limited(static_cast<u16>(a[i]), static_cast<u16>(b[i]));
  i16 with_sign = limited(static_cast<i16>(a[i]), static_cast<i16>(b[i]));
  out[i] = without_sign | static_cast<u32>(static_cast<u16>(with_sign)) << 16;
}
REGISTER_KERNEL(shorts);

__global__ void pairs(const u32 *a, const u32 *b, u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u16x2 first = __builtin_bit_cast(u16x2, a[i]);
  u16x2 second = __builtin_bit_cast(u16x2, b[i]);
  u16x2 without_sign = __builtin_elementwise_add_sat(first, second) -
                       __builtin_elementwise_sub_sat(first, second);
  i16x2 with_sign = __builtin_elementwise_sub_sat(__builtin_bit_cast(i16x2, a[i]),
                                                  __builtin_bit_cast(i16x2, b[i]));
  with_sign = __builtin_elementwise_add_sat(with_sign, __builtin_bit_cast(i16x2, without_sign));
  out[i] = __builtin_bit_cast(u32, with_sign);
}
REGISTER_KERNEL(pairs);

// Each work-item sorts four numbers. The two that are out of order change places.
__global__ void sorted(const u32 *in, u32 *out, u32 n) {
  u32 i = global_x();
  if (4 * i >= n)
    return;
  u32 first = in[4 * i];
  u32 second = in[4 * i + 1];
  u32 third = in[4 * i + 2];
  u32 fourth = in[4 * i + 3];
  u32 rounds = 0;
  while (first > second || second > third || third > fourth) {
    u32 kept = first;
    if (second > third) {
      kept = second;
      second = third;
      third = kept;
    } else if (first > second) {
      first = second;
      second = kept;
    } else {
      kept = third;
      third = fourth;
      fourth = kept;
    }
    ++rounds;
  }
  out[4 * i] = first;
  out[4 * i + 1] = second;
  out[4 * i + 2] = third;
  out[4 * i + 3] = fourth ^ rounds;
}
REGISTER_KERNEL(sorted);

// Two values are exchanged as often as the input says.
__global__ void turns(const u32 *in, u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u32 mine = in[i];
  u32 other = i;
  for (u32 left = mine & 15; left > 0; --left) {
    u32 kept = mine;
    mine = other;
    other = kept;
  }
  out[2 * i] = mine;
  out[2 * i + 1] = other;
}
REGISTER_KERNEL(turns);
