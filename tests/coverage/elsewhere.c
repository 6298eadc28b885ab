/* Sets the file in which tools/dev/coverage collects the counts of the code under test.
 *
 * The default is LLVM_PROFILE_FILE. But tests set it for librocov's own profiles of device code: both would
 * lie in one directory, and the test removes it. FILENAME is a pattern in the syntax of that variable.
 */
#include <stdlib.h>

void __llvm_profile_set_filename(const char *pattern);
void __llvm_profile_reset_counters(void);
int __llvm_profile_write_file(void);

/* Runs before the start of LLVM's runtime, which would create an empty file at the variable's path. */
__attribute__((constructor(101))) static void write_elsewhere(void) {
  __llvm_profile_set_filename(FILENAME);
  /* Registered before LLVM's runtime registers its writer, so it runs after the writer. */
  atexit(__llvm_profile_reset_counters);
}

/* Writes once more, for librocov's later code. Each write adds the file's counts to those in memory: without
 * the reset, each process would double them. */
__attribute__((destructor(101))) static void write_again(void) {
  __llvm_profile_write_file();
}
