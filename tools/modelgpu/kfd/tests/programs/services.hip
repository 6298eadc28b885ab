// Services of the runtime around kernels: managed and pageable memory, memory of another process,
// scratch, dynamic LDS, streams that wait for each other, clocks, waits of the host, barriers of a whole grid.
#include <hip/hip_runtime.h>
#if HIP_VERSION_MAJOR >= 6
#include <hip/hip_cooperative_groups.h>
#endif

#include <cstring>
#include <ctime>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void twice_plus_one(int *to, const int *from, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = 2 * from[i] + 1;
}

static void launch(int *to, const int *from, int count, hipStream_t stream = nullptr) {
  twice_plus_one<<<dim3((count + 63) / 64), dim3(64), 0, stream>>>(to, from, count);
  CHECK_HIP(hipGetLastError());
}

static int attribute(hipDeviceAttribute_t attribute) {
  int value = -1;
  CHECK_HIP(hipDeviceGetAttribute(&value, attribute, 0));
  return value;
}

static void managed() {
  CHECK(attribute(hipDeviceAttributeManagedMemory) == 1);
  CHECK(attribute(hipDeviceAttributeConcurrentManagedAccess) == 1);
  CHECK(attribute(hipDeviceAttributePageableMemoryAccess) == 0);
  const int count = 5000;
  int *values;
  CHECK_HIP(hipMallocManaged(&values, count * sizeof(int)));
  for (int i = 0; i < count; i++) values[i] = i;
  CHECK_HIP(hipMemAdvise(values, count * sizeof(int), hipMemAdviseSetPreferredLocation, 0));
  CHECK_HIP(hipMemPrefetchAsync(values, count * sizeof(int), 0, nullptr));
  launch(values, values, count);
  CHECK_HIP(hipMemPrefetchAsync(values, count * sizeof(int), hipCpuDeviceId, nullptr));
  CHECK_HIP(hipDeviceSynchronize());
  int wrong = 0;
  for (int i = 0; i < count; i++) wrong += values[i] != 2 * i + 1;
  CHECK(wrong == 0);
  int location = -1;
  CHECK_HIP(hipMemRangeGetAttribute(&location, sizeof location, hipMemRangeAttributePreferredLocation,
                                    values, count * sizeof(int)));
  CHECK(location == 0);
  CHECK_HIP(hipMemRangeGetAttribute(&location, sizeof location,
                                    hipMemRangeAttributeLastPrefetchLocation, values,
                                    count * sizeof(int)));
  CHECK(location == hipCpuDeviceId);
  CHECK_HIP(hipFree(values));
}

// With HSA_XNACK=1 kernels reach the program's own memory.
// Memory that the driver has no advice for, and memory that the program does not have.
static void refused() {
  int *device, data;
  CHECK_HIP(hipMalloc(&device, 4096));
  CHECK(hipMemAdvise(device, 4096, hipMemAdviseSetReadMostly, 0) == hipErrorInvalidValue);
  CHECK(hipMemRangeGetAttribute(&data, sizeof data, hipMemRangeAttributeReadMostly, device, 4096) ==
        hipErrorInvalidValue);
  CHECK_HIP(hipFree(device));
  int *host;
  CHECK_HIP(hipHostMalloc((void **)&host, 4096, 0));
  CHECK(hipMemRangeGetAttribute(&data, sizeof data, hipMemRangeAttributeReadMostly, host, 4096) ==
        hipErrorInvalidValue);
  CHECK_HIP(hipHostFree(host));
  std::vector<char> own(4096);
  CHECK(hipHostRegister(own.data(), size_t{1} << 40, 0) != hipSuccess);
}

static void pageable() {
  CHECK(attribute(hipDeviceAttributePageableMemoryAccess) == 1);
  std::vector<int> from(3000), to(3000);
  int local[3] = {1, 2, 3};
  for (int i = 0; i < 3000; i++) from[i] = i;
  launch(to.data(), from.data(), 3000);
  launch(local, local, 3);
  CHECK_HIP(hipDeviceSynchronize());
  int wrong = 0;
  for (int i = 0; i < 3000; i++) wrong += to[i] != 2 * i + 1;
  CHECK(wrong == 0);
  CHECK(local[0] == 3 && local[1] == 5 && local[2] == 7);
}

