// Calibrates readings by a list of steps, the same for all of them. Nearly all steps scale; one in 200 takes a root,
// which costs much more. A profile tells the compiler not to compute the root at each step. Prints the time of the
// kernel in milliseconds, the best of several.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    const cudaError_t error = (call);                                                                                  \
    if (error != cudaSuccess) {                                                                                        \
      std::printf("%s: %s\n", #call, cudaGetErrorString(error));                                                       \
      std::exit(99);                                                                                                   \
    }                                                                                                                  \
  } while (0)

enum Kind { SCALE, ROOT };

struct Step {
  Kind kind;
  float factor, offset;
};

constexpr int STEPS = 200, READINGS = 1 << 22, BLOCK = 256, RUNS = 10;

// The square root of the square root, and so on. The loop keeps clang from computing a root ahead before it counts
// LLVM's IR.
__host__ __device__ float root(float value, int times) {
  for (int i = 0; i < times; ++i)
    value = __builtin_sqrtf(value);
  return value;
}

__host__ __device__ float apply(const Step &step, float value) {
  value = value * step.factor + step.offset;
  if (step.kind == ROOT)
    value = root(value, 1); // rare
  return value;
}

__global__ void calibrate(const Step *steps, int count, float *readings) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = readings[i];
  for (int s = 0; s < count; ++s)
    value = apply(steps[s], value);
  readings[i] = value;
}

int main() {
  Step steps[STEPS], *device_steps;
  for (Step &step : steps)
    step = {SCALE, 0.5f, 1.0f};
  steps[STEPS - 2] = {ROOT, 3.0f, 2.0f};
  float *const readings = new float[READINGS], *device_readings;
  for (int i = 0; i < READINGS; ++i)
    readings[i] = static_cast<float>(i % 1000);
  CHECK(cudaMalloc(&device_steps, sizeof steps));
  CHECK(cudaMalloc(&device_readings, READINGS * sizeof *readings));
  CHECK(cudaMemcpy(device_steps, steps, sizeof steps, cudaMemcpyHostToDevice));
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  float best = 1e9f;
  for (int run = 0; run < RUNS; ++run) {
    CHECK(cudaMemcpy(device_readings, readings, READINGS * sizeof *readings, cudaMemcpyHostToDevice));
    CHECK(cudaEventRecord(begin));
    calibrate<<<READINGS / BLOCK, BLOCK>>>(device_steps, STEPS, device_readings);
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    float milliseconds;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    best = milliseconds < best ? milliseconds : best;
  }
  float *const results = new float[READINGS];
  CHECK(cudaMemcpy(results, device_readings, READINGS * sizeof *results, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 1000; ++i) {
    float expected = readings[i];
    for (const Step &step : steps)
      expected = apply(step, expected);
    if (std::abs(results[i] - expected) > 1e-5f) {
      std::printf("reading %d is %g, expected %g\n", i, results[i], expected);
      return 1;
    }
  }
  std::printf("milliseconds %.4f\n", best);
}
