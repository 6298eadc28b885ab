// The drain on request: LLVM's, if it is in the program, or else librocov's.

#ifndef COLLECT_H
#define COLLECT_H

#include <dlfcn.h>

extern "C" int __llvm_profile_hip_collect_device_data() __attribute__((weak));

static int collect() {
  auto drain = __llvm_profile_hip_collect_device_data;
  if (drain == nullptr) {
    void *found = dlsym(RTLD_DEFAULT, "__llvm_profile_hip_collect_device_data");
    drain = reinterpret_cast<int (*)()>(found);
  }
  return drain == nullptr ? -1 : drain();
}

#endif
