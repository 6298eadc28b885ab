// Another tool that uses CUPTI. The driver loads it (CUDA_INJECTION64_PATH), or it is preloaded and subscribes at once
// (TOOL_SUBSCRIBES=PROGRAM). TOOL_CUPTI names CUPTI's library. At exit it prints how many modules it has seen.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace {

int modules = 0, status = -1;

// CUPTI_CB_DOMAIN_RESOURCE and CUPTI_CBID_RESOURCE_MODULE_LOADED.
constexpr int RESOURCE = 3;
constexpr unsigned MODULE_LOADED = 6;

void seen(void *, int domain, unsigned id, const void *) { modules += domain == RESOURCE && id == MODULE_LOADED; }

void at_exit() {
  std::fprintf(stderr, "tool: status %d, %s\n", status, modules > 0 ? "saw modules" : "saw no module");
}

void subscribe() {
  const char *path = std::getenv("TOOL_CUPTI");
  void *const cupti = path != nullptr ? dlopen(path, RTLD_NOW) : nullptr;
  if (cupti == nullptr)
    return;
  std::atexit(at_exit);
  static void *subscriber;
  using Subscribe = int(void **, void (*)(void *, int, unsigned, const void *), void *);
  using Enable = int(unsigned, void *, int, unsigned);
  status = reinterpret_cast<Subscribe *>(dlsym(cupti, "cuptiSubscribe"))(&subscriber, seen, nullptr);
  if (status == 0)
    status = reinterpret_cast<Enable *>(dlsym(cupti, "cuptiEnableCallback"))(1, subscriber, RESOURCE, MODULE_LOADED);
}

__attribute__((constructor)) void at_load() {
  const char *when = std::getenv("TOOL_SUBSCRIBES");
  // Not in the commands around the program.
  if (when != nullptr && std::strcmp(when, program_invocation_short_name) == 0)
    subscribe();
}

} // namespace

extern "C" int InitializeInjection() {
  subscribe();
  return 1;
}
