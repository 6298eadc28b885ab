// A tool of ROCr's as others write them: takes its place in the table, passes calls on, counts them, and
// says at the end what it has seen.
#include <cstdint>
#include <cstdio>

// ROCr from 5.3 on loads tools in the order of these; librocov has 100.
extern "C" __attribute__((visibility("default"))) const uint32_t HSA_AMD_TOOL_PRIORITY = TOOL_PRIORITY;

struct CoreTable {
  uint32_t version[4];
  void *functions[125];
};

struct RootTable {
  uint32_t version[4];
  CoreTable *core;
};

// Their places in the core table of hsa_api_trace.h, from hsa_init on.
constexpr int QUEUE_CREATE = 7;
constexpr int DESTROY = 84;
constexpr int FREEZE = 86;

static int freezes, destroys, queues;
static uint32_t (*next_freeze)(uint64_t, const char *);
static uint32_t (*next_destroy)(uint64_t);
using QueueCreate = uint32_t(uint64_t, uint32_t, uint32_t, void *, void *, uint32_t, uint32_t, void **);
static QueueCreate *next_queue_create;

static uint32_t freeze(uint64_t executable, const char *options) {
  freezes++;
  return next_freeze(executable, options);
}

static uint32_t destroy(uint64_t executable) {
  destroys++;
  return next_destroy(executable);
}

static uint32_t queue_create(uint64_t agent, uint32_t size, uint32_t kind, void *callback, void *data,
                             uint32_t private_size, uint32_t group_size, void **queue) {
  queues++;
  return next_queue_create(agent, size, kind, callback, data, private_size, group_size, queue);
}

template <typename Function> static void take(void *&place, Function *&next, Function *ours) {
  next = reinterpret_cast<Function *>(place);
  place = reinterpret_cast<void *>(ours);
}

extern "C" bool OnLoad(void *table, uint64_t, uint64_t, const char *const *) {
  auto &functions = static_cast<RootTable *>(table)->core->functions;
  take(functions[QUEUE_CREATE], next_queue_create, queue_create);
  take(functions[DESTROY], next_destroy, destroy);
  take(functions[FREEZE], next_freeze, freeze);
  return true;
}

extern "C" void OnUnload() {}

__attribute__((destructor)) static void say() {
  std::printf("tool: %d freezes, %d destroys, %d queues\n", freezes, destroys, queues);
}
