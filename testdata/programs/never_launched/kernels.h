#ifndef KERNELS_H
#define KERNELS_H

#include "../hip.h"

#include <cstdlib>

constexpr int COUNT = 64;

inline void check(hipError_t error) {
  if (error != hipSuccess) {
    std::exit(1);
  }
}

template <typename Launch> void on_values(Launch launch) {
  float *values = nullptr;
  check(hipMalloc(&values, COUNT * sizeof *values));
  launch(values);
  check(hipDeviceSynchronize());
  check(hipFree(values));
}

void launch_scale();

#endif
