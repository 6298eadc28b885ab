/* Where tools/coverage has the counts of the code under test written to.
 *
 * By default that is LLVM_PROFILE_FILE. But tests set it for what librocov itself writes, the profiles of
 * device code: the two would lie in one directory, which goes with the test. FILENAME is a pattern as
 * that variable has it.
 */
void __llvm_profile_set_filename(const char *pattern);

/* Ahead of the start of LLVM's runtime, which makes an empty file where that variable says. */
__attribute__((constructor(101))) static void write_elsewhere(void) {
  __llvm_profile_set_filename(FILENAME);
}
