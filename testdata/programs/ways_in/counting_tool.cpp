// A tool of ROCr like other tools: hooks the table, passes calls on, counts them, and prints the
// counts at the end.
#include "rocr_table.h"

#include <cstdint>
#include <cstdio>

// ROCr from 5.3 on loads tools in the order of these numbers; librocov has 100.
extern "C" __attribute__((visibility("default"))) const uint32_t HSA_AMD_TOOL_PRIORITY = TOOL_PRIORITY;

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
