// A struct passed by value with members of every size, and loads and stores of bytes and halves,
// signed and unsigned, as in typical image code.
#include "dev.h"

struct Filter {
  int width;
  int height;
  float scale;
  u8 mode;
  short bias;
  u64 seed;
};

__global__ void filter(Filter f, const u8 *in, u8 *out, u16 *sums) {
  int x = static_cast<int>(global_x());
  int y = static_cast<int>(global_y());
  if (x >= f.width || y >= f.height)
    return;
  int at = y * f.width + x;
  int sum = 0;
  for (int dy = -1; dy <= 1; ++dy) {
    for (int dx = -1; dx <= 1; ++dx) {
      int nx = x + dx;
      int ny = y + dy;
      if (nx < 0 || ny < 0 || nx >= f.width || ny >= f.height)
        continue;
      sum += in[ny * f.width + nx];
    }
  }
  int value;
  switch (f.mode) {
  case 0:
    value = sum / 9;
    break;
  case 1:
    value = static_cast<int>(static_cast<float>(sum) * f.scale) + f.bias;
    break;
  default:
    value = static_cast<int>(f.seed >> (at & 31));
    break;
  }
  if (value < 0)
    value = 0;
  else if (value > 255)
    value = 255;
  out[at] = static_cast<u8>(value);
  sums[at] = static_cast<u16>(sum);
}
REGISTER_KERNEL(filter);

__global__ void sign_extend(const signed char *bytes, const short *halves, int *out, u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  int product = bytes[i] * halves[i];
  out[i] = product < 0 ? product - 1 : product;
}
REGISTER_KERNEL(sign_extend);
