// HIP features around kernels: streams, events, symbols, device printf, occupancy, memory info.
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "check.h"

__device__ int scale = 3;
__constant__ int offsets[4] = {1, 10, 100, 1000};

__global__ void multiply(int *values, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] = values[i] * scale + offsets[i & 3];
}

// HIP 5.2's __syncthreads needs a bitcode library that clang 22 no longer links.
__device__ void synchronise() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

__global__ void reverse(int *values) {
  __shared__ int tile[256];
  tile[threadIdx.x] = values[threadIdx.x];
  synchronise();
  values[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

__global__ void count_atomically(unsigned *counter) { atomicAdd(counter, 1u); }

static void kernels() {
  const int count = 1000;
  std::vector<int> values(count), back(count);
  for (int i = 0; i < count; i++) values[i] = i;
  int *device;
  CHECK_HIP(hipMalloc(&device, count * sizeof(int)));
  CHECK_HIP(hipMemcpy(device, values.data(), count * sizeof(int), hipMemcpyHostToDevice));
  multiply<<<dim3(4), dim3(256)>>>(device, count);
  CHECK_HIP(hipGetLastError());
  CHECK_HIP(hipMemcpy(back.data(), device, count * sizeof(int), hipMemcpyDeviceToHost));
  const int added[4] = {1, 10, 100, 1000};
  for (int i = 0; i < count; i++) CHECK(back[i] == i * 3 + added[i & 3]);

  int five = 5, read = 0;
  CHECK_HIP(hipMemcpyToSymbol(HIP_SYMBOL(scale), &five, sizeof five));
  CHECK_HIP(hipMemcpyFromSymbol(&read, HIP_SYMBOL(scale), sizeof read));
  CHECK(read == 5);
  CHECK_HIP(hipMemcpyToSymbol(HIP_SYMBOL(scale), &(five = 3), sizeof five));

  CHECK_HIP(hipMemcpy(device, values.data(), 256 * sizeof(int), hipMemcpyHostToDevice));
  reverse<<<1, 256>>>(device);
  CHECK_HIP(hipMemcpy(back.data(), device, 256 * sizeof(int), hipMemcpyDeviceToHost));
  for (int i = 0; i < 256; i++) CHECK(back[i] == 255 - i);
  CHECK_HIP(hipFree(device));
}

// Angles so large that their quadrant takes hundreds of bits of pi.
__global__ void sines(const double *angles, double *results, int count) {
  int i = threadIdx.x;
  if (i < count) {
    results[2 * i] = sin(angles[i]);
    results[2 * i + 1] = cos(angles[i]);
  }
}

static void large_angles() {
  const int count = 8;
  const double angles[count] = {0.5, -2e5, 1e9, 123456789012.5, -1e22, 1e100, 4.5e250, 1.7e308};
  double *device, results[2 * count];
  CHECK_HIP(hipMalloc(&device, 3 * count * sizeof(double)));
  CHECK_HIP(hipMemcpy(device, angles, sizeof angles, hipMemcpyHostToDevice));
  sines<<<1, 64>>>(device, device + count, count);
  CHECK_HIP(hipMemcpy(results, device + count, sizeof results, hipMemcpyDeviceToHost));
  for (int i = 0; i < count; i++) {
    CHECK(std::fabs(results[2 * i] - std::sin(angles[i])) < 1e-15);
    CHECK(std::fabs(results[2 * i + 1] - std::cos(angles[i])) < 1e-15);
  }
  CHECK_HIP(hipFree(device));
}

static void streams() {
  const int streams = 3, launches = 20;
  unsigned *counters;
  CHECK_HIP(hipMalloc(&counters, streams * sizeof(unsigned)));
  CHECK_HIP(hipMemset(counters, 0, streams * sizeof(unsigned)));
  hipStream_t stream[streams];
  hipEvent_t start, stop;
  CHECK_HIP(hipEventCreate(&start));
  CHECK_HIP(hipEventCreate(&stop));
  for (auto &one : stream) CHECK_HIP(hipStreamCreateWithFlags(&one, hipStreamNonBlocking));
  CHECK_HIP(hipDeviceSynchronize());
  CHECK_HIP(hipEventRecord(start, stream[0]));
  for (int launch = 0; launch < launches; launch++)
    for (int i = 0; i < streams; i++) count_atomically<<<2, 64, 0, stream[i]>>>(counters + i);
  CHECK_HIP(hipEventRecord(stop, stream[0]));
  // The last stream waits for the first one's event before it continues.
  CHECK_HIP(hipStreamWaitEvent(stream[2], stop, 0));
  count_atomically<<<1, 1, 0, stream[2]>>>(counters);
  for (auto &one : stream) CHECK_HIP(hipStreamSynchronize(one));
  float elapsed = -1;
  CHECK_HIP(hipEventElapsedTime(&elapsed, start, stop));
  CHECK(elapsed > 0 && elapsed < 60000);
  unsigned back[streams];
  CHECK_HIP(hipMemcpy(back, counters, sizeof back, hipMemcpyDeviceToHost));
  CHECK(back[0] == launches * 128 + 1 && back[1] == launches * 128 && back[2] == launches * 128);
  for (auto &one : stream) CHECK_HIP(hipStreamDestroy(one));
  CHECK_HIP(hipEventDestroy(start));
  CHECK_HIP(hipEventDestroy(stop));
  CHECK_HIP(hipFree(counters));
}

static void memory_info() {
  size_t before, total, during;
  CHECK_HIP(hipMemGetInfo(&before, &total));
  void *block;
  CHECK_HIP(hipMalloc(&block, 64 << 20));
  CHECK_HIP(hipMemGetInfo(&during, &total));
  CHECK(before - during >= (64u << 20));
  CHECK_HIP(hipFree(block));
  void *too_much;
  CHECK(hipMalloc(&too_much, total + (1 << 20)) == hipErrorOutOfMemory);
  (void)hipGetLastError();
}

int main() {
  int devices;
  CHECK_HIP(hipGetDeviceCount(&devices));
  std::printf("devices: %d\n", devices);
  for (int device = 0; device < devices; device++) {
    CHECK_HIP(hipSetDevice(device));
    hipDeviceProp_t properties;
    CHECK_HIP(hipGetDeviceProperties(&properties, device));
    std::printf("device %d: %s\n", device, properties.gcnArchName);
    kernels();
    large_angles();
    streams();
    memory_info();
  }
  return finish();
}
