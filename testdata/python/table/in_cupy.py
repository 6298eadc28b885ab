"""Kernels of CuPy, in CUDA C++."""

import cupy
from shared import placed, show

scale = cupy.RawKernel(
    placed(r"""
extern "C" __global__ void scale(float *x, int n, float f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= f;
  else if (i > 5000)
    x[0] = 7; // missed
}
"""),
    "scale",
)

histogram = cupy.RawKernel(
    placed(r"""
extern "C" __global__ void histogram(const int *values, int n, int *bins) {
  __shared__ int own[16];
  if (threadIdx.x < 16)
    own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    int value = values[i];
    if (value < 0)
      atomicAdd(&bins[15], 100); // missed
    else
      atomicAdd(&own[value % 16], 1);
  }
  __syncthreads();
  if (threadIdx.x < 16)
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
"""),
    "histogram",
)

module = cupy.RawModule(
    code=placed(r"""
extern "C" __global__ void launched(double *x, int left) {
  while (left > 3) {
    left -= 2;
    x[threadIdx.x] += 1;
  }
  switch (left + threadIdx.x % 2) {
  case 3:
    atomicAdd(&x[threadIdx.x], 10);
    break;
  case 9:
    atomicAdd(&x[0], -5); // missed
    break; // missed
  default:
    atomicAdd(&x[threadIdx.x], 20);
  }
}
extern "C" __global__ void unlaunched(double *x) { // missed
  x[0] = 1; // missed
} // missed
""")
)

templates = cupy.RawModule(
    code=placed(r"""
template <typename T> __device__ __noinline__ T bounded(T x, T most) {
  if (x > most)
    return most;
  return x;
}
template <typename T> __global__ void bound(T *x, T most) {
  x[threadIdx.x] = bounded(x[threadIdx.x], most);
  if (most < 0)
    atomicAdd(x, most); // missed
}
"""),
    name_expressions=["bound<float>", "bound<int>"],
)

elementwise = cupy.ElementwiseKernel(
    "float32 a",
    "float32 b",
    "b = bumped(a)",
    "bump",
    preamble=placed(r"""
__device__ __noinline__ float bumped(float a) {
  if (a > 100000)
    return sqrtf(a); // missed
  return a * 3 + 1;
}
"""),
)

reduction = cupy.ReductionKernel(
    "float32 x",
    "float32 y",
    "weighted(x)",
    "a + b",
    "y = a",
    "0",
    "weigh",
    preamble=placed(r"""
__device__ __noinline__ float weighted(float x) {
  float w = 0;
  for (int i = 0; i < (int)x % 5; ++i)
    w += x / (i + 1);
  if (w < 0)
    w = expf(w); // missed
  return w;
}
"""),
)


def main():
    x = cupy.arange(1000, dtype=cupy.float32)
    scale((4,), (256,), (x, cupy.int32(1000), cupy.float32(3)))
    show("scale", x.get())
    bins = cupy.zeros(16, cupy.int32)
    histogram((1,), (128,), (cupy.arange(1000, dtype=cupy.int32), cupy.int32(1000), bins))
    show("histogram", bins.get())
    y = cupy.zeros(64)
    module.get_function("launched")((1,), (64,), (y, cupy.int32(9)))
    show("launched", y.get())
    for name, kind in (("bound<float>", cupy.float32), ("bound<int>", cupy.int32)):
        z = cupy.arange(64, dtype=kind)
        templates.get_function(name)((1,), (64,), (z, kind(40)))
        show(name, z.get())
    show("bump", elementwise(x).get())
    show("weigh", reduction(x).get())


if __name__ == "__main__":
    main()
