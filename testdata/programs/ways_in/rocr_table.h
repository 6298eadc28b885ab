// The table of functions that ROCr passes to its tools (hsa_api_trace.h), with the parts that
// substitutes for such tools need.
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

// Positions in the core table, counted from hsa_init.
constexpr int QUEUE_CREATE = 7;
constexpr int DESTROY = 84;
constexpr int FREEZE = 86;

// Replaces a function in the table with `ours`, and stores the old one in `next`.
template <typename Function> static void take(void *&place, Function *&next, Function *ours) {
  next = reinterpret_cast<Function *>(place);
  place = reinterpret_cast<void *>(ours);
}
