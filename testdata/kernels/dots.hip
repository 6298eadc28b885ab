// Products of many small integers at once, and sums of two numbers in one word: dot products with
// and without saturation, and packed atomics.
#include "half.h"

typedef short short2_t __attribute__((ext_vector_type(2)));
typedef u16 ushort2_t __attribute__((ext_vector_type(2)));

#if defined(__GFX11__) || defined(__GFX12__)
#define RDNA
#endif
#if defined(RDNA) || defined(__GFX10__) || defined(__gfx906__) || defined(__gfx908__)
#define LACKS_PACKED_ATOMICS
#endif

// The exact sum of products of numbers with `bits` bits each.
static inline HELPER i64 products(u32 a, u32 b, int bits, bool with_sign) {
  i64 sum = 0;
  for (int place = 0; place < 32; place += bits) {
    i64 x = a >> place & ((1ll << bits) - 1);
    i64 y = b >> place & ((1ll << bits) - 1);
    if (with_sign && x >> (bits - 1))
      x -= 1ll << bits;
    if (with_sign && y >> (bits - 1))
      y -= 1ll << bits;
    sum += x * y;
  }
  return sum;
}
static inline HELPER int limited(i64 sum) {
  return static_cast<int>(sum > 0x7fffffff ? 0x7fffffff : sum < -0x80000000ll ? -0x80000000ll : sum);
}
static inline HELPER u32 limited_unsigned(i64 sum) {
  return static_cast<u32>(sum > 0xffffffffll ? 0xffffffffll : sum);
}

// RDNA has no instruction for the products of two numbers of 16 bits.
#if defined(__AMDGCN__) && !defined(RDNA)

static inline HELPER int dot2(u32 a, u32 b, int c) {
  return __builtin_amdgcn_sdot2(__builtin_bit_cast(short2_t, a), __builtin_bit_cast(short2_t, b),
                                c, false);
}
static inline HELPER u32 dot2(u32 a, u32 b, u32 c) {
  return __builtin_amdgcn_udot2(__builtin_bit_cast(ushort2_t, a), __builtin_bit_cast(ushort2_t, b),
                                c, false);
}
static inline HELPER int dot2_limited(u32 a, u32 b, int c) {
  return __builtin_amdgcn_sdot2(__builtin_bit_cast(short2_t, a), __builtin_bit_cast(short2_t, b),
                                c, true);
}
static inline HELPER u32 dot2_limited(u32 a, u32 b, u32 c) {
  return __builtin_amdgcn_udot2(__builtin_bit_cast(ushort2_t, a), __builtin_bit_cast(ushort2_t, b),
                                c, true);
}

#else

static inline HELPER int dot2(u32 a, u32 b, int c) {
  return static_cast<int>(products(a, b, 16, true) + c);
}
static inline HELPER u32 dot2(u32 a, u32 b, u32 c) {
  return static_cast<u32>(products(a, b, 16, false) + c);
}
static inline HELPER int dot2_limited(u32 a, u32 b, int c) {
  return limited(products(a, b, 16, true) + c);
}
static inline HELPER u32 dot2_limited(u32 a, u32 b, u32 c) {
  return limited_unsigned(products(a, b, 16, false) + c);
}

#endif

#if defined(__AMDGCN__) && !defined(RDNA)

static inline HELPER int dot4(u32 a, u32 b, int c) {
  return __builtin_amdgcn_sdot4(static_cast<int>(a), static_cast<int>(b), c, false);
}
static inline HELPER u32 dot4(u32 a, u32 b, u32 c) {
  return __builtin_amdgcn_udot4(a, b, c, false);
}
static inline HELPER int dot4_limited(u32 a, u32 b, int c) {
  return __builtin_amdgcn_sdot4(static_cast<int>(a), static_cast<int>(b), c, true);
}
static inline HELPER u32 dot4_limited(u32 a, u32 b, u32 c) {
  return __builtin_amdgcn_udot4(a, b, c, true);
}
static inline HELPER int dot8(u32 a, u32 b, int c) {
  return __builtin_amdgcn_sdot8(static_cast<int>(a), static_cast<int>(b), c, false);
}
static inline HELPER u32 dot8(u32 a, u32 b, u32 c) {
  return __builtin_amdgcn_udot8(a, b, c, false);
}

#elif defined(RDNA)

