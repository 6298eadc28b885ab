/* rocov_device.h: lets rocov drain the device code of stock clang.
 *
 * Pass it with `-include rocov_device.h` (`rocov flags` prints the whole line). Stock LLVM
 * instruments amdgcn code but ships no profile runtime for it: the counters are in device memory,
 * and nothing gives their addresses. This header emits, into every instrumented device translation
 * unit, the symbols that compiler-rt's device runtime would link in:
 *
 *   __llvm_profile_runtime    the symbol that instrumented code refers to
 *   __llvm_profile_sections   the section bounds table: 8-byte words, start and stop of names,
 *                             counters, data and, from clang 23, uniform counters; then the
 *                             address of a version word
 *   __rocov_raw_version       that word: the compiler's raw version (LLVM 14 to 17 emit data
 *                             records of version 8, 18 of 9, 19 to 22 of 10, 23 and 24 of 11),
 *                             for front-end instrumentation; with the bit for counters of one byte
 *                             if `rocov flags --counters=reached` defines ROCOV_REACHED
 *
 * clang 23 calls a function to add to a counter, in place of an atomic instruction. It emits a table for
 * each translation unit, and the table refers to a version word:
 *
 *   __llvm_profile_instrument_gpu(counter, uniform counter, step)
 *   __llvm_profile_sampling_gpu(n)  1 if this block is one of the 1 in 2^n to count
 *   __llvm_profile_raw_version
 *
 * All symbols are weak: if LLVM's own device runtime is linked, its symbols win. The translation units
 * of one -fgpu-rdc code object share one table.
 *
 * The version word is not called __llvm_profile_raw_version, because an IR-level build
 * (-fprofile-generate) emits a variable of that name into the same module, with the IR bit set. LLVM
 * renames the second variable of a name (clang 22: `__llvm_profile_raw_version.1`), so a weak definition
 * here would win over LLVM's. With two names both variables reach .dynsym, and rocov prefers
 * __llvm_profile_raw_version.
 *
 * The header emits nothing for the host of a HIP program or without instrumentation. It defines no macro, because HIP's
 * headers use identifiers as short as `V` and `T`.
 *
 * clang 14 crashes on instrumented amdgcn code by itself (AMDGPU Attributor); 15 is the oldest.
 *
 * clang up to 18 does not define __LLVM_INSTR_PROFILE_GENERATE: `rocov flags` adds
 * -DROCOV_DEVICE_INSTRUMENTED for it.
 */
/* The host's pass over a HIP file defines __AMDGCN__ too, and would register these definitions with HIP as
 * variables of the device. */
#if defined(__AMDGCN__) && (!defined(__HIP__) || defined(__HIP_DEVICE_COMPILE__)) && \
    (defined(__LLVM_INSTR_PROFILE_GENERATE) || defined(ROCOV_DEVICE_INSTRUMENTED))
#ifdef _OPENMP
/* clang gives the option -include twice to the device compilations of OpenMP. */
#pragma once
/* OpenMP compiles host code for the device too, emits only what is declared for the device, and has no
 * attribute `device`. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wignored-attributes"
#pragma clang diagnostic ignored "-Wunknown-attributes"
#pragma omp begin declare target device_type(nohost)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* The linker defines these symbols. They are weak, because a section may be missing: a code object without
 * an instrumented function has no counters, and start and stop are both null. */
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
/* These versions emit a constructor that registers every record with the runtime, as for targets without
 * start and stop symbols. HIP runs it, as the kernel amdgcn.device.init, so it must link and return.
 * The \001 hides the name from LLVM: if a module has a function of the name, the pass that declares it
 * gets `__llvm_profile_register_function.1` instead (clang 15 and 16). The functions are retained, because
 * LLVM calls local functions through a GOT entry that is `.text` plus the function's offset. lld takes
 * the offset for one into the GOT: the constructor jumped to null (clang 15). */
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
#ifdef ROCOV_REACHED
    /* VARIANT_MASK_BYTE_COVERAGE: a counter is a byte. The linker may drop the compiler's own word. */
    1ull << 60 |
#endif
    (__clang_major__ < 18 ? 8 : __clang_major__ < 19 ? 9 : __clang_major__ < 23 ? 10 : 11);
#ifdef ROCOV_UNIFORMITY
/* Makes the plugin keep the uniform counters, which it drops in code with a coverage mapping. */
extern __attribute__((device, weak, visibility("protected"))) const char __rocov_uniformity;
__attribute__((device, weak, used, visibility("protected"))) const char __rocov_uniformity = 1;
#endif

#if __clang_major__ >= 23
/* Counts as LLVM's own function does: each active lane counts, and counts as uniform if its whole wave is
 * active. A wave that the block does not fill is never uniform. The back end adds up the lanes for every atomic
 * addition, unless at -O0. Inlined from -O1 on, because a kernel with calls needs more registers.
 *
 * Inline functions of C++ are weak symbols, but their bodies are final, so LLVM inlines them. */
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

