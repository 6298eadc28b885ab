// The other code object of hot.hip's program. HIP would load it at a launch of its kernel: never.

#include "../hip.h"

extern "C" __global__ void cold_kernel(int *value) { ++*value; }

extern "C" void keep_cold() {}
