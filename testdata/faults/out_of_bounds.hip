// Reads far beyond its buffer, from an address that is not mapped.
#include "../kernels/dev.h"

__global__ void reads_out_of_bounds(const u32 *in, u32 *out, u64 distance) {
  u32 i = global_x();
  out[i] = in[i + distance];
}
