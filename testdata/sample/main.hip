// A small HIP program: makes up measurements, cleans them on the GPU, computes statistics there and
// checks everything against the CPU.
//
//   sample [--exit-status N]      N (default 0) is the exit status when all results are right
#include "statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>

constexpr int COUNT = 1000;
constexpr float LIMIT = 90.0f;

// Cuts values above the limit, and marks values that make no sense.
template <typename T> __global__ void clean_kernel(T *values, int count, T limit) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) {
    return;
  }
  if (values[i] != values[i]) {
    values[i] = T(-1); // never: no measurement is a NaN
    return;            // never
  } // never
  values[i] = clamp_to(values[i], T(0), limit);
}

// The number of steps from each number to 1: halve it if it is even, else triple it and add one.
// And its highest value on the way, in multiples of the start.
__global__ void steps_kernel(const int *numbers, int count, int *steps, int *rises) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) {
    return;
  }
  int number = numbers[i];
  if (number < 1) {
    steps[i] = -1; // never: all are positive
    return;        // never
  } // never
  int taken = 0;
  int highest = number;
  while (number != 1) {
    ++taken; // once per step
    if (number % 2 == 0) {
      number /= 2;
    } else {
      number = 3 * number + 1;
      highest = number > highest ? number : highest;
    }
  }
  steps[i] = taken;
  rises[i] = highest / numbers[i];
}

// Nobody calls this one.
__device__ float square(float value) { // never
  return value * value;                // never
} // never

static int failures;

static void expect(bool right, const char *what) {
  if (!right) {
    std::fprintf(stderr, "sample: %s differs from the CPU's\n", what);
    ++failures;
  }
}

static std::vector<float> clean(std::vector<float> measured) {
  DeviceArray<float> values(measured);
  clean_kernel<float><<<blocks_for(COUNT), BLOCK>>>(values.get(), COUNT, LIMIT);
  HIP_CHECK(hipGetLastError());
  HIP_CHECK(hipDeviceSynchronize());
  for (float &value : measured) {
    value = std::min(value, LIMIT);
  }
  expect(values.to_host() == measured, "the cleaned data");
  return measured;
}

static void check_histogram(const std::vector<float> &values) {
  constexpr float width = 5.0f;
  DeviceArray<float> device_values(values);
  DeviceArray<unsigned> bins(std::vector<unsigned>(BINS, 0));
  histogram(device_values.get(), COUNT, 0.0f, width, bins.get());
  std::vector<unsigned> expected(BINS, 0);
  for (float value : values) {
    ++expected[std::min(static_cast<int>(value / width), BINS - 1)];
  }
  expect(bins.to_host() == expected, "the histogram");
}

static void check_sum(const std::vector<float> &values) {
  DeviceArray<float> device_values(values);
  DeviceArray<float> sums(std::vector<float>(blocks_for(COUNT), 0.0f));
  block_sums(device_values.get(), COUNT, sums.get());
  double sum = 0, expected = 0;
  for (float block : sums.to_host()) {
    sum += block;
  }
  for (float value : values) {
    expected += value;
  }
  expect(std::abs(sum - expected) < 1e-3 * expected, "the sum");
}

static long check_steps() {
  std::vector<int> numbers(COUNT), expected(COUNT, 0), expected_rises(COUNT);
  long total = 0;
  for (int i = 0; i < COUNT; ++i) {
    numbers[i] = i + 1;
    int highest = i + 1;
    for (int n = i + 1; n != 1; n = n % 2 ? 3 * n + 1 : n / 2) {
      ++expected[i];
      highest = std::max(highest, n);
    }
    expected_rises[i] = highest / (i + 1);
    total += expected[i];
  }
  DeviceArray<int> device_numbers(numbers);
  DeviceArray<int> steps(std::vector<int>(COUNT, 0));
  DeviceArray<int> rises(std::vector<int>(COUNT, 0));
  steps_kernel<<<blocks_for(COUNT), BLOCK>>>(device_numbers.get(), COUNT, steps.get(), rises.get());
  HIP_CHECK(hipGetLastError());
  HIP_CHECK(hipDeviceSynchronize());
  expect(steps.to_host() == expected, "the number of steps");
  expect(rises.to_host() == expected_rises, "the rise");
  return total;
}

int main(int argc, char **argv) {
  std::vector<float> measured(COUNT);
  for (int i = 0; i < COUNT; ++i) {
    measured[i] = static_cast<float>(i * 37 % 1000) / 10.0f;
  }
  std::vector<float> values = clean(measured);
  check_histogram(values);
  check_sum(values);
  long steps = check_steps();
  if (failures) {
    return EXIT_FAILURE;
  }
  std::printf("sample: %d measurements, %ld steps, all as on the CPU\n", COUNT, steps);
  return argc == 3 && !std::strcmp(argv[1], "--exit-status") ? std::atoi(argv[2]) : 0;
}
