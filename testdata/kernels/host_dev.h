// Host side of the kernels here: every work-item is a fibre of the oracle (testdata/oracle), which
// sets the indices below before it resumes one and implements barriers and wave operations by
// suspending it.
#pragma once

#include <utility>

#define __global__
#define __device__
#define __shared__ static
#define __noinline__ __attribute__((noinline))
#define HELPER __attribute__((always_inline, no_profile_instrument_function))

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned u32;
typedef unsigned long long u64;
typedef long long i64;

namespace oracle {

struct Index {
  u32 x, y, z;
};
extern Index thread, block, block_size;

void barrier();
u32 lane();
u64 ballot(bool predicate);
u32 shuffle(u32 value, u32 from);
u32 first_lane(u32 value);
[[noreturn]] void end_thread();

// A kernel that the oracle can launch. `arguments` are pointers to the values, one per parameter,
// as hipModuleLaunchKernel takes them. The name is the symbol at `function`: the same mangled name
// that the device's symbol table holds.
using Invoke = void (*)(const void *function, void *const *arguments);
struct Registration {
  Registration(const void *function, Invoke invoke);
};

template <class... Parameters, std::size_t... I>
__attribute__((no_profile_instrument_function)) Registration
registered(void (*kernel)(Parameters...), std::index_sequence<I...>) {
  struct Typed {
    __attribute__((no_profile_instrument_function)) static void invoke(const void *function,
                                                                       void *const *arguments) {
      auto typed = reinterpret_cast<void (*)(Parameters...)>(const_cast<void *>(function));
      typed(*static_cast<Parameters *>(arguments[I])...);
    }
  };
  return Registration(reinterpret_cast<const void *>(kernel), Typed::invoke);
}

template <class... Parameters>
__attribute__((no_profile_instrument_function)) Registration
registered(void (*kernel)(Parameters...)) {
  return registered(kernel, std::index_sequence_for<Parameters...>());
}

} // namespace oracle

#define REGISTER_CONCAT_(a, b) a##b
#define REGISTER_CONCAT(a, b) REGISTER_CONCAT_(a, b)
#define REGISTER_KERNEL(...)                                                                       \
  static const oracle::Registration REGISTER_CONCAT(registration_, __COUNTER__) =                  \
      oracle::registered(__VA_ARGS__)

static inline HELPER u32 thread_x() { return oracle::thread.x; }
static inline HELPER u32 thread_y() { return oracle::thread.y; }
static inline HELPER u32 thread_z() { return oracle::thread.z; }
static inline HELPER u32 block_x() { return oracle::block.x; }
static inline HELPER u32 block_y() { return oracle::block.y; }
static inline HELPER u32 block_z() { return oracle::block.z; }
static inline HELPER u32 block_size_x() { return oracle::block_size.x; }
static inline HELPER u32 block_size_y() { return oracle::block_size.y; }
static inline HELPER u32 block_size_z() { return oracle::block_size.z; }
static inline HELPER u32 global_x() { return block_x() * block_size_x() + thread_x(); }
static inline HELPER u32 global_y() { return block_y() * block_size_y() + thread_y(); }
static inline HELPER u32 global_z() { return block_z() * block_size_z() + thread_z(); }

using oracle::ballot;
using oracle::barrier;
using oracle::end_thread;
using oracle::first_lane;
using oracle::lane;
using oracle::shuffle;
