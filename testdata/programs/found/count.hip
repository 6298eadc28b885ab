// A kernel whose counts are the launch's geometry: of T work-items, T / 4 take the branch. SALT makes
// other code objects of it.
#include "dev.h"

#ifndef SALT
#define SALT 0
#endif

__global__ void count(u32 *out) {
  u32 i = global_x();
  if (i % 4 == 3) {
    out[i] = i + SALT;
  }
}
REGISTER_KERNEL(count);
