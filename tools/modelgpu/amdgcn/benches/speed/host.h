// Host side of the kernels. A kernel without barriers is a loop over its work-items, into which the
// compiler may inline it. In a kernel with barriers, each work-item is a fibre with a stack of its own.
#pragma once

#define __global__ static inline
#define __device__ static inline
#define __shared__ static

namespace host {
struct Index {
  u32 x, y;
};
inline Index thread, block, size;
void barrier();
} // namespace host

static inline u32 thread_x() { return host::thread.x; }
static inline u32 thread_y() { return host::thread.y; }
static inline u32 block_x() { return host::block.x; }
static inline u32 block_y() { return host::block.y; }
static inline u32 block_size_x() { return host::size.x; }
static inline u32 block_size_y() { return host::size.y; }
using host::barrier;
template <class T> static inline void atomic_add(T *place, T value) {
  __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
}
