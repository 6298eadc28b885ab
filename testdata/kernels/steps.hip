// A function that is not inlined, called in a loop.
#include "dev.h"

__device__ __noinline__ float step(float x, u32 turn) {
  if (x > 1.0f) {
    x = x * 0.5f;
  } else {
    x = x * 3.125f + static_cast<float>(turn);
  }
  return x;
}

__global__ void steps(float *values, u32 count, u32 turns) {
  u32 i = global_x();
  if (i < count) {
    float x = values[i];
    for (u32 turn = 0; turn < turns; ++turn) {
      x = step(x, turn & 3);
      if ((i & 1) && x > 2.0f) {
        x -= 1.0f;
      }
    }
    values[i] = x;
  }
}
REGISTER_KERNEL(steps);
