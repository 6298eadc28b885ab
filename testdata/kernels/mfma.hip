// Matrix products by the matrix instructions. A wave computes a tile of the product: the lanes read
// their elements of A and B and write their elements of the result, in the layouts that AMD's samples
// use. The host adds the products up. All sums are exact.
#include "half.h"

typedef signed char i8;
typedef int Int4 __attribute__((ext_vector_type(4)));
typedef float Float4 __attribute__((ext_vector_type(4)));
typedef float Float16 __attribute__((ext_vector_type(16)));
typedef double Double4 __attribute__((ext_vector_type(4)));
typedef half Half4 __attribute__((ext_vector_type(4)));
typedef short Short4 __attribute__((ext_vector_type(4)));
typedef short Short2 __attribute__((ext_vector_type(2)));


#ifdef __AMDGCN__

// A vector of zeros.
static inline HELPER Float16 zeros() {
  Float16 all;
  for (int n = 0; n < 16; ++n)
    all[n] = 0;
  return all;
}

static inline HELPER Float4 singles16(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  Float4 sums = {0, 0, 0, 0};
  for (u32 k = lane / 16; k < depth; k += 4)
    sums = __builtin_amdgcn_mfma_f32_16x16x4f32(a[lane % 16 * depth + k], b[k * 16 + lane % 16],
                                                sums, 0, 0, 0);
  return sums;
}
static inline HELPER Float16 singles32(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  Float16 sums = zeros();
  for (u32 k = lane / 32; k < depth; k += 2)
    sums = __builtin_amdgcn_mfma_f32_32x32x2f32(a[lane % 32 * depth + k], b[k * 32 + lane % 32],
                                                sums, 0, 0, 0);
  return sums;
}
static inline HELPER Float4 halves16(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  Float4 sums = {0, 0, 0, 0};
  for (u32 k = lane / 16 * 4; k < depth; k += 16) {
    Half4 x, y;
    for (u32 n = 0; n < 4; ++n) {
      x[n] = static_cast<half>(a[lane % 16 * depth + k + n]);
      y[n] = static_cast<half>(b[(k + n) * 16 + lane % 16]);
    }
    sums = __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, sums, 0, 0, 0);
  }
  return sums;
}
static inline HELPER Float16 halves32(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  Float16 sums = zeros();
  for (u32 k = lane / 32 * 4; k < depth; k += 8) {
    Half4 x, y;
    for (u32 n = 0; n < 4; ++n) {
      x[n] = static_cast<half>(a[lane % 32 * depth + k + n]);
      y[n] = static_cast<half>(b[(k + n) * 32 + lane % 32]);
    }
    sums = __builtin_amdgcn_mfma_f32_32x32x8f16(x, y, sums, 0, 0, 0);
  }
  return sums;
}
// The high half of a number in single precision.
static inline HELPER short brain(int value) {
  return static_cast<short>(__builtin_bit_cast(u32, static_cast<float>(value)) >> 16);
}
static inline HELPER Float4 brains16(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  Float4 sums = {0, 0, 0, 0};
#ifdef __gfx908__
  for (u32 k = lane / 16 * 2; k < depth; k += 8) {
    Short2 x, y;
    for (u32 n = 0; n < 2; ++n) {
      x[n] = brain(a[lane % 16 * depth + k + n]);
      y[n] = brain(b[(k + n) * 16 + lane % 16]);
    }
    sums = __builtin_amdgcn_mfma_f32_16x16x8bf16(x, y, sums, 0, 0, 0);
  }
#else
  for (u32 k = lane / 16 * 4; k < depth; k += 16) {
    Short4 x, y;
    for (u32 n = 0; n < 4; ++n) {
      x[n] = brain(a[lane % 16 * depth + k + n]);
      y[n] = brain(b[(k + n) * 16 + lane % 16]);
    }
    sums = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x, y, sums, 0, 0, 0);
  }
#endif
  return sums;
}
static inline HELPER u32 byte_at(i8 value, u32 place) {
  return (static_cast<u32>(value) & 0xff) << (8 * place);
}
static inline HELPER Int4 bytes16(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  Int4 sums = {0, 0, 0, 0};
#if defined(__gfx942__) || defined(__gfx950__) || defined(__gfx9_4_generic__)
  for (u32 k = lane / 16 * 8; k < depth; k += 32) {
    u64 x = 0, y = 0;
    for (u32 n = 0; n < 8; ++n) {
      x |= static_cast<u64>(byte_at(a[lane % 16 * depth + k + n], 0)) << (8 * n);
      y |= static_cast<u64>(byte_at(b[(k + n) * 16 + lane % 16], 0)) << (8 * n);
    }
    sums = __builtin_amdgcn_mfma_i32_16x16x32_i8(static_cast<i64>(x), static_cast<i64>(y), sums, 0,
                                                 0, 0);
  }
#else
  for (u32 k = lane / 16 * 4; k < depth; k += 16) {
    u32 x = 0, y = 0;
    for (u32 n = 0; n < 4; ++n) {
      x |= byte_at(a[lane % 16 * depth + k + n], n);
      y |= byte_at(b[(k + n) * 16 + lane % 16], n);
    }
    sums = __builtin_amdgcn_mfma_i32_16x16x16i8(static_cast<int>(x), static_cast<int>(y), sums, 0,
                                                0, 0);
  }
#endif
  return sums;
}
static inline HELPER Double4 doubles16(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  Double4 sums = {0, 0, 0, 0};
#ifdef __gfx908__
  // gfx908 has no products of doubles. The row of the result is that of the instruction.
  for (u32 k = 0; k < depth; ++k)
    for (u32 n = 0; n < 4; ++n)
      sums[n] += a[(n * 4 + lane / 16) * depth + k] * b[k * 16 + lane % 16];
#else
  for (u32 k = lane / 16; k < depth; k += 4)
    sums = __builtin_amdgcn_mfma_f64_16x16x4f64(a[lane % 16 * depth + k], b[k * 16 + lane % 16],
                                                sums, 0, 0, 0);
#endif
  return sums;
}

