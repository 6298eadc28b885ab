// A substitute for rocprofiler-sdk, as a tool of ROCr: makes the libraries of ROCP_TOOL_LIBRARIES
// configure themselves, and calls them back for each load and unload of a code object. The
// structures are those of the public headers, in the later layout if ANCESTOR is defined.
#include "rocr_table.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <string>

struct ClientId {
  const char *name;
  const uint32_t handle;
};

struct ConfigureResult {
  size_t size;
  int (*initialize)(void (*)(ClientId), void *);
  void (*finalize)(void *);
  void *tool_data;
};

struct ContextId {
  uint64_t handle;
};

struct CorrelationId {
  uint64_t internal;
  union {
    uint64_t value;
    void *ptr;
  } external;
#ifdef ANCESTOR
  uint64_t ancestor;
#endif
};

struct Record {
  ContextId context_id;
  uint64_t thread_id;
  CorrelationId correlation_id;
  enum Kind : unsigned { CODE_OBJECT = 10 } kind;
  int32_t operation;
  enum Phase : unsigned { LOAD = 1, UNLOAD = 2 } phase;
  void *payload;
};

using Callback = void(Record, void *, void *);
using Configure = ConfigureResult *(uint32_t, const char *, uint32_t, ClientId *);

static Callback *callback;
static void *callback_data;
static bool started;

extern "C" {
int rocprofiler_create_context(ContextId *context) {
  context->handle = 7;
  return 0;
}

int rocprofiler_configure_callback_tracing_service(ContextId context, int kind, const int32_t *operations,
                                                   size_t count, Callback *function, void *data) {
  if (context.handle != 7 || kind != Record::CODE_OBJECT || count != 1 || operations[0] != 1) {
    return 1;
  }
  callback = function;
  callback_data = data;
  return 0;
}

int rocprofiler_start_context(ContextId context) {
  started = context.handle == 7;
  return !started;
}
}

static void tell(Record::Phase phase) {
  if (started) {
    uint64_t user_data = 0, payload[16] = {};
    std::printf("sdk: %s\n", phase == Record::LOAD ? "load" : "unload");
    callback({{7}, 1, {}, Record::CODE_OBJECT, 1, phase, payload}, &user_data, callback_data);
  }
}

static void configure(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  auto *function = reinterpret_cast<Configure *>(library ? dlsym(library, "rocprofiler_configure") : nullptr);
  if (!function) {
    std::printf("sdk: %s\n", dlerror());
    return;
  }
  ClientId client = {nullptr, 1};
  ConfigureResult *result = function(600, "0.6.0 (stand-in)", 0, &client);
  int status = result ? result->initialize([](ClientId) {}, result->tool_data) : -1;
  std::printf("sdk: %s: %zu %d\n", client.name, result ? result->size : 0, status);
}

static uint32_t (*next_freeze)(uint64_t, const char *);
static uint32_t (*next_destroy)(uint64_t);

static uint32_t freeze(uint64_t executable, const char *options) {
  uint32_t status = next_freeze(executable, options);
  tell(Record::LOAD);
  return status;
}

static uint32_t destroy(uint64_t executable) {
  tell(Record::UNLOAD);
  return next_destroy(executable);
}

extern "C" bool OnLoad(void *table, uint64_t, uint64_t, const char *const *) {
  // Tools find the SDK's functions in whatever scope this library is.
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(&tell), &info)) {
    dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL);
  }
  auto &functions = static_cast<RootTable *>(table)->core->functions;
  take(functions[FREEZE], next_freeze, freeze);
  take(functions[DESTROY], next_destroy, destroy);
  if (const char *tool = std::getenv("ROCP_TOOL_LIBRARIES")) {
    configure(tool);
  }
  return true;
}

extern "C" void OnUnload() {}
