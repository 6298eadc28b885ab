"""Kernels of cuda.core, in CUDA C++."""

import ctypes

import numpy
from cuda.core import Device, LaunchConfig, Linker, LinkerOptions, Program, ProgramOptions, launch
from shared import placed, show

SCALED = placed(r"""
extern "C" __global__ void scaled(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    x[i] *= 2;
  if (n > 5000)
    x[0] = 9; // missed
}
""")

SORTED = placed(r"""
extern "C" __global__ void sorted(float *x, int n) {
  for (int round = 0; round < n; ++round) {
    int i = 2 * threadIdx.x + round % 2;
    if (i + 1 < n && x[i] < x[i + 1]) {
      float other = x[i];
      x[i] = x[i + 1];
      x[i + 1] = other;
    }
    if (n == 77)
      atomicAdd(&x[i], 1); // missed
    __syncthreads();
  }
}
""")

LINKED = placed(r"""
extern "C" __device__ float other(float x);
extern "C" __global__ void linked(float *x, int n) {
  int i = threadIdx.x;
  if (i < n)
    x[i] = other(x[i]);
  else
    x[0] = 1; // missed
}
""")

OTHER = placed(r"""
extern "C" __device__ float other(float x) {
  if (x > 100000)
    return sqrtf(x); // missed
  return x + 4;
}
""")

TEMPLATE = placed(r"""
template <int N> __global__ void repeated(float *x, int n) {
  for (int i = 0; i < N; ++i)
    if (threadIdx.x % N == i)
      x[threadIdx.x] += i;
  if (n == 3)
    x[threadIdx.x] = 3; // missed
}
""")


def main():
    device = Device()
    device.set_current()
    stream = device.create_stream()
    options = {"arch": f"sm_{device.arch}"}

    def run(name, kernel):
        buffer = device.memory_resource.allocate(4000, stream=stream)
        values = numpy.arange(1000, dtype=numpy.float32)
        host = values.ctypes.data
        driver = ctypes.CDLL("libcuda.so.1")
        stream.sync()
        driver.cuMemcpyHtoD_v2(ctypes.c_uint64(int(buffer.handle)), ctypes.c_void_p(host), ctypes.c_size_t(4000))
        launch(stream, LaunchConfig(grid=1, block=512), kernel, int(buffer.handle), numpy.int32(900))
        stream.sync()
        driver.cuMemcpyDtoH_v2(ctypes.c_void_p(host), ctypes.c_uint64(int(buffer.handle)), ctypes.c_size_t(4000))
        show(name, values)

    def compiled(text, kind, **more):
        return Program(text, "c++", options=ProgramOptions(**options, **more)).compile(kind)

    run("scaled", compiled(SCALED, "cubin").get_kernel("scaled"))
    run("sorted", compiled(SORTED, "ptx").get_kernel("sorted"))
    parts = [compiled(text, "ltoir", link_time_optimization=True) for text in (LINKED, OTHER)]
    linker = Linker(*parts, options=LinkerOptions(**options, link_time_optimization=True, lineinfo=True))
    run("linked", linker.link("cubin").get_kernel("linked"))
    program = Program(TEMPLATE, "c++", options=ProgramOptions(**options))
    run("repeated", program.compile("cubin", name_expressions=("repeated<3>",)).get_kernel("repeated<3>"))


if __name__ == "__main__":
    main()
