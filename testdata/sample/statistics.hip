// The kernels that work on shared memory: a histogram and a tree reduction.
#include "statistics.h"

// The bin of a value; the outermost bins also take the values beyond them.
__device__ __noinline__ int bin_of(float value, float low, float width) {
  int bin = static_cast<int>((value - low) / width);
  if (bin < 0) {
    return 0; // never: low is the smallest measurement
  } // never
  return bin < BINS ? bin : BINS - 1;
}

__global__ void histogram_kernel(const float *values, int count, float low, float width,
                                 unsigned *bins) {
  __shared__ unsigned local[BINS];
  if (threadIdx.x < BINS) {
    local[threadIdx.x] = 0;
  }
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    atomicAdd(&local[bin_of(values[i], low, width)], 1u);
  }
  __syncthreads();
  if (threadIdx.x < BINS && local[threadIdx.x] != 0) {
    atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
  }
}

__global__ void block_sums_kernel(const float *values, int count, float *sums) {
  __shared__ float partial[BLOCK];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  partial[threadIdx.x] = i < count ? values[i] : 0.0f;
  __syncthreads();
  for (unsigned width = blockDim.x / 2; width > 0; width /= 2) {
    if (threadIdx.x < width) {
      partial[threadIdx.x] += partial[threadIdx.x + width];
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    sums[blockIdx.x] = partial[0];
  }
}

// Nobody launches this one.
__global__ void scale_kernel(float *values, int count, float factor) { // never
  int i = blockIdx.x * blockDim.x + threadIdx.x;                       // never
  if (i < count) {                                                     // never
    values[i] *= factor;                                               // never
  } // never
} // never

void histogram(const float *values, int count, float low, float width, unsigned *bins) {
  histogram_kernel<<<blocks_for(count), BLOCK>>>(values, count, low, width, bins);
  HIP_CHECK(hipGetLastError());
  HIP_CHECK(hipDeviceSynchronize());
}

void block_sums(const float *values, int count, float *sums) {
  block_sums_kernel<<<blocks_for(count), BLOCK>>>(values, count, sums);
  HIP_CHECK(hipGetLastError());
  HIP_CHECK(hipDeviceSynchronize());
}
