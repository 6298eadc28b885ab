// Kernels whose uniformity follows from the source: waves have 64 lanes.
//
// The comment at the end of a line is the share of its executions that have all lanes of the wave
// active, or "not known" if no counter tells it.
#include <hip/hip_runtime.h>

constexpr int LANES = 64;
constexpr int GROUP = 2 * LANES;
constexpr int GROUPS = 4;

__device__ int place() { // 100.00%
  return blockIdx.x * blockDim.x + threadIdx.x; // 100.00%
} // 100.00%

__global__ void a_quarter_of_the_lanes(int *values) { // 100.00%
  const int i = place(); // 100.00%
  if (i % LANES < LANES / 4) { // 100.00%
    values[i] += 1; // 0.00%
  } // 0.00%
  values[i] += 2; // 100.00%
} // 100.00%

__global__ void every_second_wave(int *values) { // 100.00%
  const int i = place(); // 100.00%
  if (i / LANES % 2 == 0) { // 100.00%
    values[i] += 1; // 100.00%
  } else { // 100.00%
    values[i] += 2; // 100.00%
  } // 100.00%
} // 100.00%

// All lanes of even waves, and one lane of odd ones.
__global__ void some_of_both(int *values) { // 100.00%
  const int i = place(); // 100.00%
  if (i / LANES % 2 == 0 || i % LANES == 0) { // 100.00%
    values[i] += 1; // 98.46%
  } // 98.46%
} // 100.00%

__global__ void the_other_lanes(int *values) { // 100.00%
  const int i = place(); // 100.00%
  if (i % 2 == 0) { // 100.00%
    values[i] += 1; // 0.00%
    return; // 0.00%
  } // 0.00%
  values[i] += 2; // not known
} // not known

// The bound cuts no wave.
__global__ void bounded(int *values, int bound) { // 100.00%
  const int i = place(); // 100.00%
  if (i >= bound) { // 100.00%
    return; // 100.00%
  } // 100.00%
  values[i] += 1; // 100.00%
} // 100.00%

// Each lane takes two turns, and one lane of each wave takes two more.
__global__ void turns(int *values) { // 100.00%
  const int i = place(); // 100.00%
  const int turns = i % LANES == 0 ? 4 : 2; // 100.00%
#pragma unroll 1
  for (int turn = 0; turn < turns; turn++) { // 98.97%
    values[i] += turn; // 98.46%
  } // 98.46%
  values[i] += 1; // 100.00%
} // 100.00%

__global__ void never(int *values) {
  values[0] = 1;
}

int main() {
  int *values = nullptr;
  if (hipMalloc(&values, GROUPS * GROUP * sizeof *values) != hipSuccess) return 1;
  if (hipMemset(values, 0, GROUPS * GROUP * sizeof *values) != hipSuccess) return 1;
  a_quarter_of_the_lanes<<<GROUPS, GROUP>>>(values);
  every_second_wave<<<GROUPS, GROUP>>>(values);
  some_of_both<<<GROUPS, GROUP>>>(values);
  the_other_lanes<<<GROUPS, GROUP>>>(values);
  bounded<<<GROUPS, GROUP>>>(values, 5 * LANES);
  turns<<<GROUPS, GROUP>>>(values);
  return hipDeviceSynchronize() == hipSuccess ? 0 : 2;
}
