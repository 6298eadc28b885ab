// The functions of the CUDA driver that cuda_runner calls, opened when the program runs: no toolkit is needed to
// build it. Types and numbers are those of cuda.h, which NVIDIA keeps stable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace cuda {

using Address = std::uint64_t;
using Module = struct ModuleOfDriver *;
using Function = struct FunctionOfDriver *;
using Event = struct EventOfDriver *;
using Context = struct ContextOfDriver *;
using Stream = struct StreamOfDriver *;

// CUfunction_attribute and CUdevice_attribute.
constexpr int NUM_REGS = 4;
constexpr int MULTIPROCESSOR_COUNT = 16;
constexpr int REGISTERS_PER_MULTIPROCESSOR = 82;

struct Driver {
  int (*cuInit)(unsigned);
  int (*cuDriverGetVersion)(int *);
  int (*cuDeviceGetName)(char *, int, int);
  int (*cuDeviceGetAttribute)(int *, int, int);
  int (*cuDevicePrimaryCtxRetain)(Context *, int);
  int (*cuCtxSetCurrent)(Context);
  int (*cuCtxSynchronize)();
  int (*cuGetErrorName)(int, const char **);
  int (*cuModuleLoadData)(Module *, const void *);
  int (*cuModuleUnload)(Module);
  int (*cuModuleGetFunction)(Function *, Module, const char *);
  int (*cuModuleGetGlobal)(Address *, std::size_t *, Module, const char *);
  int (*cuMemAlloc)(Address *, std::size_t);
  int (*cuMemFree)(Address);
  int (*cuMemcpyHtoD)(Address, const void *, std::size_t);
  int (*cuMemcpyDtoH)(void *, Address, std::size_t);
  int (*cuLaunchKernel)(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Stream, void **,
                        void **);
  int (*cuEventCreate)(Event *, unsigned);
  int (*cuEventRecord)(Event, Stream);
  int (*cuEventSynchronize)(Event);
  int (*cuEventElapsedTime)(float *, Event, Event);
  int (*cuFuncGetAttribute)(int *, int, Function);
  int (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int *, Function, int, std::size_t);
};

// The driver, after start().
const Driver &driver();

// Opens the driver and makes device 0 current. Throws std::runtime_error if there is none.
void start();

// Throws std::runtime_error with the name of the error.
void check(int status, const char *call);
#define CHECK(call) cuda::check((call), #call)

} // namespace cuda
