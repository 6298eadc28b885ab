/* rocov.h: lets a program choose when rocov writes its GPU counters.
 *
 * Link with -lrocov, or look up the functions with dlsym(RTLD_DEFAULT, ...), so that the program also
 * runs without librocov. You may call every function from any thread. The functions do nothing in a
 * process without a GPU.
 *
 * Generated from runtime/src/enter/c_api.rs; see runtime/tests/header.rs.
 */

#ifndef ROCOV_H
#define ROCOV_H

// The result of a function of this library. A number never changes its meaning.
typedef enum {
  // The function succeeded.
  ROCOV_STATUS_OK = 0,
  // There was nothing to do. For example, this process uses no GPU, nothing was counted, no label or
  // window is open, or LLVM's own runtime drains this program.
  ROCOV_STATUS_NOTHING = 1,
  // rocov could not read or write some counts. A line on standard error names them and the reason.
  ROCOV_STATUS_LOSS = 2,
  // The argument is not UTF-8, or is not a valid name pattern or label. A line on standard error names the
  // reason.
  ROCOV_STATUS_INVALID = 3,
  // An internal error of this library.
  ROCOV_STATUS_INTERNAL = 4,
} RocovStatus;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Returns the version of this library, such as "0.1.0". The text is valid forever; do not free it.
const char *rocov_version(void);

// Writes the counts of every loaded code object now. Kernels may run meanwhile. The next drain writes
// their later counts, at the latest when the code object is unloaded or the process exits. Nothing is
// counted twice.
RocovStatus rocov_drain(void);

// Zeroes the counters of every loaded code object on the device. Counts that were drained before stay
// written, and later counts add to them. Counts since the last drain are dropped.
RocovStatus rocov_reset(void);

// Sets the name pattern of profiles from now on, in the format of LLVM_PROFILE_FILE. NULL restores the
// pattern of that variable. Files with the old name are kept, and the files with the new name contain
// all counts.
//
// # Safety
// `pattern` is null or NUL terminated.
RocovStatus rocov_set_file(const char *pattern);

// Opens a window. rocov writes only counts inside windows, and leaves out all counts before the first
// one. The device's counters do not change.
RocovStatus rocov_start(void);

// Closes the window, or the time before the first one. Writes its counts, and leaves out later counts
// until the next rocov_start. Waits for running kernels, no longer than ROCOV_WAIT.
RocovStatus rocov_stop(void);

// Writes the counts since the last dump or drain, or change of labels or windows, as a profile of
// `label`, within the open labels: into labels/LABEL next to the other profiles. NULL selects dump-1,
// dump-2 and so on. Each count is in one file only: the sum of all files is the count of the device.
// Waits for kernels as rocov_stop does. Returns ROCOV_STATUS_NOTHING if nothing was counted.
//
// # Safety
// `label` is null or NUL terminated.
RocovStatus rocov_dump(const char *label);

// Opens a label, within the last open label of the calling thread. rocov writes the counts up to its
// end as profiles of that label. A label has one to eight names with / between them, of at most 128
// bytes each. GPU counters do not show which thread launched a kernel: while several threads have open
// labels, counts belong to all of these labels. Waits at both ends for kernels as rocov_stop does.
//
// Returns ROCOV_STATUS_INVALID for a label that cannot be used. Close that one, too.
//
// # Safety
// `label` is null or NUL terminated.
RocovStatus rocov_label_push(const char *label);

// Closes the last label that the calling thread opened. Returns ROCOV_STATUS_NOTHING if it has none.
// The open labels of a thread end with the thread.
RocovStatus rocov_label_pop(void);

// Notifies librocov that a code object was loaded. For tools that get this information from elsewhere,
// such as rocprofiler-sdk. Does nothing if librocov's own hooks see loads.
RocovStatus rocov_code_loaded(void);

// Notifies librocov that the GPU has stopped a kernel permanently, and why. The reason goes into the
// registry, and reports show it. No later drain waits for kernels. For simulators and debuggers: a GPU
// reports no reasons.
//
// # Safety
// `reason` is NUL terminated UTF-8.
RocovStatus rocov_kernel_stopped(const char *reason);

// Notifies librocov that a code object is about to be unloaded. Waits for kernels and drains all loaded
// code. Does nothing if librocov's own hooks see unloads.
RocovStatus rocov_code_unloading(void);

// Drains early: LLVM's entry point. Returns 0, or -1 if counts were lost. If LLVM's own runtime drains
// this program, passes the call on to it, because the call may be meant for it.
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
