// Calibrates readings by a list of steps, the same for all of them. Nearly all steps scale; one in
// 200 takes a root, which costs much more.
#include "../hip.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                \
  if (hipError_t error = (call); error != hipSuccess) {                                            \
    std::fprintf(stderr, "calibrate: %s: %s\n", #call, hipGetErrorString(error));                  \
    std::exit(1);                                                                                  \
  }

enum Kind { SCALE, ROOT };

struct Step {
  Kind kind;
  float factor, offset;
};

constexpr int STEPS = 200;
constexpr int READINGS = 1024;
constexpr int BLOCK = 256;

// The square root of the square root, and so on. The loop keeps clang from computing a root ahead
// before it counts LLVM's IR.
__host__ __device__ float root(float value, int times) {
  for (int i = 0; i < times; ++i) {
    value = __builtin_sqrtf(value);
  }
  return value;
}

__host__ __device__ float apply(const Step &step, float value) {
  value = value * step.factor + step.offset;
  if (step.kind == ROOT) {
    value = root(value, 1); // rare
  }
  return value;
}

__global__ void calibrate(const Step *steps, int count, float *readings) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = readings[i];
  for (int s = 0; s < count; ++s) {
    value = apply(steps[s], value);
  }
  readings[i] = value;
}

int main() {
  Step steps[STEPS];
  for (Step &step : steps) {
    step = {SCALE, 0.5f, 1.0f};
  }
  steps[STEPS - 2] = {ROOT, 3.0f, 2.0f};
  float readings[READINGS], expected[READINGS];
  for (int i = 0; i < READINGS; ++i) {
    readings[i] = expected[i] = static_cast<float>(i);
    for (const Step &step : steps) {
      expected[i] = apply(step, expected[i]);
    }
  }
  Step *device_steps;
  float *device_readings;
  CHECK(hipMalloc(&device_steps, sizeof(steps)));
  CHECK(hipMalloc(&device_readings, sizeof(readings)));
  CHECK(hipMemcpy(device_steps, steps, sizeof(steps), hipMemcpyHostToDevice));
  CHECK(hipMemcpy(device_readings, readings, sizeof(readings), hipMemcpyHostToDevice));
  calibrate<<<READINGS / BLOCK, BLOCK>>>(device_steps, STEPS, device_readings);
  CHECK(hipGetLastError());
  CHECK(hipMemcpy(readings, device_readings, sizeof(readings), hipMemcpyDeviceToHost));
  for (int i = 0; i < READINGS; ++i) {
    if (std::abs(readings[i] - expected[i]) > 1e-5f) {
      std::fprintf(stderr, "calibrate: reading %d is %g, expected %g\n", i, readings[i], expected[i]);
      return 1;
    }
  }
  std::printf("calibrate: %d readings, all as on the CPU\n", READINGS);
}
