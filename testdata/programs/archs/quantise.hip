// Quantises measurements to steps of a scale, with a shortcut that only gfx942 takes.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

constexpr int COUNT = 1000;
constexpr float SCALE = 0.25f;

// The CPU rounds with the same function, to check the GPU's results.
__host__ __device__ int rounded(float value) { // not on gfx942
  if (value < 0) {                             // not on gfx942
    return static_cast<int>(value - 0.5f);     // never: no measurement is negative
  } // never
  return static_cast<int>(value + 0.5f); // not on gfx942
} // not on gfx942

__device__ int steps(float value, float scale) {
  float scaled = value / scale;
#ifdef __gfx942__
  if (scaled == truncf(scaled)) {
    return static_cast<int>(scaled);
  }
#endif                                             // not on gfx942
  int limit = 1 << 20;                             // not on gfx942
  return scaled > limit ? limit : rounded(scaled); // not on gfx942
}

__global__ void quantise(const float *values, int count, float scale, int *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    out[i] = steps(values[i], scale);
  }
}

// No code launches this one.
__global__ void restore(const int *steps, int count, float scale, float *out) { // never
  int i = blockIdx.x * blockDim.x + threadIdx.x;                                // never
  if (i < count) {                                                              // never
    out[i] = static_cast<float>(steps[i]) * scale;                              // never
  } // never
} // never

static void check(hipError_t status) {
  if (status != hipSuccess) {
    std::fprintf(stderr, "quantise: %s\n", hipGetErrorString(status));
    std::exit(EXIT_FAILURE);
  }
}

int main() {
  std::vector<float> values(COUNT);
  for (int i = 0; i < COUNT; ++i) {
    values[i] = static_cast<float>(i % 100) * SCALE;
  }
  float *input = nullptr;
  int *output = nullptr;
  check(hipMalloc(reinterpret_cast<void **>(&input), COUNT * sizeof(float)));
  check(hipMalloc(reinterpret_cast<void **>(&output), COUNT * sizeof(int)));
  check(hipMemcpy(input, values.data(), COUNT * sizeof(float), hipMemcpyHostToDevice));
  quantise<<<4, 256>>>(input, COUNT, SCALE, output);
  std::vector<int> found(COUNT);
  check(hipMemcpy(found.data(), output, COUNT * sizeof(int), hipMemcpyDeviceToHost));
  for (int i = 0; i < COUNT; ++i) {
    if (found[i] != rounded(values[i] / SCALE)) {
      std::fprintf(stderr, "quantise: %d steps for %g\n", found[i], values[i]);
      return EXIT_FAILURE;
    }
  }
  std::printf("quantise: %d measurements, all as on the CPU\n", COUNT);
  return EXIT_SUCCESS;
}
