// A tree reduction in LDS with a barrier per step; several waves per workgroup.
#include "dev.h"

__global__ void reduce(const float *in, float *out, u32 n) {
  __shared__ float partial[256];
  u32 t = thread_x();
  u32 i = global_x();
  partial[t] = i < n ? in[i] : 0.0f;
  barrier();
  for (u32 width = block_size_x() / 2; width > 0; width >>= 1) {
    if (t < width)
      partial[t] += partial[t + width];
    barrier();
  }
  if (t == 0)
    out[block_x()] = partial[0];
}
REGISTER_KERNEL(reduce);
