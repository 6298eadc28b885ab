// Powers of floats with the device's math library, which reads the denormal mode; reciprocals of halves
// and atomics that wrap, which HIP 5.2 takes from clang.
#include <cmath>
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>

constexpr int COUNT = 64;

__global__ void powers(const float *base, float *result) {
  int i = threadIdx.x;
  result[i] = powf(base[i], 1.5f);
}

/// The reciprocals of powers of two are exact. Work-items turn two counters in opposite ways.
__global__ void reciprocals(float *result, unsigned *turns) {
  int i = threadIdx.x;
  result[i] = __half2float(hrcp(__float2half(ldexpf(1.0f, i % 8))));
  atomicInc(&turns[0], 9);
  atomicDec(&turns[1], 9);
}

int main() {
  float base[COUNT], result[COUNT];
  for (int i = 0; i < COUNT; ++i)
    base[i] = 0.25f * static_cast<float>(i + 1);
  float *in, *out;
  if (hipMalloc(&in, sizeof base) != hipSuccess || hipMalloc(&out, sizeof result) != hipSuccess ||
      hipMemcpy(in, base, sizeof base, hipMemcpyHostToDevice) != hipSuccess)
    return 1;
  powers<<<1, COUNT>>>(in, out);
  if (hipMemcpy(result, out, sizeof result, hipMemcpyDeviceToHost) != hipSuccess)
    return 2;
  for (int i = 0; i < COUNT; ++i) {
    float expected = std::pow(base[i], 1.5f);
    if (std::fabs(result[i] - expected) > 1e-5f * expected)
      return 3;
  }

  unsigned turns[2] = {0, 0}, *turning;
  if (hipMalloc(&turning, sizeof turns) != hipSuccess ||
      hipMemcpy(turning, turns, sizeof turns, hipMemcpyHostToDevice) != hipSuccess)
    return 4;
  reciprocals<<<1, COUNT>>>(out, turning);
  if (hipMemcpy(result, out, sizeof result, hipMemcpyDeviceToHost) != hipSuccess ||
      hipMemcpy(turns, turning, sizeof turns, hipMemcpyDeviceToHost) != hipSuccess)
    return 5;
  for (int i = 0; i < COUNT; ++i)
    if (result[i] != std::ldexp(1.0f, -(i % 8)))
      return 6;
  // 64 turns of 10 places: 4 up from 0, and 4 down from 10.
  return turns[0] == 4 && turns[1] == 6 ? 0 : 7;
}
