// The functions of the CUDA driver that programs of a pack call, opened when the program runs: no toolkit is needed to
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
using Library = struct LibraryOfDriver *;
using Link = struct LinkOfDriver *;

// CUfunction_attribute and CUdevice_attribute.
constexpr int NUM_REGS = 4;
constexpr int MULTIPROCESSOR_COUNT = 16;
constexpr int REGISTERS_PER_MULTIPROCESSOR = 82;
// CUjitInputType.
constexpr int LINK_CUBIN = 0;

struct Driver {
  int (*cuInit)(unsigned);
  int (*cuDriverGetVersion)(int *);
  int (*cuDeviceGetCount)(int *);
  int (*cuDeviceGet)(int *, int);
  int (*cuDeviceGetName)(char *, int, int);
  int (*cuDeviceGetAttribute)(int *, int, int);
  int (*cuDevicePrimaryCtxRetain)(Context *, int);
  int (*cuCtxCreate)(Context *, unsigned, int);
  int (*cuCtxDestroy)(Context);
  int (*cuCtxSetCurrent)(Context);
  int (*cuCtxSynchronize)();
  int (*cuGetErrorName)(int, const char **);
  int (*cuModuleLoadData)(Module *, const void *);
  int (*cuModuleLoad)(Module *, const char *);
  int (*cuModuleUnload)(Module);
  int (*cuLibraryLoadData)(Library *, const void *, void *, void *, unsigned, void *, void *, unsigned);
  int (*cuLibraryUnload)(Library);
  int (*cuLibraryGetKernel)(Function *, Library, const char *);
  int (*cuLinkCreate)(unsigned, void *, void *, Link *);
  int (*cuLinkAddData)(Link, int, void *, std::size_t, const char *, unsigned, void *, void *);
  int (*cuLinkComplete)(Link, void **, std::size_t *);
  int (*cuLinkDestroy)(Link);
  int (*cuModuleGetFunction)(Function *, Module, const char *);
  int (*cuModuleGetGlobal)(Address *, std::size_t *, Module, const char *);
  int (*cuMemAlloc)(Address *, std::size_t);
  int (*cuMemFree)(Address);
  int (*cuMemcpyHtoD)(Address, const void *, std::size_t);
  int (*cuMemcpyDtoH)(void *, Address, std::size_t);
  int (*cuMemcpyDtoHAsync)(void *, Address, std::size_t, Stream);
  int (*cuMemHostAlloc)(void **, std::size_t, unsigned);
  int (*cuStreamSynchronize)(Stream);
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
