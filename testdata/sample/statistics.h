// Statistics of measurements, computed on the GPU.
#pragma once

#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define HIP_CHECK(call)                                                                            \
  do {                                                                                             \
    hipError_t status_ = (call);                                                                   \
    if (status_ != hipSuccess) {                                                                   \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                           \
                   hipGetErrorString(status_));                                                    \
      std::exit(EXIT_FAILURE);                                                                     \
    }                                                                                              \
  } while (0)

template <typename T> __device__ T clamp_to(T value, T low, T high) {
  if (value < low) {
    return low; // never: no measurement is that small
  } // never
  if (value > high) {
    return high;
  }
  return value;
}

// A copy of host values on the device.
template <typename T> class DeviceArray {
public:
  explicit DeviceArray(const std::vector<T> &values) : size_(values.size()) {
    HIP_CHECK(hipMalloc(reinterpret_cast<void **>(&data_), bytes()));
    HIP_CHECK(hipMemcpy(data_, values.data(), bytes(), hipMemcpyHostToDevice));
  }
  ~DeviceArray() { (void)hipFree(data_); }
  DeviceArray(const DeviceArray &) = delete;
  DeviceArray &operator=(const DeviceArray &) = delete;

  T *get() const { return data_; }
  std::vector<T> to_host() const {
    std::vector<T> values(size_);
    HIP_CHECK(hipMemcpy(values.data(), data_, bytes(), hipMemcpyDeviceToHost));
    return values;
  }

private:
  std::size_t bytes() const { return size_ * sizeof(T); }
  T *data_ = nullptr;
  std::size_t size_;
};

constexpr int BINS = 16;
constexpr int BLOCK = 256;

inline int blocks_for(int count) { return (count + BLOCK - 1) / BLOCK; }

// Both launch a kernel on device pointers and wait for it.
void histogram(const float *values, int count, float low, float width, unsigned *bins);
void block_sums(const float *values, int count, float *sums);