static inline HELPER int dot4(u32 a, u32 b, int c) {
  return __builtin_amdgcn_sudot4(true, static_cast<int>(a), true, static_cast<int>(b), c, false);
}
static inline HELPER u32 dot4(u32 a, u32 b, u32 c) {
  return __builtin_amdgcn_udot4(a, b, c, false);
}
static inline HELPER int dot4_limited(u32 a, u32 b, int c) {
  return __builtin_amdgcn_sudot4(true, static_cast<int>(a), true, static_cast<int>(b), c, true);
}
static inline HELPER u32 dot4_limited(u32 a, u32 b, u32 c) {
  return __builtin_amdgcn_udot4(a, b, c, true);
}
static inline HELPER int dot8(u32 a, u32 b, int c) {
  return __builtin_amdgcn_sudot8(true, static_cast<int>(a), true, static_cast<int>(b), c, false);
}
static inline HELPER u32 dot8(u32 a, u32 b, u32 c) {
  return __builtin_amdgcn_udot8(a, b, c, false);
}

#else

static inline HELPER int dot4(u32 a, u32 b, int c) {
  return static_cast<int>(products(a, b, 8, true) + c);
}
static inline HELPER u32 dot4(u32 a, u32 b, u32 c) {
  return static_cast<u32>(products(a, b, 8, false) + c);
}
static inline HELPER int dot4_limited(u32 a, u32 b, int c) {
  return limited(products(a, b, 8, true) + c);
}
static inline HELPER u32 dot4_limited(u32 a, u32 b, u32 c) {
  return limited_unsigned(products(a, b, 8, false) + c);
}
static inline HELPER int dot8(u32 a, u32 b, int c) {
  return static_cast<int>(products(a, b, 4, true) + c);
}
static inline HELPER u32 dot8(u32 a, u32 b, u32 c) {
  return static_cast<u32>(products(a, b, 4, false) + c);
}

#endif

#if defined(__AMDGCN__) && !defined(LACKS_PACKED_ATOMICS)
static inline HELPER void add_atomically(half2 *place, half2 value) {
  __builtin_amdgcn_global_atomic_fadd_v2f16(
      (__attribute__((address_space(1))) half2 *)place, value);
}
#elif defined(LACKS_PACKED_ATOMICS)
static inline HELPER void add_atomically(half2 *place, half2 value) {
  u32 *word = reinterpret_cast<u32 *>(place);
  u32 old = __atomic_load_n(word, __ATOMIC_RELAXED);
  u32 sum;
  do
    sum = __builtin_bit_cast(u32, __builtin_bit_cast(half2, old) + value);
  while (!__atomic_compare_exchange_n(word, &old, sum, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}
#else
static inline HELPER void add_atomically(half2 *place, half2 value) { *place += value; }
#endif

__global__ void words(const u32 *a, const u32 *b, u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  u32 x = a[i];
  u32 y = b[i];
  int sum = 0;
  u32 unsigned_sum = 0;
  // Each work-item continues with the words after its own.
  for (u32 k = 0; k < 4; ++k) {
    u32 next = b[(i + k) % n];
    sum = dot4(x, next, sum);
    unsigned_sum = dot4(x, next, unsigned_sum);
    sum = dot2(next, y, sum);
    unsigned_sum = dot2(next, y, unsigned_sum);
    if (sum < 0)
      sum = dot8(next, x, sum);
    else
      unsigned_sum = dot8(next, x, unsigned_sum);
  }
  out[2 * i] = static_cast<u32>(sum);
  out[2 * i + 1] = unsigned_sum;
}
REGISTER_KERNEL(words);

__global__ void limits(const u32 *a, const u32 *b, u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  int start = static_cast<int>(a[n - 1 - i]);
  out[4 * i] = static_cast<u32>(dot2_limited(a[i], b[i], start));
  out[4 * i + 1] = dot2_limited(a[i], b[i], static_cast<u32>(start));
  out[4 * i + 2] = static_cast<u32>(dot4_limited(a[i], b[i], start));
  out[4 * i + 3] = dot4_limited(a[i], b[i], static_cast<u32>(start));
}
REGISTER_KERNEL(limits);

// Counts in sixteen places, two numbers in each. All are small enough that their order decides
// nothing.
__global__ void tally(const u32 *a, u32 *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  half2 one = {static_cast<half>(1.0f), static_cast<half>(static_cast<float>(a[i] & 3))};
  half2 *places = reinterpret_cast<half2 *>(out);
  add_atomically(places + (a[i] >> 8 & 15), one);
}
REGISTER_KERNEL(tally);
