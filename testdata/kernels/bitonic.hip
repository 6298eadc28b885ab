// A step of a bitonic sort: short, with branches in branches. A launch for each step.
#include "dev.h"

__global__ void bitonic(u32 *values, u32 count, u32 distance, u32 block) {
  u32 i = global_x();
  u32 other = i ^ distance;
  if (other > i && other < count) {
    bool ascending = (i & block) == 0;
    if (ascending ? values[i] > values[other] : values[i] < values[other]) {
      u32 value = values[i];
      values[i] = values[other];
      values[other] = value;
    }
  }
}
REGISTER_KERNEL(bitonic);
