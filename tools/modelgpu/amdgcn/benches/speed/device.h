// Device side of the kernels: no HIP headers, so that only this code is compiled.
#pragma once

typedef unsigned u32;
typedef unsigned long long u64;

#ifndef __AMDGCN__
#include "host.h"
#else

#define __global__ extern "C" __attribute__((global))
#define __device__ static inline __attribute__((device))
#define __shared__ __attribute__((shared))

#define DEVICE static inline __attribute__((device, always_inline))
DEVICE u32 thread_x() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE u32 thread_y() { return __builtin_amdgcn_workitem_id_y(); }
DEVICE u32 block_x() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE u32 block_y() { return __builtin_amdgcn_workgroup_id_y(); }
DEVICE u32 block_size_x() { return __builtin_amdgcn_workgroup_size_x(); }
DEVICE u32 block_size_y() { return __builtin_amdgcn_workgroup_size_y(); }
DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
template <class T> DEVICE void atomic_add(T *place, T value) {
  __scoped_atomic_fetch_add(place, value, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

#endif

__device__ u32 global_x() { return block_x() * block_size_x() + thread_x(); }
__device__ u32 global_y() { return block_y() * block_size_y() + thread_y(); }
