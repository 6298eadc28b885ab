// The program of `rocov selftest`: a kernel whose counts follow from arithmetic.
//
// The kernel runs in 3 launches of 4 blocks of 64 work-items, which are 768 work-items. In each launch, 200 of the 256
// have an item, and 56 return: 600 and 168 in all. Item I takes I % 8 steps, so 8 items take 28 steps, 200 items 700,
// and 3 launches 2100. The test of the loop runs once more for each item: 2700. Every second item is odd.
//
// A line that ends in `//= N` must have the count N.
#ifdef __HIP__
#include <hip/hip_runtime.h>
#define GPU(name) hip##name
#else
#include <cuda_runtime.h>
#define GPU(name) cuda##name
#endif

#include <cstdio>
#include <cstring>

constexpr unsigned Launches = 3, Blocks = 4, Threads = 64, Items = 200;

__device__ unsigned twice(unsigned value) { //= 300
  return 2 * value; //= 300
}

__global__ void steps(unsigned *out, unsigned items) { //= 768
  unsigned item = blockIdx.x * blockDim.x + threadIdx.x; //= 768
  if (item >= items) { //= 768
    return; //= 168
  }
  unsigned sum = 0; //= 600
  unsigned step = 0; //= 600
  while (step < item % 8) { //= 2700
    ++step; //= 2100
    sum += step; //= 2100
  }
  if (item % 2 == 1) { //= 600
    sum = twice(sum); //= 300
  } else {
    sum += 1; //= 300
  }
  if (sum > 100) { //= 600
    sum = 0; //= 0
  }
  out[item] += sum; //= 600
}

// The sum that a launch adds to an item, by another formula.
static unsigned added(unsigned item) {
  unsigned last = item % 8;
  unsigned sum = last * (last + 1) / 2;
  return item % 2 == 1 ? 2 * sum : sum + 1;
}

// Prints whether the loader has put librocov into this process.
static void print_librocov() {
  bool is_loaded = false;
  if (FILE *maps = std::fopen("/proc/self/maps", "r")) {
    char line[4096];
    while (std::fgets(line, sizeof line, maps)) {
      is_loaded = is_loaded || std::strstr(line, "/librocov.so");
    }
    std::fclose(maps);
  }
  std::printf("librocov: %s\n", is_loaded ? "loaded" : "not loaded");
  std::fflush(stdout);
}

// Returns whether the call was successful. Prints it if not.
static bool succeeds(const char *call, GPU(Error_t) error) {
  if (error != GPU(Success)) {
    std::printf("failed: %s: %s\n", call, GPU(GetErrorString)(error));
  }
  return error == GPU(Success);
}

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define SUCCEEDS(name, ...) succeeds(TEXT(GPU(name)), GPU(name)(__VA_ARGS__))

int main() {
  print_librocov();
  static unsigned results[Items];
  void *memory = nullptr;
  if (!SUCCEEDS(Malloc, &memory, sizeof results) ||
      !SUCCEEDS(Memset, memory, 0, sizeof results)) {
    return 1;
  }
  for (unsigned launch = 0; launch < Launches; ++launch) {
    steps<<<Blocks, Threads>>>(static_cast<unsigned *>(memory), Items);
    if (!SUCCEEDS(GetLastError)) {
      return 1;
    }
  }
  if (!SUCCEEDS(DeviceSynchronize) ||
      !SUCCEEDS(Memcpy, results, memory, sizeof results, GPU(MemcpyDeviceToHost)) ||
      !SUCCEEDS(Free, memory)) {
    return 1;
  }
  for (unsigned item = 0; item < Items; ++item) {
    unsigned expected = Launches * added(item);
    if (results[item] != expected) {
      std::printf("wrong: item %u is %u instead of %u\n", item, results[item], expected);
      return 1;
    }
  }
  std::printf("results: all %u are right\n", Items);
  return 0;
}
