/* Calls all of rocov.h in a process without a GPU: there is nothing to do, to print or to leak. */
#include <rocov.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int failed;

static void expect(const char *what, long found, long expected) {
  if (found != expected) {
    printf("%s: %ld, expected %ld\n", what, found, expected);
    failed = 1;
  }
}

int main(void) {
  expect("version", strcmp(rocov_version(), ROCOV_EXPECTED_VERSION), 0);
  errno = 42;
  expect("drain", rocov_drain(), ROCOV_STATUS_NOTHING);
  expect("reset", rocov_reset(), ROCOV_STATUS_NOTHING);
  expect("a pattern", rocov_set_file("/nowhere/%p-%h-%m.profraw"), ROCOV_STATUS_OK);
  expect("back to the variable", rocov_set_file(NULL), ROCOV_STATUS_OK);
  expect("no pattern", rocov_set_file("a-%q.profraw"), ROCOV_STATUS_INVALID);
  expect("continuous", rocov_set_file("%c"), ROCOV_STATUS_INVALID);
  expect("not UTF-8", rocov_set_file("\xff.profraw"), ROCOV_STATUS_INVALID);
  expect("LLVM's entry point", __llvm_profile_hip_collect_device_data(), 0);
  __llvm_profile_offload_register_shadow_variable(&failed);
  __llvm_profile_offload_register_section_shadow_variable(&failed);
  __llvm_profile_offload_register_dynamic_module(0, NULL, NULL);
  expect("errno", errno, 42);
  return failed;
}
