// The table of functions that ROCr hands to its tools (hsa_api_trace.h), as far as stand-ins for such tools
// need it.
#pragma once

#include <cstdint>

struct CoreTable {
  uint32_t version[4];
  void *functions[125];
};

struct RootTable {
  uint32_t version[4];
  CoreTable *core;
};

// Places in the core table, from hsa_init on.
constexpr int QUEUE_CREATE = 7;
constexpr int DESTROY = 84;
constexpr int FREEZE = 86;

// Puts `ours` in the place of a function, and that into `next`.
template <typename Function> static void take(void *&place, Function *&next, Function *ours) {
  next = reinterpret_cast<Function *>(place);
  place = reinterpret_cast<void *>(ours);
}
