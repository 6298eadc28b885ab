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

// Opens a window: only what is counted while one is open is written. What was counted before the
// first is left out. The device's counters stay as they are.
RocovStatus rocov_start(void);

// Closes the window, or all that came before the first: what was counted is written, and what is
// counted from now on is left out until the next rocov_start. Kernels that still run are waited for
// as long as ROCOV_WAIT says.
RocovStatus rocov_stop(void);

// Writes what was counted since the last dump, or change of labels or windows, as a profile of
// `label`, within the labels that are open: into labels/LABEL beside the other profiles. NULL takes
// dump-1, dump-2 and so on. Each count is in one file alone: the sum of all files is what the device
// has counted. Kernels are waited for as in rocov_stop. Answers ROCOV_STATUS_NOTHING where nothing
// was counted.
//
// # Safety
// `label` is null or NUL terminated.
RocovStatus rocov_dump(const char *label);

// Opens a label, within the one that the calling thread has opened before: what is counted until its
// end is written as profiles of that label. One to eight names with / between them, of at most 128
// bytes each. While several threads have labels open, what is counted is of all of them, as GPU
// counters do not tell which thread has launched a kernel. Kernels that run at its begin and end are
// waited for as in rocov_stop.
//
// A label that cannot be used answers ROCOV_STATUS_INVALID, and is to be closed all the same.
//
// # Safety
// `label` is null or NUL terminated.
RocovStatus rocov_label_push(const char *label);

// Closes the label that the calling thread has opened last; ROCOV_STATUS_NOTHING where it has none.
RocovStatus rocov_label_pop(void);

// For tools that are told of code objects by others, as by rocprofiler-sdk: one was loaded. It is
// looked at, unless librocov's own hooks see it.
RocovStatus rocov_code_loaded(void);

// Likewise: a code object is about to be unloaded. What is loaded is drained once its kernels are done,
// unless librocov's own hooks see that.
RocovStatus rocov_code_unloading(void);

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
