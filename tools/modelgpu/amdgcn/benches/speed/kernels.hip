// The twelve kernels of the benchmark, of the kinds that HIP programs have. The host compiles this
// file too, with host.h.
#include "device.h"

// Streams through memory.
__global__ void saxpy(const float *x, float *y, u32 n, float a) {
  u32 i = global_x();
  if (i < n)
    y[i] = a * x[i] + y[i];
}

// Double precision, neighbours in two dimensions, edges that do nothing.
__global__ void heat(const double *from, double *to, u32 n) {
  u32 x = global_x(), y = global_y();
  if (x == 0 || y == 0 || x >= n - 1 || y >= n - 1)
    return;
  u32 i = y * n + x;
  to[i] = from[i] + 0.125 * (from[i - 1] + from[i + 1] + from[i - n] + from[i + n] - 4.0 * from[i]);
}

// Tiles in LDS.
constexpr u32 TILE = 16;
__global__ void matmul(const float *a, const float *b, float *c, u32 n) {
  __shared__ float tile_a[TILE][TILE];
  __shared__ float tile_b[TILE][TILE];
  u32 tx = thread_x(), ty = thread_y(), row = global_y(), column = global_x();
  float sum = 0.0f;
  for (u32 first = 0; first < n; first += TILE) {
    tile_a[ty][tx] = a[row * n + first + tx];
    tile_b[ty][tx] = b[(first + ty) * n + column];
    barrier();
    for (u32 k = 0; k < TILE; ++k)
      sum += tile_a[ty][k] * tile_b[k][tx];
    barrier();
  }
  c[row * n + column] = sum;
}

// A tree of sums in LDS.
__global__ void reduce(const float *in, float *out, u32 n) {
  __shared__ float sums[256];
  u32 t = thread_x();
  float sum = 0.0f;
  for (u32 i = block_x() * 2048 + t; i < block_x() * 2048 + 2048 && i < n; i += 256)
    sum += in[i];
  sums[t] = sum;
  barrier();
  for (u32 half = 128; half > 0; half /= 2) {
    if (t < half)
      sums[t] += sums[t + half];
    barrier();
  }
  if (t == 0)
    out[block_x()] = sums[0];
}

// Atomics on LDS and on memory.
__global__ void histogram(const u32 *in, u32 *bins, u32 n) {
  __shared__ u32 own[256];
  u32 t = thread_x();
  own[t] = 0;
  barrier();
  for (u32 i = block_x() * 4096 + t; i < block_x() * 4096 + 4096 && i < n; i += 256)
    atomic_add(&own[in[i] >> 24], 1u);
  barrier();
  atomic_add(&bins[t], own[t]);
}

// Loops of different lengths in the lanes of a wave.
__global__ void mandelbrot(u32 *out, u32 n, u32 limit) {
  u32 px = global_x(), py = global_y();
  float cx = -2.0f + 3.0f * static_cast<float>(px) / static_cast<float>(n);
  float cy = -1.5f + 3.0f * static_cast<float>(py) / static_cast<float>(n);
  float x = 0.0f, y = 0.0f;
  u32 steps = 0;
  while (steps < limit && x * x + y * y < 4.0f) {
    float next = x * x - y * y + cx;
    y = 2.0f * x * y + cy;
    x = next;
    ++steps;
  }
  out[py * n + px] = steps;
}

// Sorts each 512 elements in LDS.
__global__ void bitonic(u32 *data) {
  __shared__ u32 part[512];
  u32 t = thread_x();
  u32 *mine = data + block_x() * 512;
  part[t] = mine[t];
  part[t + 256] = mine[t + 256];
  for (u32 size = 2; size <= 512; size *= 2)
    for (u32 stride = size / 2; stride > 0; stride /= 2) {
      barrier();
      u32 low = 2 * t - (t & (stride - 1));
      bool up = (low & size) == 0;
      u32 a = part[low], b = part[low + stride];
      if ((a > b) == up) {
        part[low] = b;
        part[low + stride] = a;
      }
    }
  barrier();
  mine[t] = part[t];
  mine[t + 256] = part[t + 256];
}

// Integer arithmetic: multiplications, rotations, xors.
__global__ void hash(const u32 *in, u32 *out, u32 rounds) {
  u32 i = global_x();
  u32 h = in[i];
  for (u32 round = 0; round < rounds; ++round) {
    u32 k = (h ^ round) * 0xcc9e2d51u;
    k = (k << 15 | k >> 17) * 0x1b873593u;
    h ^= k;
    h = (h << 13 | h >> 19) * 5 + 0xe6546b64u;
    h ^= h >> 16;
  }
  out[i] = h;
}

// Functions of single precision: the price of an option by Black and Scholes.
__device__ float normal(float d) {
  float k = 1.0f / (1.0f + 0.2316419f * __builtin_fabsf(d));
  float poly = k * (0.31938153f +
                    k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  float value = 0.39894228f * __builtin_expf(-0.5f * d * d) * poly;
  return d > 0.0f ? 1.0f - value : value;
}
__global__ void black_scholes(const float *price, const float *strike, const float *years, float *call,
                              u32 n) {
  u32 i = global_x();
  if (i >= n)
    return;
  const float rate = 0.02f, volatility = 0.3f;
  float root = __builtin_sqrtf(years[i]);
  float d1 = (__builtin_logf(price[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) /
             (volatility * root);
  float d2 = d1 - volatility * root;
  call[i] = price[i] * normal(d1) - strike[i] * __builtin_expf(-rate * years[i]) * normal(d2);
}

// Prefix sums of each 256 elements in LDS.
__global__ void scan(const u32 *in, u32 *out) {
  __shared__ u32 sums[2][256];
  u32 t = thread_x(), i = global_x(), now = 0;
  sums[0][t] = in[i];
  barrier();
  for (u32 distance = 1; distance < 256; distance *= 2) {
    u32 value = sums[now][t];
    if (t >= distance)
      value += sums[now][t - distance];
    now ^= 1;
    sums[now][t] = value;
    barrier();
  }
  out[i] = sums[now][t];
}

// Moves rows to columns through LDS.
__global__ void transpose(const float *in, float *out, u32 n) {
  __shared__ float tile[16][17];
  u32 tx = thread_x(), ty = thread_y();
  tile[ty][tx] = in[global_y() * n + global_x()];
  barrier();
  out[(block_x() * 16 + ty) * n + block_y() * 16 + tx] = tile[tx][ty];
}

// Forces between all pairs.
struct Body {
  float x, y, z, mass;
};
__global__ void nbody(const Body *bodies, Body *forces, u32 n) {
  u32 i = global_x();
  Body own = bodies[i];
  float fx = 0.0f, fy = 0.0f, fz = 0.0f;
  for (u32 j = 0; j < n; ++j) {
    Body other = bodies[j];
    float dx = other.x - own.x, dy = other.y - own.y, dz = other.z - own.z;
    float square = dx * dx + dy * dy + dz * dz + 0.01f;
    float inverse = 1.0f / __builtin_sqrtf(square);
    float force = other.mass * inverse * inverse * inverse;
    fx += force * dx;
    fy += force * dy;
    fz += force * dz;
  }
  forces[i] = {fx, fy, fz, own.mass};
}
