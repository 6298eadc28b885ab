// Powers of floats with the device's math library, which reads the denormal mode.
#include <cmath>
#include <hip/hip_runtime.h>

constexpr int COUNT = 64;

__global__ void powers(const float *base, float *result) {
  int i = threadIdx.x;
  result[i] = powf(base[i], 1.5f);
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
  return 0;
}
