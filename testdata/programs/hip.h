// The part of HIP that the programs here use. A program that needs more of it includes <hip/hip_runtime.h>.
//
// The device code of HIP's own header, and what clang includes before it, take four times as long to read as all else that
// is compiled here. tests/support/compile.rs leaves them out with -nogpuinc where no source includes HIP's header.
#pragma once
#pragma clang system_header

#include <hip/hip_runtime_api.h>
#include <stdlib.h>

#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#endif
#ifndef __launch_bounds__
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#endif

#define ROCOV_GETTER(name, value)                                                                                              \
  __declspec(property(get = get_##name)) unsigned name;                                                                        \
  static inline __attribute__((device, always_inline, no_profile_instrument_function, nodebug)) unsigned get_##name() { return value; }
#define ROCOV_DIMENSIONS(name, builtin)                                                                                        \
  struct name##_t {                                                                                                            \
    ROCOV_GETTER(x, __builtin_amdgcn_##builtin##_x())                                                                          \
    ROCOV_GETTER(y, __builtin_amdgcn_##builtin##_y())                                                                          \
    ROCOV_GETTER(z, __builtin_amdgcn_##builtin##_z())                                                                          \
  };                                                                                                                           \
  extern const __attribute__((device, weak)) name##_t name;
ROCOV_DIMENSIONS(threadIdx, workitem_id)
ROCOV_DIMENSIONS(blockIdx, workgroup_id)
ROCOV_DIMENSIONS(blockDim, workgroup_size)

template <typename T, typename Value>
static inline __attribute__((device, always_inline, no_profile_instrument_function, nodebug)) T atomicAdd(T *address, Value value) {
  return __hip_atomic_fetch_add(address, T(value), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

static inline __attribute__((device, always_inline, no_profile_instrument_function, nodebug)) void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
