/* rocov.h: for programs that want a say in when their GPU counters are written.
 *
 * Link with -lrocov, or look the functions up with dlsym(RTLD_DEFAULT, ...), so that the program
 * also runs where librocov is not preloaded. Everything here may be called from any thread, and
 * does nothing in a process that uses no GPU.
 *
 * Generated from runtime/src/exports.rs; see tests/header.rs there.
 */

#ifndef ROCOV_H
#define ROCOV_H

// What a function of this library answers. A number is never given another meaning.
typedef enum {
  // Done.
  ROCOV_STATUS_OK = 0,
  // There was nothing to do: no GPU is in use, or LLVM's own runtime drains this program.
  ROCOV_STATUS_NOTHING = 1,
  // Some counts could not be read or written; standard error says which and why.
  ROCOV_STATUS_LOSS = 2,
  // An argument is null, not UTF-8 or not a pattern; standard error says what.
  ROCOV_STATUS_INVALID = 3,
  // A fault of this library's own.
  ROCOV_STATUS_INTERNAL = 4,
} RocovStatus;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of this library, such as "0.1.0": valid for ever, not to be freed.
const char *rocov_version(void);

// Writes the counts of every loaded code object now. Kernels may run meanwhile: what they count
// later is written by the next drain, at the latest when the code object is unloaded or the
// process exits. Nothing is counted twice.
RocovStatus rocov_drain(void);

// Zeroes the counters of every loaded code object on the device. What was drained before stays
// written, and later counts are added to it; what was counted since is dropped.
RocovStatus rocov_reset(void);

// Sets the name pattern of profiles from now on, as LLVM_PROFILE_FILE has it; NULL goes back to
// that variable. Files written under another name stay; counts go to the new name whole.
//
// # Safety
// `pattern` is null or NUL terminated.
RocovStatus rocov_set_file(const char *pattern);

// LLVM's entry point for an early drain: returns 0, or -1 where counts were lost. Where LLVM's own
// runtime drains this program, it gets the call, which may be one of its own.
int __llvm_profile_hip_collect_device_data(void);

// Does nothing: objects compiled for LLVM's earlier drain, which was told of device variables,
// link and run.
void __llvm_profile_offload_register_shadow_variable(void *variable);

// Does nothing, likewise.
void __llvm_profile_offload_register_section_shadow_variable(void *variable);

// Does nothing, likewise: modules are followed through HSA.
void __llvm_profile_offload_register_dynamic_module(int status, void **module, const void *image);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ROCOV_H */