// A child process changes memory of its parent.
static void shared() {
  int to_child[2], to_parent[2], values[64];
  CHECK(pipe(to_child) == 0 && pipe(to_parent) == 0);
  pid_t child = fork();
  close(to_child[child == 0]);
  close(to_parent[child != 0]);
  hipIpcMemHandle_t handle;
  if (child == 0) {
    if (read(to_child[0], &handle, sizeof handle) != sizeof handle) _exit(2);
    int *memory;
    CHECK_HIP(hipIpcOpenMemHandle((void **)&memory, handle, hipIpcMemLazyEnablePeerAccess));
    if (failures == 0) launch(memory, memory, 64);
    CHECK_HIP(hipDeviceSynchronize());
    CHECK_HIP(hipIpcCloseMemHandle(memory));
    std::fflush(stdout);
    _exit(failures ? 1 : 0);
  }
  int *memory;
  for (int i = 0; i < 64; i++) values[i] = i;
  CHECK_HIP(hipMalloc(&memory, sizeof values));
  CHECK_HIP(hipMemcpy(memory, values, sizeof values, hipMemcpyHostToDevice));
  CHECK_HIP(hipIpcGetMemHandle(&handle, memory));
  if (failures == 0) CHECK(write(to_child[1], &handle, sizeof handle) == sizeof handle);
  close(to_child[1]);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  CHECK_HIP(hipMemcpy(values, memory, sizeof values, hipMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < 64; i++) wrong += values[i] != 2 * i + 1;
  CHECK(wrong == 0);
}

__device__ void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

extern __shared__ int dynamic[];

__global__ void reverse(int *values, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) dynamic[i] = values[i];
  barrier();
  for (int i = threadIdx.x; i < count; i += blockDim.x) values[i] = dynamic[count - 1 - i];
}

// 100 000 bytes of scratch for each work-item.
__global__ void scatter(int *results, int step) {
  volatile int cells[25000];
  for (int i = 0; i < 25000; i += 500) cells[i * step % 25000] = i + threadIdx.x;
  results[threadIdx.x] = cells[24000 * step % 25000];
}

__device__ __attribute__((noinline)) int sum_to(int n, volatile int *one) {
  volatile int frame[16];
  frame[n & 15] = n;
  if (n == 0) return *one;
  int below = sum_to(n - 1, one);
  return below + frame[n & 15];
}

// The compiler does not know the depth of the calls.
__global__ void recurse(int *results, int depth) {
  volatile int one = 1;
  results[threadIdx.x] = sum_to(depth, &one);
}

static void local() {
  const int count = 16384;
  std::vector<int> values(count);
  for (int i = 0; i < count; i++) values[i] = i;
  int *device;
  CHECK_HIP(hipMalloc(&device, count * sizeof(int)));
  CHECK_HIP(hipMemcpy(device, values.data(), count * sizeof(int), hipMemcpyHostToDevice));
  reverse<<<1, 256, count * sizeof(int)>>>(device, count);
  CHECK_HIP(hipMemcpy(values.data(), device, count * sizeof(int), hipMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < count; i++) wrong += values[i] != count - 1 - i;
  CHECK(wrong == 0);
  scatter<<<1, 64>>>(device, 3);
  CHECK_HIP(hipMemcpy(values.data(), device, 64 * sizeof(int), hipMemcpyDeviceToHost));
  wrong = 0;
  for (int i = 0; i < 64; i++) wrong += values[i] != 24000 + i;
  CHECK(wrong == 0);
  recurse<<<1, 64>>>(device, 60);
  CHECK_HIP(hipMemcpy(values.data(), device, 64 * sizeof(int), hipMemcpyDeviceToHost));
  wrong = 0;
  for (int i = 0; i < 64; i++) wrong += values[i] != 60 * 61 / 2 + 1;
  CHECK(wrong == 0);
}

__global__ void await(int *flag, int *seen) {
  while (__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM) == 0)
    __builtin_amdgcn_s_sleep(1);
  *seen = 42;
}

