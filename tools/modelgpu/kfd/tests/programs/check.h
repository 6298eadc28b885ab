// Shared checks of HIP test programs: they print and count each failed call or wrong value.
#pragma once
#include <cstdio>

inline int failures = 0;

#define CHECK_HIP(call)                                                                      \
  do {                                                                                       \
    hipError_t error_ = (call);                                                              \
    if (error_ != hipSuccess) {                                                              \
      std::printf("line %d: %s: %s\n", __LINE__, #call, hipGetErrorString(error_));          \
      failures++;                                                                            \
    }                                                                                        \
  } while (0)

#define CHECK(condition)                                                                     \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      std::printf("line %d: not true: %s\n", __LINE__, #condition);                          \
      failures++;                                                                            \
    }                                                                                        \
  } while (0)

// Ends main: the marker shows that the program got here.
inline int finish() {
  std::printf("finished, failures: %d\n", failures);
  return failures ? 1 : 0;
}