/* Counts every block: coverage is exact. */
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

/* The word that the compiler's tables and ours refer to. The \001 hides the name from LLVM, which would
 * rename the variable of -fprofile-generate. */
extern __attribute__((device, visibility("hidden"))) const unsigned long long
__rocov_named_raw_version __asm__("\001__llvm_profile_raw_version");

/* Gives our version word that name within this object file. Nothing calls it. If the module has a variable
 * of that name (-fprofile-generate), the variable's label comes after all functions, and replaces this
 * assignment in the assembler. */
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

/* Protected, not hidden: ROCr's loader finds symbols of .dynsym by name, and hidden symbols become
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
#ifdef _OPENMP
#pragma omp end declare target
#pragma clang diagnostic pop
#endif
#elif defined(_OPENMP) && !defined(__AMDGCN__) && !defined(__NVPTX__) && !defined(__HIP__)
/* LLVM's offload runtime (20 and later) calls this function when it unloads device code that counts. Without it,
 * the runtime gives up halfway: HSA still runs when its library is unmapped, and the program may crash at
 * its end. If host code is instrumented, LLVM's own definition wins, and writes the counts to a file. */
#pragma once
#ifdef __cplusplus
extern "C"
#endif
__attribute__((weak, used, visibility("default"), no_profile_instrument_function)) int
__llvm_write_custom_profile(const char *target, const void *data_begin, const void *data_end,
                            const char *counters_begin, const char *counters_end, const char *names_begin,
                            const char *names_end, const unsigned long long *version) {
  (void)target, (void)data_begin, (void)data_end, (void)counters_begin, (void)counters_end;
  (void)names_begin, (void)names_end, (void)version;
  return 0;
}
#endif

/* CUDA. PTX has no sections, and the CUDA driver places each variable by itself, so there is no table of bounds: rocov
 * takes the names of the variables from the cubin, and asks the driver for their addresses. It needs the version of the
 * data records, and the compiler's name, because a cubin has no `.comment`. Units that are linked together (-fgpu-rdc)
 * share all of this. */
#if defined(__NVPTX__) && defined(__CUDA_ARCH__) && \
    (defined(__LLVM_INSTR_PROFILE_GENERATE) || defined(ROCOV_DEVICE_INSTRUMENTED))
extern "C" {
__attribute__((device, weak)) int __llvm_profile_runtime = 0;

extern __attribute__((device, weak)) const unsigned long long __rocov_raw_version;
__attribute__((device, weak, used)) const unsigned long long __rocov_raw_version =
#ifdef ROCOV_REACHED
    1ull << 60 |
#endif
    (__clang_major__ < 18 ? 8 : __clang_major__ < 19 ? 9 : __clang_major__ < 23 ? 10 : 11);

extern __attribute__((device, weak)) const char __rocov_compiler[];
__attribute__((device, weak, used)) const char __rocov_compiler[] = "clang version " __clang_version__;

#ifdef ROCOV_LLVM_COUNTERS
/* Makes the plugin leave the counters unchanged: it also gives them names that the CUDA driver accepts. */
extern __attribute__((device, weak)) const char __rocov_llvm_counters;
__attribute__((device, weak, used)) const char __rocov_llvm_counters = 1;
#endif

#if __clang_major__ >= 23
/* clang emits a constructor that registers every record, as for targets without start and stop symbols. It calls the
 * function of this name, and the one that registers becomes `__llvm_profile_register_functions1`, which nothing calls:
 * PTX takes no definition of the functions that it calls, because clang declares them as `.extern`. At -O0 it stays, and
 * ptxas rejects it, unless the plugin drops both. */
__attribute__((device, weak, used, no_profile_instrument_function)) void __llvm_profile_register_functions(void) {}

/* Counts as LLVM's own function does: each active lane counts, and counts as uniform if its whole warp is active. */
__attribute__((device, weak, used, no_profile_instrument_function
#ifdef __OPTIMIZE__
, always_inline
#endif
)) inline void __llvm_profile_instrument_gpu(unsigned long long *counter, unsigned long long *uniform,
                                             unsigned long long step) {
  unsigned lanes;
  __asm__ volatile("activemask.b32 %0;" : "=r"(lanes));
  __scoped_atomic_fetch_add(counter, step, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
  if (uniform && lanes == ~0u)
    __scoped_atomic_fetch_add(uniform, step, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

/* Counts every block: coverage is exact. */
__attribute__((device, weak, used, no_profile_instrument_function
#ifdef __OPTIMIZE__
, always_inline
#endif
)) inline int __llvm_profile_sampling_gpu(int bits) {
  (void)bits;
  return 1;
}
#endif
}
#endif
