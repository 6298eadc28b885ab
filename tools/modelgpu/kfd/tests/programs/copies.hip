// All of HIP's copies and fills of memory, with sizes at and off the alignments that HIP treats
// differently.
#include <hip/hip_runtime.h>

#include <cstdlib>
#include <cstring>
#include <vector>

#include "check.h"

// Memory on pages of its own, which is not used again. HIP pins host memory for copies. ROCr 7.2 finds
// pinned memory by its first page, and ends the program if it finds two of different sizes ("Failed to
// deregister host pointer"): of two vectors that start on one page, or at the address of one before.
template <class T> struct OwnPages {
  using value_type = T;
  static constexpr size_t page = 4096;
  T *allocate(size_t count) {
    const size_t pages = (count * sizeof(T) + page - 1) / page;
    return static_cast<T *>(std::aligned_alloc(page, pages * page));
  }
  void deallocate(T *, size_t) {}
  bool operator==(const OwnPages &) const { return true; }
  bool operator!=(const OwnPages &) const { return false; }
};

using Bytes = std::vector<unsigned char, OwnPages<unsigned char>>;

static Bytes pattern(size_t size, unsigned seed) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; i++) bytes[i] = static_cast<unsigned char>(i * 13 + (i >> 8) + seed);
  return bytes;
}

static void linear(size_t size, size_t offset) {
  Bytes source = pattern(size + offset, static_cast<unsigned>(size)), back(size + offset, 0xee);
  unsigned char *one, *two;
  CHECK_HIP(hipMalloc(&one, size + offset));
  CHECK_HIP(hipMalloc(&two, size + offset));
  CHECK_HIP(hipMemcpy(one + offset, &source[offset], size, hipMemcpyHostToDevice));
  CHECK_HIP(hipMemcpy(two + offset, one + offset, size, hipMemcpyDeviceToDevice));
  CHECK_HIP(hipMemcpy(&back[offset], two + offset, size, hipMemcpyDeviceToHost));
  CHECK(!std::memcmp(&back[offset], &source[offset], size));
  CHECK(offset == 0 || back[offset - 1] == 0xee);
  CHECK_HIP(hipFree(one));
  CHECK_HIP(hipFree(two));
}

static void async_pinned(size_t size) {
  Bytes source = pattern(size, 5);
  unsigned char *host, *device;
  CHECK_HIP(hipHostMalloc(reinterpret_cast<void **>(&host), size, hipHostMallocDefault));
  CHECK_HIP(hipMalloc(&device, size));
  std::memcpy(host, source.data(), size);
  hipStream_t stream;
  CHECK_HIP(hipStreamCreate(&stream));
  CHECK_HIP(hipMemcpyAsync(device, host, size, hipMemcpyHostToDevice, stream));
  CHECK_HIP(hipMemsetAsync(host, 0, 0, stream));
  CHECK_HIP(hipMemcpyAsync(host, device, size, hipMemcpyDeviceToHost, stream));
  CHECK_HIP(hipStreamSynchronize(stream));
  CHECK(!std::memcmp(host, source.data(), size));
  CHECK_HIP(hipStreamDestroy(stream));
  CHECK_HIP(hipHostFree(host));
  CHECK_HIP(hipFree(device));
}

static void registered(size_t size) {
  Bytes memory = pattern(size, 9), back(size);
  unsigned char *device;
  CHECK_HIP(hipMalloc(&device, size));
  CHECK_HIP(hipHostRegister(memory.data(), size, hipHostRegisterDefault));
  CHECK_HIP(hipMemcpy(device, memory.data(), size, hipMemcpyHostToDevice));
  CHECK_HIP(hipHostUnregister(memory.data()));
  CHECK_HIP(hipMemcpy(back.data(), device, size, hipMemcpyDeviceToHost));
  CHECK(back == memory);
  CHECK_HIP(hipFree(device));
}

static void fills() {
  const size_t size = 5000;
  Bytes back(size);
  unsigned char *device;
  CHECK_HIP(hipMalloc(&device, size));
  CHECK_HIP(hipMemset(device, 0x11, size));
  CHECK_HIP(hipMemset(device + 3, 0x22, 1001));
  CHECK_HIP(hipMemsetD16(reinterpret_cast<hipDeviceptr_t>(device + 2000), 0x3344, 11));
  CHECK_HIP(hipMemsetD32(reinterpret_cast<hipDeviceptr_t>(device + 3000), 0x55667788, 7));
  CHECK_HIP(hipMemcpy(back.data(), device, size, hipMemcpyDeviceToHost));
  Bytes expected(size, 0x11);
  std::memset(&expected[3], 0x22, 1001);
  for (int i = 0; i < 11; i++) std::memcpy(&expected[2000 + 2 * i], "\x44\x33", 2);
  for (int i = 0; i < 7; i++) std::memcpy(&expected[3000 + 4 * i], "\x88\x77\x66\x55", 4);
  CHECK(back == expected);
  CHECK_HIP(hipFree(device));
}

static void rectangles(size_t width) {
  const size_t height = 9, host_pitch = width + 5, pitch = (width + 255) / 256 * 256;
  Bytes source = pattern(host_pitch * height, 3), back(host_pitch * height, 0xaa);
  unsigned char *one, *two;
  CHECK_HIP(hipMalloc(&one, pitch * height));
  CHECK_HIP(hipMalloc(&two, pitch * height));
  CHECK_HIP(hipMemcpy2D(one, pitch, source.data(), host_pitch, width, height, hipMemcpyHostToDevice));
  CHECK_HIP(hipMemcpy2D(two, pitch, one, pitch, width, height, hipMemcpyDeviceToDevice));
  CHECK_HIP(hipMemset2D(one, pitch, 0x77, width, height));
  CHECK_HIP(hipMemcpy2D(back.data(), host_pitch, two, pitch, width, height, hipMemcpyDeviceToHost));
  Bytes filled(host_pitch * height, 0xaa);
  CHECK_HIP(hipMemcpy2D(filled.data(), host_pitch, one, pitch, width, height, hipMemcpyDeviceToHost));
  for (size_t y = 0; y < height; y++) {
    CHECK(!std::memcmp(&back[y * host_pitch], &source[y * host_pitch], width));
    CHECK(back[y * host_pitch + width] == 0xaa);
    for (size_t x = 0; x < width; x++) CHECK(filled[y * host_pitch + x] == 0x77);
  }
  CHECK_HIP(hipFree(one));
  CHECK_HIP(hipFree(two));
}

static void managed() {
  int *value;
  CHECK_HIP(hipMallocManaged(reinterpret_cast<void **>(&value), 4096, hipMemAttachGlobal));
  *value = 42;
  CHECK_HIP(hipMemset(value + 1, 0, 4));
  CHECK_HIP(hipDeviceSynchronize());
  CHECK(value[0] == 42 && value[1] == 0);
  CHECK_HIP(hipFree(value));
}

int main() {
  for (size_t size : {1, 2, 4, 63, 64, 4096, 16385, 65536, 1 << 20, (4 << 20) + 4})
    for (size_t offset : {0, 1, 4, 64}) linear(size, offset);
  for (size_t size : {64, 4097, 3 << 20}) async_pinned(size);
  for (size_t size : {4096, 100000}) registered(size);
  fills();
  for (size_t width : {1, 4, 64, 100, 1024}) rectangles(width);
  managed();
  return finish();
}
