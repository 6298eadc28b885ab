// Kernels whose uniformity follows from the source: waves have 64 lanes, and 8 waves run each kernel.
//
// The comment at the end of a line tells how many of its executions have all lanes of the wave active.
// A ? stands for a number that no counter tells.
#include "../hip.h"

constexpr int LANES = 64;
constexpr int GROUP = 2 * LANES;
constexpr int GROUPS = 4;

__device__ int place() { // 4096 of 4096
  return blockIdx.x * blockDim.x + threadIdx.x; // 4096 of 4096
} // 4096 of 4096

__global__ void a_quarter_of_the_lanes(int *values) { // 512 of 512
  const int i = place(); // 512 of 512
  if (i % LANES < LANES / 4) { // 512 of 512
    values[i] += 1; // 0 of 128
  } // 0 of 128
  values[i] += 2; // 512 of 512
} // 512 of 512

__global__ void every_second_wave(int *values) { // 512 of 512
  const int i = place(); // 512 of 512
  if (i / LANES % 2 == 0) { // 512 of 512
    values[i] += 1; // 256 of 256
  } else { // 256 of 256
    values[i] += 2; // 256 of 256
  } // 256 of 256
} // 512 of 512

// All lanes of even waves, and one lane of odd ones.
__global__ void some_of_both(int *values) { // 512 of 512
  const int i = place(); // 512 of 512
  if (i / LANES % 2 == 0 || i % LANES == 0) { // 512 of 512
    values[i] += 1; // 256 of 260
  } // 256 of 260
} // 512 of 512

__global__ void the_other_lanes(int *values) { // 512 of 512
  const int i = place(); // 512 of 512
  if (i % 2 == 0) { // 512 of 512
    values[i] += 1; // 0 of 256
    return; // 0 of 256
  } // 0 of 256
  values[i] += 2; // ? of 256
} // ? of 256

// All lanes of even waves and half of odd ones enter; then half of the lanes of even waves return. Nothing counts
// the lanes that go on: a difference of the uniform counters would be 256, though no wave is complete.
__global__ void fewer_and_fewer(int *values) { // 512 of 512
  const int i = place(); // 512 of 512
  const bool is_even = i / LANES % 2 == 0; // 512 of 512
  if (is_even || i % 2 == 0) { // 512 of 512
    values[i] += 1; // 256 of 384
    if (is_even && i % 2 == 0) { // 256 of 384
      return; // 0 of 128
    } // 0 of 128
    values[i] += 2; // ? of 256
  } // ? of 256
} // 512 of 512

// The lanes of both cases come together.
__global__ void together(int *values) { // 512 of 512
  const int i = place(); // 512 of 512
  switch (i % 2) { // 512 of 512
  case 0: // 0 of 256
    values[i] += 1; // 0 of 256
    [[fallthrough]]; // 0 of 256
  case 1: // ? of 512
    values[i] += 2; // ? of 512
  } // 512 of 512
  values[i] += 4; // 512 of 512
} // 512 of 512

// The bound cuts no wave.
__global__ void bounded(int *values, int bound) { // 512 of 512
  const int i = place(); // 512 of 512
  if (i >= bound) { // 512 of 512
    return; // 192 of 192
  } // 192 of 192
  values[i] += 1; // 320 of 320
} // 320 of 320

// Each lane takes two turns, and one lane of each wave takes two more. The condition comes once more.
__global__ void turns(int *values) { // 512 of 512
  const int i = place(); // 512 of 512
  const int turns = i % LANES == 0 ? 4 : 2; // 512 of 512
#pragma unroll 1 // 512 of 512
  for (int turn = 0; turn < turns; turn++) { // 1536 of 1552
    values[i] += turn; // 1024 of 1040
  } // 1024 of 1040
  values[i] += 1; // 512 of 512
} // 512 of 512

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
  fewer_and_fewer<<<GROUPS, GROUP>>>(values);
  together<<<GROUPS, GROUP>>>(values);
  bounded<<<GROUPS, GROUP>>>(values, 5 * LANES);
  turns<<<GROUPS, GROUP>>>(values);
  return hipDeviceSynchronize() == hipSuccess ? 0 : 2;
}
