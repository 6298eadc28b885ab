// Tiled matrix multiplication: two-dimensional workgroups, two tiles in LDS, barriers in a loop,
// edges of the matrix that fill only part of a tile.
#include "dev.h"

constexpr u32 TILE = 8;

__global__ void matmul(const float *a, const float *b, float *c, u32 n) {
  __shared__ float tile_a[TILE][TILE];
  __shared__ float tile_b[TILE][TILE];
  u32 tx = thread_x();
  u32 ty = thread_y();
  u32 row = global_y();
  u32 column = global_x();
  float sum = 0.0f;
  for (u32 first = 0; first < n; first += TILE) {
    tile_a[ty][tx] = row < n && first + tx < n ? a[row * n + first + tx] : 0.0f;
    tile_b[ty][tx] = first + ty < n && column < n ? b[(first + ty) * n + column] : 0.0f;
    barrier();
    for (u32 k = 0; k < TILE; ++k)
      sum += tile_a[ty][k] * tile_b[k][tx];
    barrier();
  }
  if (row < n && column < n)
    c[row * n + column] = sum;
}
REGISTER_KERNEL(matmul);
