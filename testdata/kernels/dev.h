// Device side of the kernels here, without HIP's headers and device libraries: only this code is
// compiled. The host compiles these sources too, with host_dev.h instead of this file.
//
// The helpers are not instrumented: their bodies differ between device and host, and all counted
// code must have equal counts on both.
#pragma once

#if !defined(__AMDGCN__) && !defined(__NVPTX__)
#include "host_dev.h"
#else

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __noinline__ __attribute__((noinline))
#define HELPER __attribute__((device, always_inline, no_profile_instrument_function))

// The host looks kernels up by name in a list; the device has its symbol table for that.
#define REGISTER_KERNEL(...)

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned u32;
typedef unsigned long long u64;
typedef long long i64;

#ifdef __NVPTX__

static inline HELPER u32 thread_x() { return __nvvm_read_ptx_sreg_tid_x(); }
static inline HELPER u32 thread_y() { return __nvvm_read_ptx_sreg_tid_y(); }
static inline HELPER u32 thread_z() { return __nvvm_read_ptx_sreg_tid_z(); }
static inline HELPER u32 block_x() { return __nvvm_read_ptx_sreg_ctaid_x(); }
static inline HELPER u32 block_y() { return __nvvm_read_ptx_sreg_ctaid_y(); }
static inline HELPER u32 block_z() { return __nvvm_read_ptx_sreg_ctaid_z(); }
static inline HELPER u32 block_size_x() { return __nvvm_read_ptx_sreg_ntid_x(); }
static inline HELPER u32 block_size_y() { return __nvvm_read_ptx_sreg_ntid_y(); }
static inline HELPER u32 block_size_z() { return __nvvm_read_ptx_sreg_ntid_z(); }
static inline HELPER void barrier() { __syncthreads(); }
[[noreturn]] static inline HELPER void end_thread() {
  asm volatile("exit;");
  __builtin_unreachable();
}

#else

static inline HELPER u32 thread_x() { return __builtin_amdgcn_workitem_id_x(); }
static inline HELPER u32 thread_y() { return __builtin_amdgcn_workitem_id_y(); }
static inline HELPER u32 thread_z() { return __builtin_amdgcn_workitem_id_z(); }
static inline HELPER u32 block_x() { return __builtin_amdgcn_workgroup_id_x(); }
static inline HELPER u32 block_y() { return __builtin_amdgcn_workgroup_id_y(); }
static inline HELPER u32 block_z() { return __builtin_amdgcn_workgroup_id_z(); }
static inline HELPER u32 block_size_x() { return __builtin_amdgcn_workgroup_size_x(); }
static inline HELPER u32 block_size_y() { return __builtin_amdgcn_workgroup_size_y(); }
static inline HELPER u32 block_size_z() { return __builtin_amdgcn_workgroup_size_z(); }
// All work-items of the workgroup wait here for each other; later code sees their earlier writes.
static inline HELPER void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// Ends the work-item. All lanes of a wave must come here together: the hardware ends the wave.
[[noreturn]] static inline HELPER void end_thread() { __builtin_amdgcn_endpgm(); }

// All unfinished lanes of the wave call the wave operations below together.
static inline HELPER u32 lane() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0));
}
#if __has_builtin(__builtin_amdgcn_ballot_w64) // clang 15 does not have it
static inline HELPER u64 ballot(bool predicate) { return __builtin_amdgcn_ballot_w64(predicate); }
#endif
static inline HELPER u32 shuffle(u32 value, u32 from) {
#if defined(__GFX11__)
  // RDNA 3 permutes 32 lanes at a time. In a wave of 64, the value may be in the other half.
  u32 across = __builtin_amdgcn_permlane64(static_cast<int>(value));
  u32 here = __builtin_amdgcn_ds_bpermute(static_cast<int>(from * 4), static_cast<int>(value));
  u32 there = __builtin_amdgcn_ds_bpermute(static_cast<int>(from * 4), static_cast<int>(across));
  return (lane() ^ from) & 32 ? there : here;
#elif defined(__GFX10__)
  // RDNA 2 also permutes 32 lanes at a time, and has no instruction that exchanges the halves.
  u32 found = 0;
  for (u32 place = 0; place < 64; ++place) {
    u32 other = __builtin_amdgcn_readlane(static_cast<int>(value), static_cast<int>(place));
    found = place == from ? other : found;
  }
  return found;
#else
  return __builtin_amdgcn_ds_bpermute(static_cast<int>(from * 4), static_cast<int>(value));
#endif
}
static inline HELPER u32 first_lane(u32 value) {
  return __builtin_amdgcn_readfirstlane(static_cast<int>(value));
}

#endif

static inline HELPER u32 global_x() { return block_x() * block_size_x() + thread_x(); }
static inline HELPER u32 global_y() { return block_y() * block_size_y() + thread_y(); }
static inline HELPER u32 global_z() { return block_z() * block_size_z() + thread_z(); }

#endif
