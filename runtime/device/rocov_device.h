/* rocov_device.h: makes the device code of stock clang drainable.
 *
 * Pass it with `-include rocov_device.h` (`rocov flags` prints the whole line). Stock LLVM
 * instruments amdgcn code but ships no profile runtime for it: the counters are in device memory
 * and nothing says where. This header emits, into every instrumented device translation unit,
 * what compiler-rt's device runtime would have linked in:
 *
 *   __llvm_profile_runtime    the symbol that instrumented code asks for
 *   __llvm_profile_sections   the section bounds table: 8-byte words, start and stop of names,
 *                             counters, data and, from clang 23, uniform counters; then the
 *                             address of a version word
 *   __rocov_raw_version       that word: the compiler's raw version (LLVM 14 to 16 emit data
 *                             records of version 8, 17 and 18 of 9, 19 to 22 of 10, 23 of 11),
 *                             no variant bits: front-end instrumentation
 *
 * clang 23 adds to a counter by a call instead of by an atomic instruction of its own, and emits a
 * table for each translation unit, which refers to a version word:
 *
 *   __llvm_profile_instrument_gpu(counter, uniform counter, step)
 *   __llvm_profile_sampling_gpu(n)  whether this block is one of the 1 in 2^n that are to be counted
 *   __llvm_profile_raw_version
 *
 * All of it is weak: LLVM's own device runtime, where it is linked, has the last word, and the
 * translation units of one -fgpu-rdc code object share one table.
 *
 * Why the version word is not called __llvm_profile_raw_version: an IR-level build
 * (-fprofile-generate) emits a variable of that name into the same module, with the IR bit set,
 * and LLVM renames the newcomer where the name is taken (clang 22: `__llvm_profile_raw_version.1`),
 * so a weak definition here would win over it instead of yielding. Under its own name both reach
 * .dynsym, and rocov takes __llvm_profile_raw_version where it is there.
 *
 * It emits nothing for the host or without instrumentation, and defines no macro: HIP's headers
 * use identifiers as short as `V` and `T`.
 *
 * clang 14 crashes on instrumented amdgcn code by itself (AMDGPU Attributor); 15 is the oldest.
 * clang up to 18 does not say that it instruments (no __LLVM_INSTR_PROFILE_GENERATE):
 * `rocov flags` adds -DROCOV_DEVICE_INSTRUMENTED for those.
 */
/* The host's pass over a HIP file has __AMDGCN__ too, and would register what is defined here with
 * HIP as variables of the device. */
#if defined(__AMDGCN__) && (!defined(__HIP__) || defined(__HIP_DEVICE_COMPILE__)) && \
    (defined(__LLVM_INSTR_PROFILE_GENERATE) || defined(ROCOV_DEVICE_INSTRUMENTED))
