// The check of the programs here: a failed call ends the program with its name.

#ifndef CHECK_H
#define CHECK_H

#include "../hip.h"

#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                \
  do {                                                                                             \
    const hipError_t check_error = (call);                                                         \
    if (check_error != hipSuccess) {                                                               \
      std::fprintf(stderr, "%s: %s\n", #call, hipGetErrorString(check_error));                     \
      std::exit(1);                                                                                \
    }                                                                                              \
  } while (false)

template <typename T> T *on_device(const T *values, int count) {
  T *copy = nullptr;
  CHECK(hipMalloc(&copy, count * sizeof(T)));
  CHECK(hipMemcpy(copy, values, count * sizeof(T), hipMemcpyHostToDevice));
  return copy;
}

template <typename T> void to_host(T *values, const T *device, int count) {
  CHECK(hipMemcpy(values, device, count * sizeof(T), hipMemcpyDeviceToHost));
}

#endif
