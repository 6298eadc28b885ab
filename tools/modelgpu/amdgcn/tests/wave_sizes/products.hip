// Products of matrices: each lane's registers come from memory and go there.
#define __global__ extern "C" __attribute__((global))
typedef _Float16 halves4 __attribute__((ext_vector_type(4)));
typedef _Float16 halves8 __attribute__((ext_vector_type(8)));
typedef _Float16 halves16 __attribute__((ext_vector_type(16)));
typedef short shorts4 __attribute__((ext_vector_type(4)));
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

// The rows of the left matrix lack two of each four numbers; the indices have the places of the others.
#define SPARSE(NAME, LEFT, RIGHT, SUM, CALL)                                                       \
  __global__ void NAME(const LEFT *left, const RIGHT *right, const SUM *addend, SUM *result,       \
                       const unsigned *indices) {                                                       \
    int lane = __builtin_amdgcn_workitem_id_x();                                                   \
    LEFT a = left[lane];                                                                           \
    RIGHT b = right[lane];                                                                         \
    SUM c = addend[lane];                                                                          \
    unsigned places = indices[lane];                                                                    \
    result[lane] = CALL;                                                                           \
  }

#ifdef __GFX12__
#ifdef WAVE64
#define OF(NAME) __builtin_amdgcn_wmma_##NAME##_w64_gfx12
#define SPARSE_OF(NAME) __builtin_amdgcn_swmmac_##NAME##_w64
#define SECOND_SET 8
typedef halves4 halves;
typedef shorts4 shorts;
typedef halves8 more_halves;
typedef shorts8 more_shorts;
typedef int bytes;
typedef ints2 more_bytes;
typedef int nibbles;
typedef int more_nibbles;
typedef ints2 most_nibbles;
typedef floats4 floats;
typedef ints4 ints;
#else
#define OF(NAME) __builtin_amdgcn_wmma_##NAME##_w32_gfx12
#define SPARSE_OF(NAME) __builtin_amdgcn_swmmac_##NAME##_w32
#define SECOND_SET 16
typedef halves8 halves;
typedef shorts8 shorts;
typedef halves16 more_halves;
typedef shorts16 more_shorts;
typedef ints2 bytes;
typedef ints4 more_bytes;
typedef int nibbles;
typedef ints2 more_nibbles;
typedef ints4 most_nibbles;
typedef floats8 floats;
typedef ints8 ints;
#endif
PRODUCT(f32_f16, halves, floats, OF(f32_16x16x16_f16)(a, b, c))
PRODUCT(f32_bf16, shorts, floats, OF(f32_16x16x16_bf16)(a, b, c))
PRODUCT(f16_f16, halves, halves, OF(f16_16x16x16_f16)(a, b, c))
PRODUCT(bf16_bf16, shorts, shorts, OF(bf16_16x16x16_bf16)(a, b, c))
PRODUCT(i32_i8, bytes, ints, OF(i32_16x16x16_iu8)(true, a, true, b, c, false))
PRODUCT(i32_u8, bytes, ints, OF(i32_16x16x16_iu8)(false, a, true, b, c, true))
PRODUCT(i32_i4, nibbles, ints, OF(i32_16x16x16_iu4)(true, a, true, b, c, false))
PRODUCT(i32_u4, nibbles, ints, OF(i32_16x16x16_iu4)(true, a, false, b, c, true))
PRODUCT(deep_i4, more_nibbles, ints, OF(i32_16x16x32_iu4)(true, a, true, b, c, false))
PRODUCT(fp8_fp8, bytes, floats, OF(f32_16x16x16_fp8_fp8)(a, b, c))
PRODUCT(fp8_bf8, bytes, floats, OF(f32_16x16x16_fp8_bf8)(a, b, c))
PRODUCT(bf8_fp8, bytes, floats, OF(f32_16x16x16_bf8_fp8)(a, b, c))
PRODUCT(bf8_bf8, bytes, floats, OF(f32_16x16x16_bf8_bf8)(a, b, c))
SPARSE(sparse_f32_f16, halves, more_halves, floats, SPARSE_OF(f32_16x16x32_f16)(a, b, c, places))
SPARSE(sparse_f32_bf16, shorts, more_shorts, floats, SPARSE_OF(f32_16x16x32_bf16)(a, b, c, places))
SPARSE(sparse_f16_f16, halves, more_halves, halves, SPARSE_OF(f16_16x16x32_f16)(a, b, c, places))
SPARSE(sparse_bf16_bf16, shorts, more_shorts, shorts, SPARSE_OF(bf16_16x16x32_bf16)(a, b, c, places))
SPARSE(sparse_fp8_fp8, bytes, more_bytes, floats, SPARSE_OF(f32_16x16x32_fp8_fp8)(a, b, c, places))
SPARSE(sparse_fp8_bf8, bytes, more_bytes, floats, SPARSE_OF(f32_16x16x32_fp8_bf8)(a, b, c, places))
SPARSE(sparse_bf8_fp8, bytes, more_bytes, floats, SPARSE_OF(f32_16x16x32_bf8_fp8)(a, b, c, places))
SPARSE(sparse_bf8_bf8, bytes, more_bytes, floats, SPARSE_OF(f32_16x16x32_bf8_bf8)(a, b, c, places))
// The second set of places in the registers.
SPARSE(sparse_i8, bytes, more_bytes, ints,
       SPARSE_OF(i32_16x16x32_iu8)(true, a, true, b, c, places >> SECOND_SET, false))
SPARSE(sparse_i4, nibbles, more_nibbles, ints,
       SPARSE_OF(i32_16x16x32_iu4)(true, a, true, b, c, places, false))
SPARSE(sparse_deep_i4, more_nibbles, most_nibbles, ints,
       SPARSE_OF(i32_16x16x64_iu4)(true, a, true, b, c, places, false))
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

#if defined(__GFX12__) && !defined(WAVE64)
// Loads that transpose: each lane reads at its own address.
__global__ void columns_of_bytes(const ints2 *input, const int *places, ints2 *output) {
  int lane = __builtin_amdgcn_workitem_id_x();
  typedef __attribute__((address_space(1))) ints2 *address;
  output[lane] = __builtin_amdgcn_global_load_tr_b64_v2i32((address)(input + places[lane]));
}
__global__ void columns_of_halves(const shorts8 *input, const int *places, shorts8 *output) {
  int lane = __builtin_amdgcn_workitem_id_x();
  typedef __attribute__((address_space(1))) shorts8 *address;
  output[lane] = __builtin_amdgcn_global_load_tr_b128_v8i16((address)(input + places[lane]));
}
#endif
