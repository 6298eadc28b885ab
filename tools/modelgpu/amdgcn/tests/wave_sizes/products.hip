// Products of matrices: each lane's registers come from memory and go there.
#define __global__ extern "C" __attribute__((global))
typedef _Float16 halves4 __attribute__((ext_vector_type(4)));
typedef _Float16 halves8 __attribute__((ext_vector_type(8)));
typedef _Float16 halves16 __attribute__((ext_vector_type(16)));
typedef short shorts8 __attribute__((ext_vector_type(8)));
typedef short shorts16 __attribute__((ext_vector_type(16)));
typedef float floats4 __attribute__((ext_vector_type(4)));
typedef float floats8 __attribute__((ext_vector_type(8)));
typedef int ints2 __attribute__((ext_vector_type(2)));
typedef int ints4 __attribute__((ext_vector_type(4)));
typedef int ints8 __attribute__((ext_vector_type(8)));

#define PRODUCT(NAME, FACTOR, SUM, CALL)                                                           \
  __global__ void NAME(const FACTOR *left, const FACTOR *right, const SUM *addend, SUM *result) {  \
    int lane = __builtin_amdgcn_workitem_id_x();                                                   \
    FACTOR a = left[lane], b = right[lane];                                                        \
    SUM c = addend[lane];                                                                          \
    result[lane] = CALL;                                                                           \
  }

#ifdef __GFX12__
PRODUCT(f32_f16, halves8, floats8, __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, c))
PRODUCT(f32_bf16, shorts8, floats8, __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(a, b, c))
PRODUCT(f16_f16, halves8, halves8, __builtin_amdgcn_wmma_f16_16x16x16_f16_w32_gfx12(a, b, c))
PRODUCT(bf16_bf16, shorts8, shorts8, __builtin_amdgcn_wmma_bf16_16x16x16_bf16_w32_gfx12(a, b, c))
PRODUCT(i32_i8, ints2, ints8, __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, a, true, b, c, false))
PRODUCT(i32_u8, ints2, ints8, __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(false, a, true, b, c, true))
PRODUCT(i32_i4, int, ints8, __builtin_amdgcn_wmma_i32_16x16x16_iu4_w32_gfx12(true, a, true, b, c, false))
PRODUCT(i32_u4, int, ints8, __builtin_amdgcn_wmma_i32_16x16x16_iu4_w32_gfx12(true, a, false, b, c, true))
PRODUCT(deep_i4, ints2, ints8, __builtin_amdgcn_wmma_i32_16x16x32_iu4_w32_gfx12(true, a, true, b, c, false))
#elif defined(WAVE64)
PRODUCT(f32_f16, halves16, floats4, __builtin_amdgcn_wmma_f32_16x16x16_f16_w64(a, b, c))
PRODUCT(f32_bf16, shorts16, floats4, __builtin_amdgcn_wmma_f32_16x16x16_bf16_w64(a, b, c))
PRODUCT(f16_f16, halves16, halves8, __builtin_amdgcn_wmma_f16_16x16x16_f16_w64(a, b, c, false))
PRODUCT(f16_high, halves16, halves8, __builtin_amdgcn_wmma_f16_16x16x16_f16_w64(a, b, c, true))
PRODUCT(bf16_bf16, shorts16, shorts8, __builtin_amdgcn_wmma_bf16_16x16x16_bf16_w64(a, b, c, false))
PRODUCT(i32_i8, ints4, ints4, __builtin_amdgcn_wmma_i32_16x16x16_iu8_w64(true, a, true, b, c, false))
PRODUCT(i32_u8, ints4, ints4, __builtin_amdgcn_wmma_i32_16x16x16_iu8_w64(false, a, true, b, c, true))
PRODUCT(i32_i4, ints2, ints4, __builtin_amdgcn_wmma_i32_16x16x16_iu4_w64(true, a, true, b, c, false))
PRODUCT(i32_u4, ints2, ints4, __builtin_amdgcn_wmma_i32_16x16x16_iu4_w64(true, a, false, b, c, true))
#else
PRODUCT(f32_f16, halves16, floats8, __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c))
PRODUCT(f32_bf16, shorts16, floats8, __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c))
PRODUCT(f16_f16, halves16, halves16, __builtin_amdgcn_wmma_f16_16x16x16_f16_w32(a, b, c, false))
PRODUCT(f16_high, halves16, halves16, __builtin_amdgcn_wmma_f16_16x16x16_f16_w32(a, b, c, true))
PRODUCT(bf16_bf16, shorts16, shorts16, __builtin_amdgcn_wmma_bf16_16x16x16_bf16_w32(a, b, c, false))
PRODUCT(i32_i8, ints4, ints8, __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, a, true, b, c, false))
PRODUCT(i32_u8, ints4, ints8, __builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(false, a, true, b, c, true))
PRODUCT(i32_i4, ints2, ints8, __builtin_amdgcn_wmma_i32_16x16x16_iu4_w32(true, a, true, b, c, false))
PRODUCT(i32_u4, ints2, ints8, __builtin_amdgcn_wmma_i32_16x16x16_iu4_w32(true, a, false, b, c, true))
#endif
