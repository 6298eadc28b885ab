// testdata/kernels/dev.h for nvcc.
#pragma once

#define HELPER __device__ __forceinline__
#define REGISTER_KERNEL(...)
// Functions that clang has for both sides.
#define __builtin_ctzll(value) (__ffsll(static_cast<long long>(value)) - 1)
#define __atomic_fetch_add(place, value, order) atomicAdd(place, value)
#define __scoped_atomic_fetch_add(place, value, order, scope) atomicAdd(place, value)
#define __scoped_atomic_fetch_sub(place, value, order, scope) atomicSub(place, value)
#define __scoped_atomic_fetch_and(place, value, order, scope) atomicAnd(place, value)
#define __scoped_atomic_fetch_or(place, value, order, scope) atomicOr(place, value)
#define __scoped_atomic_fetch_xor(place, value, order, scope) atomicXor(place, value)
#define __scoped_atomic_fetch_min(place, value, order, scope) atomicMin(place, value)
#define __scoped_atomic_fetch_max(place, value, order, scope) atomicMax(place, value)
#define __scoped_atomic_exchange_n(place, value, order, scope) atomicExch(place, value)
#define __scoped_atomic_compare_exchange_n(place, expected, value, weak, order, failure, scope) \
  exchanged(place, expected, value)

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned u32;
typedef unsigned long long u64;
typedef long long i64;

template <typename T> static HELPER bool exchanged(T *place, T *expected, T value) {
  T wanted = *expected;
  *expected = atomicCAS(place, wanted, value);
  return *expected == wanted;
}

static HELPER u32 thread_x() { return threadIdx.x; }
static HELPER u32 thread_y() { return threadIdx.y; }
static HELPER u32 thread_z() { return threadIdx.z; }
static HELPER u32 block_x() { return blockIdx.x; }
static HELPER u32 block_y() { return blockIdx.y; }
static HELPER u32 block_z() { return blockIdx.z; }
static HELPER u32 block_size_x() { return blockDim.x; }
static HELPER u32 block_size_y() { return blockDim.y; }
static HELPER u32 block_size_z() { return blockDim.z; }
static HELPER void barrier() { __syncthreads(); }
static HELPER void end_thread() { asm volatile("exit;"); }

static HELPER u32 global_x() { return block_x() * block_size_x() + thread_x(); }
static HELPER u32 global_y() { return block_y() * block_size_y() + thread_y(); }
static HELPER u32 global_z() { return block_z() * block_size_z() + thread_z(); }
