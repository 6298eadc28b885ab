// Uses an instruction for debuggers, which the modelled GPU refuses.
#include "../kernels/dev.h"

__global__ void halts(float *out) {
  asm volatile("s_sethalt 1");
  out[thread_x()] = 1;
}
