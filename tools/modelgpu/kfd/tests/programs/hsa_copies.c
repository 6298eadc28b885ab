// Copies and fills through HSA: blocking, asynchronous, dependent, between GPUs.
#include "hsa_check.h"

static void fill_pattern(unsigned char *bytes, size_t size, unsigned seed) {
  for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)(i * 7 + (i >> 9) + seed);
}

static void blocking(int gpu) {
  enum { SIZE = 5000 };
  unsigned char source[SIZE], back[SIZE];
  unsigned char *device = allocate_device(gpu, SIZE);
  fill_pattern(source, SIZE, 1);
  // Aligned, then with both ends off any alignment.
  CHECK_HSA(hsa_memory_copy(device, source, SIZE));
  memset(back, 0, SIZE);
  CHECK_HSA(hsa_memory_copy(back, device, SIZE));
  CHECK(!memcmp(back, source, SIZE));
  CHECK_HSA(hsa_memory_copy(device + 1, source + 2, 1003));
  CHECK_HSA(hsa_memory_copy(back + 3, device + 1, 1003));
  CHECK(!memcmp(back + 3, source + 2, 1003));
  CHECK_HSA(hsa_amd_memory_fill(device, 0x01020304, SIZE / 4));
  CHECK_HSA(hsa_memory_copy(back, device, SIZE));
  for (int i = 0; i < SIZE; i += 4) CHECK(!memcmp(back + i, "\4\3\2\1", 4));
  CHECK_HSA(hsa_amd_memory_pool_free(device));
}

static void asynchronous(int gpu) {
  const size_t size = (9 << 20) + 12;  // more than one SDMA packet can hold (4 MiB)
  unsigned char *device = allocate_device(gpu, size);
  unsigned char *source = allocate_host(size), *back = allocate_host(size);
  hsa_signal_t there = new_signal(1), home = new_signal(1);
  fill_pattern(source, size, 2);
  memset(back, 0, size);
  // The copy home is submitted first and depends on the copy there.
  CHECK_HSA(hsa_amd_memory_async_copy(back, cpu, device, gpus[gpu], size, 1, &there, home));
  CHECK(hsa_signal_load_scacquire(home) == 1);
  CHECK_HSA(hsa_amd_memory_async_copy(device, gpus[gpu], source, cpu, size, 0, NULL, there));
  wait_done(home);
  CHECK(hsa_signal_load_scacquire(there) == 0);
  CHECK(!memcmp(source, back, size));
  CHECK_HSA(hsa_signal_destroy(there));
  CHECK_HSA(hsa_signal_destroy(home));
  CHECK_HSA(hsa_amd_memory_pool_free(device));
  CHECK_HSA(hsa_amd_memory_pool_free(source));
  CHECK_HSA(hsa_amd_memory_pool_free(back));
}

// The program's own memory, registered with the GPU.
static void locked(int gpu) {
  unsigned char host[999];
  unsigned char *device = allocate_device(gpu, 1000), *seen = NULL;
  hsa_signal_t done = new_signal(1);
  CHECK_HSA(hsa_amd_memory_fill(device, 0x55555555, 250));
  CHECK_HSA(hsa_amd_memory_lock(host, sizeof host, &gpus[gpu], 1, (void **)&seen));
  CHECK_HSA(hsa_amd_memory_async_copy(seen, cpu, device, gpus[gpu], sizeof host, 0, NULL, done));
  wait_done(done);
  CHECK_HSA(hsa_amd_memory_unlock(host));
  for (size_t i = 0; i < sizeof host; i++) CHECK(host[i] == 0x55);
  CHECK_HSA(hsa_signal_destroy(done));
  CHECK_HSA(hsa_amd_memory_pool_free(device));
}

static void between(int from, int to) {
  unsigned char *source = allocate_device(from, 4096), *target = allocate_device(to, 4096);
  uint32_t last = 0;
  hsa_signal_t done = new_signal(1);
  CHECK_HSA(hsa_amd_memory_fill(source, 0xabcd, 1024));
  CHECK_HSA(hsa_amd_memory_async_copy(target, gpus[to], source, gpus[from], 4096, 0, NULL, done));
  wait_done(done);
  CHECK_HSA(hsa_memory_copy(&last, target + 4092, 4));
  CHECK(last == 0xabcd);
  CHECK_HSA(hsa_signal_destroy(done));
  CHECK_HSA(hsa_amd_memory_pool_free(source));
  CHECK_HSA(hsa_amd_memory_pool_free(target));
}

// Argument: the number of HSA starts.
int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1;
  for (int round = 0; round < rounds; round++) {
    start();
    printf("gpus: %d\n", gpu_count);
    for (int gpu = 0; gpu < gpu_count; gpu++) {
      blocking(gpu);
      asynchronous(gpu);
      locked(gpu);
    }
    for (int gpu = 1; gpu < gpu_count; gpu++) between(0, gpu);
    CHECK_HSA(hsa_shut_down());
  }
  return finish();
}