#ifdef __cplusplus
extern "C" {
#endif

/* Defined by the linker; weak, because a section may be missing: a code object without an
 * instrumented function has no counters, and then start and stop are both null. */
extern __attribute__((device, weak, visibility("hidden"))) const char __start___llvm_prf_names[];
extern __attribute__((device, weak, visibility("hidden"))) const char __stop___llvm_prf_names[];
extern __attribute__((device, weak, visibility("hidden"))) const char __start___llvm_prf_cnts[];
extern __attribute__((device, weak, visibility("hidden"))) const char __stop___llvm_prf_cnts[];
extern __attribute__((device, weak, visibility("hidden"))) const char __start___llvm_prf_data[];
extern __attribute__((device, weak, visibility("hidden"))) const char __stop___llvm_prf_data[];
#if __clang_major__ >= 23
extern __attribute__((device, weak, visibility("hidden"))) const char __start___llvm_prf_ucnts[];
extern __attribute__((device, weak, visibility("hidden"))) const char __stop___llvm_prf_ucnts[];
#endif

struct __rocov_section_bounds {
  const char *names_start, *names_stop;
  const char *counters_start, *counters_stop;
  const char *data_start, *data_stop;
#if __clang_major__ >= 23
  const char *uniform_start, *uniform_stop;
#endif
  const unsigned long long *version;
};

#if __clang_major__ < 19
/* These emit a constructor that registers every record with the runtime, as for targets without
 * start and stop symbols. HIP runs it, as the kernel amdgcn.device.init, so it must link and return.
 * The \001 keeps LLVM from seeing the name: where a module has a function of the name, the pass that
 * declares it gets `__llvm_profile_register_function.1` instead (clang 15 and 16). Retained, because
 * functions that LLVM makes local are called through a GOT entry that is `.text` plus the function's
 * offset, and lld takes the offset for one into the GOT: the constructor jumped to null (clang 15). */
__attribute__((device, weak, visibility("hidden"))) void
__rocov_register_function(void *) __asm__("\001__llvm_profile_register_function");
__attribute__((device, weak, visibility("hidden"))) void
__rocov_register_names_function(void *, unsigned long long) __asm__("\001__llvm_profile_register_names_function");
__attribute__((device, used, retain, no_profile_instrument_function)) void __rocov_register_function(void *) {}
__attribute__((device, used, retain, no_profile_instrument_function)) void
__rocov_register_names_function(void *, unsigned long long) {}
#endif

extern __attribute__((device, weak, visibility("protected"))) int __llvm_profile_runtime;
extern __attribute__((device, weak, visibility("protected"))) const unsigned long long __rocov_raw_version;
extern __attribute__((device, weak, visibility("protected"))) struct __rocov_section_bounds __llvm_profile_sections;

__attribute__((device, weak, visibility("protected"))) int __llvm_profile_runtime = 0;
__attribute__((device, weak, used, visibility("protected"))) const unsigned long long __rocov_raw_version =
    __clang_major__ < 17 ? 8 : __clang_major__ < 19 ? 9 : __clang_major__ < 23 ? 10 : 11;
#if __clang_major__ >= 23
/* As LLVM's own: each lane that is here counts, and counts as uniform if its whole wave is here. A
 * wave that the block does not fill never is. Lanes are not added up here: the back end does that for
 * every atomic, unless at -O0. Inlined from -O1 on, because a kernel that calls needs more registers.
 *
 * Inline functions of C++ are weak symbols, but their bodies count as final, so LLVM inlines them. */
#ifdef __cplusplus
inline
#else
__attribute__((weak))
#endif
__attribute__((device, used, no_profile_instrument_function, visibility("protected")
#ifdef __OPTIMIZE__
, always_inline
#endif
)) void __llvm_profile_instrument_gpu(unsigned long long *counter, unsigned long long *uniform,
                                      unsigned long long step) {
  typedef __attribute__((address_space(1))) unsigned long long Global;
  __scoped_atomic_fetch_add((Global *)counter, step, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  if (uniform && __builtin_amdgcn_read_exec() == ~0ull >> (64 - __builtin_amdgcn_wavefrontsize()))
    __scoped_atomic_fetch_add((Global *)uniform, step, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

/* All of them are counted: coverage is exact. */
#ifdef __cplusplus
inline
#else
__attribute__((weak))
#endif
__attribute__((device, used, no_profile_instrument_function, visibility("protected")
#ifdef __OPTIMIZE__
, always_inline
#endif
)) int __llvm_profile_sampling_gpu(int bits) {
  (void)bits;
  return 1;
}

/* The word to which the compiler's tables refer, and so does ours. The \001 keeps LLVM from seeing the
 * name: it would rename the variable of -fprofile-generate. */
extern __attribute__((device, visibility("hidden"))) const unsigned long long
__rocov_named_raw_version __asm__("\001__llvm_profile_raw_version");

/* Nobody calls it: it gives our version word that name, within this object file. If the module has a
 * variable of that name (-fprofile-generate), the assembler lets its label, which comes after all
 * functions, replace an assignment. */
#ifdef __cplusplus
inline
#else
__attribute__((weak))
#endif
__attribute__((device, used, noinline, no_profile_instrument_function, visibility("protected"))) void
__rocov_name_raw_version(void) {
  __asm__(".set __llvm_profile_raw_version, __rocov_raw_version");
}
#endif

/* Protected, not hidden: ROCr's loader finds symbols of .dynsym by name, and hidden ones become
 * local. `used`, because nothing in the program refers to the table. */
__attribute__((device, weak, used, visibility("protected"))) struct __rocov_section_bounds __llvm_profile_sections = {
    __start___llvm_prf_names, __stop___llvm_prf_names, __start___llvm_prf_cnts, __stop___llvm_prf_cnts,
    __start___llvm_prf_data,  __stop___llvm_prf_data,
#if __clang_major__ >= 23
    __start___llvm_prf_ucnts, __stop___llvm_prf_ucnts, &__rocov_named_raw_version};
#else
    &__rocov_raw_version};
#endif

#ifdef __cplusplus
}
#endif
#endif
