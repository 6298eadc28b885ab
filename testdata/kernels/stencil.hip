// A five-point stencil in two dimensions, with a border of zeros.
#include "dev.h"

__global__ void five_points(const float *in, float *out, u32 n) {
  u32 x = global_x();
  u32 y = global_y();
  if (x > 0 && y > 0 && x < n - 1 && y < n - 1)
    out[y * n + x] = 0.2f * (in[y * n + x] + in[y * n + x - 1] + in[y * n + x + 1] + in[(y - 1) * n + x] +
                             in[(y + 1) * n + x]);
  else if (x < n && y < n)
    out[y * n + x] = 0.0f;
}
REGISTER_KERNEL(five_points);
