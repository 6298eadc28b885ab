// Half precision for the kernels here: functions that C++ has no operators for. On the device each is
// the instruction of the hardware; on the host, the correctly rounded value. Kernels use only
// arguments for which the two agree.
#pragma once
#include "dev.h"

typedef _Float16 half;
typedef half half2 __attribute__((ext_vector_type(2)));

// The smaller and the larger number of each lane. clang 23 deprecates the names that clang up to 19
// has.
#if __has_builtin(__builtin_elementwise_minnum)
static inline HELPER half2 half_min(half2 a, half2 b) { return __builtin_elementwise_minnum(a, b); }
static inline HELPER half2 half_max(half2 a, half2 b) { return __builtin_elementwise_maxnum(a, b); }
#else
static inline HELPER half2 half_min(half2 a, half2 b) { return __builtin_elementwise_min(a, b); }
static inline HELPER half2 half_max(half2 a, half2 b) { return __builtin_elementwise_max(a, b); }
#endif

#ifdef __AMDGCN__

static inline HELPER half half_fma(half a, half b, half c) { return __builtin_fmaf16(a, b, c); }
static inline HELPER half half_sqrt(half a) { return __builtin_amdgcn_sqrth(a); }
static inline HELPER half half_rsq(half a) { return __builtin_amdgcn_rsqh(a); }
static inline HELPER half half_rcp(half a) { return __builtin_amdgcn_rcph(a); }
static inline HELPER half half_sin_turns(half a) { return __builtin_amdgcn_sinh(a); }
static inline HELPER half half_cos_turns(half a) { return __builtin_amdgcn_cosh(a); }
static inline HELPER half half_exp2(half a) { return __builtin_exp2f16(a); }
static inline HELPER half half_log2(half a) { return __builtin_log2f16(a); }
static inline HELPER half half_fract(half a) { return __builtin_amdgcn_fracth(a); }
static inline HELPER half half_mantissa(half a) { return __builtin_amdgcn_frexp_manth(a); }
static inline HELPER int half_exponent(half a) { return __builtin_amdgcn_frexp_exph(a); }
static inline HELPER half half_scaled(half a, int by) { return __builtin_amdgcn_ldexph(a, by); }
static inline HELPER half half_middle(half a, half b, half c) {
  return __builtin_amdgcn_fmed3h(a, b, c);
}
// Rounded toward zero, the first in the low half.
static inline HELPER u32 half_pack_toward_zero(float a, float b) {
  return __builtin_bit_cast(u32, __builtin_amdgcn_cvt_pkrtz(a, b));
}
static inline HELPER float half_dot(half2 a, half2 b, float c) {
#ifdef __gfx1250__ // It has no such instruction.
  return float(double(a.x) * double(b.x) + double(a.y) * double(b.y) + double(c));
#else
  return __builtin_amdgcn_fdot2(a, b, c, false);
#endif
}

#else

#include <cmath>

static inline HELPER half half_fma(half a, half b, half c) {
  return static_cast<half>(std::fma(double(a), double(b), double(c)));
}
static inline HELPER half half_sqrt(half a) { return static_cast<half>(std::sqrt(double(a))); }
static inline HELPER half half_rsq(half a) { return static_cast<half>(1 / std::sqrt(double(a))); }
static inline HELPER half half_rcp(half a) { return static_cast<half>(1 / double(a)); }
static inline HELPER half half_sin_turns(half a) {
  return static_cast<half>(std::sin(2 * M_PI * double(a)));
}
static inline HELPER half half_cos_turns(half a) {
  return static_cast<half>(std::cos(2 * M_PI * double(a)));
}
static inline HELPER half half_exp2(half a) { return static_cast<half>(std::exp2(double(a))); }
static inline HELPER half half_log2(half a) { return static_cast<half>(std::log2(double(a))); }
static inline HELPER half half_fract(half a) {
  return static_cast<half>(double(a) - std::floor(double(a)));
}
static inline HELPER half half_mantissa(half a) {
  int exponent;
  return static_cast<half>(std::frexp(double(a), &exponent));
}
static inline HELPER int half_exponent(half a) {
  int exponent;
  std::frexp(double(a), &exponent);
  return exponent;
}
static inline HELPER half half_scaled(half a, int by) {
  return static_cast<half>(std::ldexp(double(a), by));
}
static inline HELPER half half_middle(half a, half b, half c) {
  double low = std::fmin(double(a), double(b));
  double high = std::fmax(double(a), double(b));
  return static_cast<half>(std::fmax(low, std::fmin(high, double(c))));
}
static inline HELPER u32 half_toward_zero(float value) {
  half nearest = static_cast<half>(value);
  u16 bits = __builtin_bit_cast(u16, nearest);
  return std::fabs(float(nearest)) > std::fabs(value) ? bits - 1u : bits;
}
static inline HELPER u32 half_pack_toward_zero(float a, float b) {
  return half_toward_zero(a) | half_toward_zero(b) << 16;
}
static inline HELPER float half_dot(half2 a, half2 b, float c) {
  return float(double(a.x) * double(b.x) + double(a.y) * double(b.y) + double(c));
}

#endif
