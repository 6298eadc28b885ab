/* Where tools/coverage has the counts of the code under test written to.
 *
 * By default that is LLVM_PROFILE_FILE. But tests set it for what librocov itself writes, the profiles of
 * device code: the two would lie in one directory, which goes with the test. FILENAME is a pattern as
 * that variable has it.
 */
#include <stdlib.h>

void __llvm_profile_set_filename(const char *pattern);
void __llvm_profile_reset_counters(void);
int __llvm_profile_write_file(void);

/* Ahead of the start of LLVM's runtime, which makes an empty file where that variable says. */
__attribute__((constructor(101))) static void write_elsewhere(void) {
  __llvm_profile_set_filename(FILENAME);
  /* Before LLVM's runtime has its writer called at exit, and so called after it. */
  atexit(__llvm_profile_reset_counters);
}

/* Once more, what librocov does after that. Each writing adds the file's counts to those in memory: without
 * the reset they would be doubled by each process. */
__attribute__((destructor(101))) static void write_again(void) {
  __llvm_profile_write_file();
}
