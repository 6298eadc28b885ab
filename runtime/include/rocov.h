/* rocov.h: functions that a program calls to choose when rocov writes its GPU counters.
 *
 * Link with -lrocov or, so that the program also runs without librocov, look up the functions with
 * dlsym(RTLD_DEFAULT, ...). You can call every function from any thread. In a process without a GPU,
 * the functions do nothing.
 *
 * Generated from runtime/src/enter/c_api.rs; see runtime/tests/header.rs.
 */

#ifndef ROCOV_H
#define ROCOV_H

// The result of a function in this library. The meaning of a number never changes.
typedef enum {
  // The function succeeded.
  ROCOV_STATUS_OK = 0,
  // There was nothing to do. For example, this process does not use a GPU, nothing was counted, no label or window
  // is open, or LLVM's own runtime drains this program.
  ROCOV_STATUS_NOTHING = 1,
  // rocov could not read or write some counts. A line on standard error names them and explains the reason.
  ROCOV_STATUS_LOSS = 2,
  // The argument is not UTF-8, or is not a valid name pattern or label. A line on standard error explains the
  // reason.
  ROCOV_STATUS_INVALID = 3,
  // An internal error of this library.
  ROCOV_STATUS_INTERNAL = 4,
} RocovStatus;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of this library, such as "0.1.0". The string remains valid; do not free it.
const char *rocov_version(void);

// Immediately writes the counts of every loaded code object, even if kernels are running. Their later counts are
// written by the next drain, at the latest when the code object is unloaded or the process exits. Nothing is counted
// twice.
RocovStatus rocov_drain(void);

// Zeroes the counters of every loaded code object on the device. Counts that have already been drained stay in their
// files, and later counts are added to them. Counts since the last drain are discarded.
RocovStatus rocov_reset(void);

// Sets the name pattern of profiles from now on, in the format of LLVM_PROFILE_FILE. NULL restores the
// pattern of that variable. Files with the old name are kept, and the files with the new name contain
// all counts.
//
// # Safety
// `pattern` is null or NUL terminated.
RocovStatus rocov_set_file(const char *pattern);

// Opens a window. rocov then writes only counts from inside windows, and discards all counts before the first one. The
// counters on the device do not change.
RocovStatus rocov_start(void);

// Closes the window, or ends the period before the first window. Writes the counts of that period, and leaves out
// later counts until the next rocov_start. Waits for running kernels, but no longer than ROCOV_WAIT.
RocovStatus rocov_stop(void);

// Writes the counts since the last dump or drain, or since labels or windows last changed, as a profile with the label
// `label` inside the open labels. The profile goes to labels/LABEL next to the other profiles. If `label` is NULL, the
// labels are dump-1, dump-2 and so on. Each count is in only one file, so the sum over all files is the count on the
// device. Waits for kernels in the same way as rocov_stop. Returns ROCOV_STATUS_NOTHING if nothing was counted.
//
// # Safety
// `label` is null or NUL terminated.
RocovStatus rocov_dump(const char *label);

// Opens a label inside the last open label of the calling thread. rocov writes the counts up to the end of the label
// as profiles with that label. A label consists of one to eight names separated by /, of at most 128 bytes each. GPU
// counters do not show which thread launched a kernel, so while several threads have open labels, counts belong to all
// of these labels. Waits for kernels at both ends in the same way as rocov_stop.
//
// Returns ROCOV_STATUS_INVALID for a label that cannot be used. Close that one, too.
//
// # Safety
// `label` is null or NUL terminated.
RocovStatus rocov_label_push(const char *label);

// Closes the last label that the calling thread opened. Returns ROCOV_STATUS_NOTHING if no label is open. When a
// thread ends, its open labels are closed.
RocovStatus rocov_label_pop(void);

// Notifies librocov that a code object was loaded. This is for tools that get this information from another source,
// such as rocprofiler-sdk. Does nothing if librocov's own hooks intercept loads.
RocovStatus rocov_code_loaded(void);

// Notifies librocov that the GPU has stopped a kernel permanently, and why. The reason goes into the registry, and
// reports show it. Later drains do not wait for kernels. This is for simulators and debuggers, because a GPU does not
// report reasons.
//
// # Safety
// `reason` is NUL terminated UTF-8.
RocovStatus rocov_kernel_stopped(const char *reason);

// Notifies librocov that a code object is about to be unloaded. Waits for kernels and drains all loaded code. Does
// nothing if librocov's own hooks intercept unloads.
RocovStatus rocov_code_unloading(void);

// LLVM's entry point for an early drain. Returns 0, or -1 if counts were lost. If LLVM's own runtime drains this
// program, also passes the call on to it, because the call may be meant for it.
int __llvm_profile_hip_collect_device_data(void);

// Does nothing. Objects that were compiled for LLVM's earlier drain, which registered device variables,
// need it to link and run.
void __llvm_profile_offload_register_shadow_variable(void *variable);

// Does nothing. Objects for LLVM's earlier drain need it to link.
void __llvm_profile_offload_register_section_shadow_variable(void *variable);

// Does nothing: librocov follows modules through HSA. Objects for LLVM's earlier drain need it to link.
void __llvm_profile_offload_register_dynamic_module(int status,
                                                    void **module,
                                                    const void *image);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ROCOV_H */
