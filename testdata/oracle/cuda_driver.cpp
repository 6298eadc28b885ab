#include "cuda_driver.h"

#include <dlfcn.h>
#include <stdexcept>

namespace cuda {
namespace {

Driver found;

template <typename Call> void find(void *library, const char *name, Call *&call) {
  call = reinterpret_cast<Call *>(dlsym(library, name));
  if (call == nullptr)
    throw std::runtime_error(std::string("the CUDA driver has no ") + name);
}

} // namespace

const Driver &driver() { return found; }

void check(int status, const char *call) {
  if (status == 0)
    return;
  const char *name = nullptr;
  found.cuGetErrorName(status, &name);
  throw std::runtime_error(std::string(call) + ": " + (name != nullptr ? name : std::to_string(status)));
}

void start() {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr)
    throw std::runtime_error(dlerror());
#define FIND(name) find(library, #name, found.name)
#define FIND_V2(name) find(library, #name "_v2", found.name)
  FIND(cuInit);
  FIND(cuDriverGetVersion);
  FIND(cuDeviceGetCount);
  FIND(cuDeviceGet);
  FIND(cuDeviceGetName);
  FIND(cuDeviceGetAttribute);
  FIND(cuDevicePrimaryCtxRetain);
  FIND_V2(cuCtxCreate);
  FIND_V2(cuCtxDestroy);
  FIND(cuCtxSetCurrent);
  FIND(cuCtxSynchronize);
  FIND(cuGetErrorName);
  FIND(cuModuleLoadData);
  FIND(cuModuleLoad);
  FIND(cuModuleUnload);
  FIND(cuLibraryLoadData);
  FIND(cuLibraryUnload);
  FIND(cuLibraryGetKernel);
  FIND_V2(cuLinkCreate);
  FIND_V2(cuLinkAddData);
  FIND(cuLinkComplete);
  FIND(cuLinkDestroy);
  FIND(cuModuleGetFunction);
  FIND_V2(cuModuleGetGlobal);
  FIND_V2(cuMemAlloc);
  FIND_V2(cuMemFree);
  FIND_V2(cuMemcpyHtoD);
  FIND_V2(cuMemcpyDtoH);
  FIND_V2(cuMemcpyDtoHAsync);
  FIND(cuMemHostAlloc);
  FIND(cuStreamSynchronize);
  FIND(cuLaunchKernel);
  FIND(cuEventCreate);
  FIND(cuEventRecord);
  FIND(cuEventSynchronize);
  FIND(cuEventElapsedTime);
  FIND(cuFuncGetAttribute);
  FIND(cuOccupancyMaxActiveBlocksPerMultiprocessor);
#undef FIND
#undef FIND_V2
  CHECK(found.cuInit(0));
  Context context;
  CHECK(found.cuDevicePrimaryCtxRetain(&context, 0));
  CHECK(found.cuCtxSetCurrent(context));
}

} // namespace cuda
