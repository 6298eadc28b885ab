/* Declarations that the headers of HIP 5.2 take from clang, and some clangs lack: debian12.cfg includes this file
 * before each source.
 *
 * - hip_fp16.h calls reciprocals of halves. clang 15 and 16 only declare one, and clang from 22 on does not
 *   know them.
 * - atomicInc and atomicDec call intrinsics that LLVM from 17 on does not have. These functions have their
 *   names. The \001 hides the names from LLVM, which refuses functions that are called like intrinsics. */
#ifdef __HIP__
/* clang does not count system headers. Without debug information, rocov does not report the functions of a trace. */
#pragma clang system_header
extern "C" {
#if __clang_major__ < 17 || __clang_major__ >= 22
inline __attribute__((device, const, nodebug)) _Float16 __llvm_amdgcn_rcp_f16(_Float16 x) { return __builtin_amdgcn_rcph(x); }
#endif

#if __clang_major__ >= 22
typedef _Float16 __2f16 __attribute__((ext_vector_type(2)));

inline __attribute__((device, const, nodebug)) __2f16 __llvm_amdgcn_rcp_2f16(__2f16 x) {
  return __2f16{__llvm_amdgcn_rcp_f16(x.x), __llvm_amdgcn_rcp_f16(x.y)};
}
#endif

#if defined(__HIP_DEVICE_COMPILE__) && __clang_major__ >= 17
__attribute__((device, weak, visibility("hidden"))) unsigned
__debian12_atomic_inc(unsigned *, unsigned, unsigned, unsigned, bool) __asm("\001llvm.amdgcn.atomic.inc.i32.p0i32");
__attribute__((device, weak, visibility("hidden"))) unsigned
__debian12_atomic_dec(unsigned *, unsigned, unsigned, unsigned, bool) __asm("\001llvm.amdgcn.atomic.dec.i32.p0i32");

__attribute__((device, used, nodebug, no_profile_instrument_function)) unsigned
__debian12_atomic_inc(unsigned *address, unsigned limit, unsigned, unsigned, bool) {
  return __builtin_amdgcn_atomic_inc32(address, limit, __ATOMIC_RELAXED, "agent");
}
__attribute__((device, used, nodebug, no_profile_instrument_function)) unsigned
__debian12_atomic_dec(unsigned *address, unsigned limit, unsigned, unsigned, bool) {
  return __builtin_amdgcn_atomic_dec32(address, limit, __ATOMIC_RELAXED, "agent");
}
#endif
}
#endif
