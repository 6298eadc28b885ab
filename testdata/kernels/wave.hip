// Operations of all lanes of one wave: ballot, lane number, shuffle, the first lane's value; then a
// dense switch.
#include "dev.h"

__global__ void vote(const int *in, int *out, u64 *votes, u32 n) {
  u32 i = global_x();
  int value = i < n ? in[i] : 0;
  u64 negative = ballot(value < 0);
  u64 odd = ballot((value & 1) != 0);
  if (lane() == 0)
    votes[i / 64] = negative ^ odd << 1;
  if (i >= n)
    return;
  int result;
  switch (value & 7) {
  case 0:
    result = value + 1;
    break;
  case 1:
    result = value * 3;
    break;
  case 2:
    result = __builtin_popcountll(negative);
    break;
  case 3:
    result = value >> 2;
    break;
  case 4:
  case 5:
    result = -value;
    break;
  case 6:
    result = __builtin_popcountll(odd) - value;
    break;
  default:
    result = 0;
    break;
  }
  out[i] = result;
}
REGISTER_KERNEL(vote);

// A butterfly sum over the wave, then every lane's rotation by the first lane's value.
__global__ void butterfly(const u32 *in, u32 *sums, u32 *rotated) {
  u32 i = global_x();
  u32 sum = in[i];
  for (u32 distance = 32; distance > 0; distance >>= 1)
    sum += shuffle(sum, lane() ^ distance);
  sums[i] = sum;
  u32 by = first_lane(in[i]) & 63;
  rotated[i] = shuffle(in[i], (lane() + by) & 63);
}
REGISTER_KERNEL(butterfly);
