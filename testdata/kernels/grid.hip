// Grids and workgroups of three dimensions, with workgroups that do not fill their last wave and
// grids that reach over the edge of the volume.
#include "dev.h"

struct Volume {
  u32 width;
  u32 height;
  u32 depth;
};

__global__ void coordinates(Volume volume, u32 *out, u32 *outside) {
  u32 x = global_x();
  u32 y = global_y();
  u32 z = global_z();
  if (x >= volume.width || y >= volume.height || z >= volume.depth) {
    __scoped_atomic_fetch_add(outside, 1u, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    return;
  }
  u32 at = (z * volume.height + y) * volume.width + x;
  out[at] = block_z() << 24 | thread_z() << 20 | y << 10 | x;
}
REGISTER_KERNEL(coordinates);

// A stencil along the three axes; the border keeps its value.
__global__ void stencil(Volume volume, const float *in, float *out) {
  u32 x = global_x();
  u32 y = global_y();
  u32 z = global_z();
  if (x >= volume.width || y >= volume.height || z >= volume.depth)
    return;
  u32 row = volume.width;
  u32 plane = volume.width * volume.height;
  u32 at = z * plane + y * row + x;
  bool border = x == 0 || y == 0 || z == 0 || x + 1 == volume.width || y + 1 == volume.height ||
                z + 1 == volume.depth;
  if (border) {
    out[at] = in[at];
  } else {
    float sum = in[at - 1] + in[at + 1];
    sum += in[at - row] + in[at + row];
    sum += in[at - plane] + in[at + plane];
    out[at] = sum / 6.0f;
  }
}
REGISTER_KERNEL(stencil);