#else

static inline HELPER int sum(const i8 *a, const i8 *b, u32 side, u32 depth, u32 row, u32 column) {
  int all = 0;
  for (u32 k = 0; k < depth; ++k)
    all += a[row * depth + k] * b[k * side + column];
  return all;
}
// The four rows that a lane has of a tile of 16 rows, and the sixteen of one of 32.
template <typename Four>
static inline HELPER Four sums16(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  Four all;
  for (u32 n = 0; n < 4; ++n)
    all[n] = sum(a, b, 16, depth, lane / 16 * 4 + n, lane % 16);
  return all;
}
static inline HELPER Float16 sums32(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  Float16 all;
  for (u32 n = 0; n < 16; ++n) {
    u32 row = n / 4 * 8 + lane / 32 * 4 + n % 4;
    all[n] = static_cast<float>(sum(a, b, 32, depth, row, lane % 32));
  }
  return all;
}
static inline HELPER Float4 singles16(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  return sums16<Float4>(a, b, depth, lane);
}
static inline HELPER Float4 halves16(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  return sums16<Float4>(a, b, depth, lane);
}
static inline HELPER Float4 brains16(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  return sums16<Float4>(a, b, depth, lane);
}
static inline HELPER Int4 bytes16(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  return sums16<Int4>(a, b, depth, lane);
}
// Doubles have every fourth row.
static inline HELPER Double4 doubles16(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  Double4 all;
  for (u32 n = 0; n < 4; ++n)
    all[n] = sum(a, b, 16, depth, n * 4 + lane / 16, lane % 16);
  return all;
}
static inline HELPER Float16 singles32(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  return sums32(a, b, depth, lane);
}
static inline HELPER Float16 halves32(const i8 *a, const i8 *b, u32 depth, u32 lane) {
  return sums32(a, b, depth, lane);
}

#endif

// Each wave has matrices of its own, one behind the other. Odd waves add the product of 8-bit
// integers to that of single precision.
__global__ void tiles_of_16(const i8 *a, const i8 *b, float *out, int *whole, u32 depth) {
  u32 wave = global_x() / 64;
  u32 lane = thread_x() % 64;
  const i8 *left = a + wave * 16 * depth;
  const i8 *right = b + wave * 16 * depth;
  Float4 sums = singles16(left, right, depth, lane);
  sums += 2 * halves16(left, right, depth, lane);
  sums += 4 * brains16(left, right, depth, lane);
  Int4 bytes = bytes16(left, right, depth, lane);
  for (u32 n = 0; n < 4; ++n) {
    u32 place = wave * 256 + (lane / 16 * 4 + n) * 16 + lane % 16;
    out[place] = wave % 2 ? sums[n] + static_cast<float>(bytes[n]) : sums[n];
    whole[place] = bytes[n];
  }
}
REGISTER_KERNEL(tiles_of_16);

__global__ void doubles(const i8 *a, const i8 *b, double *out, u32 depth) {
  u32 wave = global_x() / 64;
  u32 lane = thread_x() % 64;
  Double4 sums = doubles16(a + wave * 16 * depth, b + wave * 16 * depth, depth, lane);
  for (u32 n = 0; n < 4; ++n)
    out[wave * 256 + (n * 4 + lane / 16) * 16 + lane % 16] = sums[n];
}
REGISTER_KERNEL(doubles);

__global__ void tiles_of_32(const i8 *a, const i8 *b, float *out, u32 depth) {
  u32 wave = global_x() / 64;
  u32 lane = thread_x() % 64;
  const i8 *left = a + wave * 32 * depth;
  const i8 *right = b + wave * 32 * depth;
  Float16 sums = singles32(left, right, depth, lane);
  sums += 2 * halves32(left, right, depth, lane);
  for (u32 n = 0; n < 16; ++n) {
    u32 row = n / 4 * 8 + lane / 32 * 4 + n % 4;
    out[wave * 1024 + row * 32 + lane % 32] = sums[n];
  }
}
REGISTER_KERNEL(tiles_of_32);