__global__ void raise(int *flag) {
  __hip_atomic_store(flag, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}

// Waits for this number of ticks of the GPU's clock, and notes when it began and ended.
__global__ void take_time(unsigned long long ticks, unsigned long long *times) {
  times[0] = __builtin_amdgcn_s_memrealtime();
  while (__builtin_amdgcn_s_memrealtime() - times[0] < ticks) __builtin_amdgcn_s_sleep(10);
  times[1] = __builtin_amdgcn_s_memrealtime();
}

// A kernel of the lower stream starts when the one of the higher stream has ended. It waits 100 ms at most, in which a
// busy machine may not have run the other. So it has some attempts.
static void take_turns(hipStream_t low, hipStream_t high) {
  unsigned long long *times;
  CHECK_HIP(hipHostMalloc((void **)&times, 64, hipHostMallocCoherent));
  take_time<<<1, 1, 0, low>>>(0, times);
  take_time<<<1, 1, 0, high>>>(0, times);
  CHECK_HIP(hipDeviceSynchronize());
  bool has_waited = false;
  for (int attempts = 0; attempts < 5 && !has_waited; attempts++) {
    // 10 ms at 100 MHz.
    take_time<<<1, 1, 0, high>>>(1000000, times);
    take_time<<<1, 1, 0, low>>>(0, times + 2);
    CHECK_HIP(hipDeviceSynchronize());
    has_waited = times[2] >= times[1];
  }
  CHECK(has_waited);
}

// A kernel of one stream waits for a kernel of another.
static void streams() {
  int least, greatest;
  CHECK_HIP(hipDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(greatest < least);
  hipStream_t low, high;
  CHECK_HIP(hipStreamCreateWithPriority(&low, hipStreamNonBlocking, least));
  CHECK_HIP(hipStreamCreateWithPriority(&high, hipStreamNonBlocking, greatest));
  int *flags;
  CHECK_HIP(hipHostMalloc((void **)&flags, 64, hipHostMallocCoherent));
  std::memset(flags, 0, 64);
  await<<<1, 64, 0, low>>>(flags, flags + 1);
  raise<<<1, 1, 0, high>>>(flags);
  CHECK_HIP(hipStreamSynchronize(low));
  CHECK(flags[1] == 42);
  flags[0] = 0;
  CHECK_HIP(hipStreamWaitValue32(low, flags, 5, hipStreamWaitValueEq, 0xffffffff));
  CHECK_HIP(hipStreamWriteValue32(low, flags + 2, 77, 0));
  CHECK_HIP(hipStreamWriteValue32(high, flags, 5, 0));
  CHECK_HIP(hipStreamSynchronize(low));
  CHECK(flags[2] == 77);
  take_turns(low, high);
}

// Waits for this number of ticks of the GPU's clock.
__global__ void wait(unsigned long long ticks, unsigned long long *cycles) {
  unsigned long long first = __builtin_amdgcn_s_memtime(), start = __builtin_amdgcn_s_memrealtime();
  while (__builtin_amdgcn_s_memrealtime() - start < ticks) __builtin_amdgcn_s_sleep(10);
  *cycles = __builtin_amdgcn_s_memtime() - first;
}

static double milliseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static void clocks() {
  unsigned long long *cycles;
  CHECK_HIP(hipHostMalloc((void **)&cycles, 64, 0));
  double before = milliseconds();
  // 20 ms at 100 MHz.
  wait<<<1, 1>>>(2000000, cycles);
  CHECK_HIP(hipDeviceSynchronize());
  double elapsed = milliseconds() - before;
  CHECK(elapsed >= 20);
  double kilohertz = attribute(hipDeviceAttributeClockRate);
  CHECK(*cycles / kilohertz >= 20 && *cycles / kilohertz <= elapsed);
}

static double milliseconds_of_thread() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

// A thread that waits for a long kernel leaves its processor to it.
static void sleeps() {
  unsigned long long *cycles;
  CHECK_HIP(hipHostMalloc((void **)&cycles, 64, 0));
  // The first launch loads the code.
  wait<<<1, 1>>>(0, cycles);
  CHECK_HIP(hipDeviceSynchronize());
  double before = milliseconds(), used = milliseconds_of_thread();
  // 500 ms at 100 MHz.
  wait<<<1, 1>>>(50000000, cycles);
  CHECK_HIP(hipDeviceSynchronize());
  CHECK(milliseconds() - before >= 500);
  CHECK(milliseconds_of_thread() - used < 100);
}

#if HIP_VERSION_MAJOR >= 6
// Each turn, each work-item reads what other workgroups wrote in this turn.
__global__ void exchange(int *cells, int *sums, int count) {
  auto grid = cooperative_groups::this_grid();
  int i = grid.thread_rank();
  for (int turn = 0; turn < 3; turn++) {
    cells[i] = i + turn;
    grid.sync();
    int sum = 0;
    for (int k = 0; k < count; k += 64) sum += cells[(i + k) % count];
    grid.sync();
    sums[i] = sum;
  }
}

static void grid() {
  CHECK(attribute(hipDeviceAttributeCooperativeLaunch) == 1);
  int count = 8 * 128;
  int *cells, *sums;
  CHECK_HIP(hipMalloc(&cells, count * sizeof(int)));
  CHECK_HIP(hipMalloc(&sums, count * sizeof(int)));
  void *arguments[] = {&cells, &sums, &count};
  auto kernel = reinterpret_cast<void *>(exchange);
  CHECK_HIP(hipLaunchCooperativeKernel(kernel, dim3(8), dim3(128), arguments, 0, nullptr));
  std::vector<int> values(count);
  CHECK_HIP(hipMemcpy(values.data(), sums, count * sizeof(int), hipMemcpyDeviceToHost));
  int wrong = 0;
  for (int i = 0; i < count; i++) {
    int sum = 0;
    for (int k = 0; k < count; k += 64) sum += (i + k) % count + 2;
    wrong += values[i] != sum;
  }
  CHECK(wrong == 0);
}
#endif

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  if (!std::strcmp(what, "managed")) managed();
  if (!std::strcmp(what, "refused")) refused();
  if (!std::strcmp(what, "pageable")) pageable();
  if (!std::strcmp(what, "shared")) shared();
  if (!std::strcmp(what, "local")) local();
  if (!std::strcmp(what, "streams")) streams();
  if (!std::strcmp(what, "clocks")) clocks();
  if (!std::strcmp(what, "sleeps")) sleeps();
#if HIP_VERSION_MAJOR >= 6
  if (!std::strcmp(what, "grid")) grid();
#endif
  return finish();
}
