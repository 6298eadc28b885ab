// The Mandelbrot set: a loop that each lane leaves in a turn of its own, within a known bound.
#include "dev.h"

__global__ void mandelbrot(u32 *out, u32 width, u32 height, u32 limit) {
  u32 x = global_x();
  u32 y = global_y();
  if (x >= width || y >= height)
    return;
  float re = 3.0f * static_cast<float>(x) / static_cast<float>(width) - 2.0f;
  float im = 2.0f * static_cast<float>(y) / static_cast<float>(height) - 1.0f;
  float zr = 0.0f;
  float zi = 0.0f;
  u32 turns = 0;
  while (turns < limit) {
    float rr = zr * zr;
    float ii = zi * zi;
    if (rr + ii > 4.0f)
      break;
    zi = 2.0f * zr * zi + im;
    zr = rr - ii + re;
    ++turns;
  }
  out[y * width + x] = turns;
}
REGISTER_KERNEL(mandelbrot);
