// Workgroups that wait for each other in memory.
typedef unsigned u32;
#define __global__ extern "C" __attribute__((global))
#define __shared__ __attribute__((shared))
#define DEVICE static inline __attribute__((device, always_inline))

DEVICE u32 item() { return __builtin_amdgcn_workitem_id_x(); }
DEVICE u32 group() { return __builtin_amdgcn_workgroup_id_x(); }
DEVICE u32 load(u32 *place) {
  return __hip_atomic_load(place, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT);
}
DEVICE void store(u32 *place, u32 value) {
  __hip_atomic_store(place, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
}
DEVICE u32 add(u32 *place, u32 value) {
  return __hip_atomic_fetch_add(place, value, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
}

// Barriers of the whole grid. In each round, a workgroup reads what the next one wrote.
__global__ void grid_barrier(u32 *arrived, u32 *values, u32 *out, u32 groups, u32 rounds) {
  u32 sum = 0;
  for (u32 round = 0; round < rounds; ++round) {
    if (item() == 0)
      values[group()] = group() * (round + 1);
    for (u32 half = 1; half <= 2; ++half) {
      __builtin_amdgcn_s_barrier();
      if (item() == 0) {
        add(arrived, 1);
        while (load(arrived) < groups * (2 * round + half))
          ;
      }
      __builtin_amdgcn_s_barrier();
      __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
      if (half == 1)
        sum += load(&values[(group() + 1) % groups]);
    }
  }
  out[group() * 128 + item()] = sum;
}

// A lock around an addition that is not atomic.
__global__ void spin_lock(u32 *lock, u32 *sum) {
  if (item() != 0)
    return;
  u32 open = 0;
  while (!__hip_atomic_compare_exchange_strong(lock, &open, 1u, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED,
                                               __HIP_MEMORY_SCOPE_AGENT))
    open = 0;
  volatile u32 *place = sum;
  u32 old = *place;
  __builtin_amdgcn_s_sleep(1);
  *place = old + group();
  store(lock, 0);
}

#ifdef __gfx1250__
#define WAIT_FOR_LOADS "s_wait_loadcnt 0"
#else
#define WAIT_FOR_LOADS "s_waitcnt vmcnt(0)"
#endif

// Each workgroup waits for the next one, by loads that nothing marks as shared.
__global__ void chain(u32 *done, u32 groups) {
  if (item() != 0)
    return;
  if (group() + 1 < groups) {
    u32 *next = &done[group() + 1], value;
    do {
      asm volatile("global_load_dword %0, %1, off\n\t" WAIT_FOR_LOADS : "=v"(value) : "v"(next) : "memory");
    } while (value == 0);
  }
  store(&done[group()], 1);
}

// Takes a number, adds and writes again and again, looks at nothing, and takes another number.
__global__ void busy(u32 *sum, u32 *place, u32 *next, u32 *numbers) {
  if (item() == 0)
    numbers[2 * group()] = add(next, 1);
#pragma clang loop unroll(disable)
  for (u32 round = 0; round < 64; ++round)
    __hip_atomic_fetch_add(sum, item(), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#pragma clang loop unroll(disable)
  for (u32 round = 0; round < 64; ++round)
    __hip_atomic_store(place, round, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  if (item() == 0)
    numbers[2 * group() + 1] = add(next, 1);
}

#ifndef __GFX12__
// Initialises barrier 5 of the queue for the next kernel.
extern "C" __attribute__((global, target("gws"))) void begin_barriers(unsigned groups) {
  __builtin_amdgcn_ds_gws_init(groups - 1, 5);
}

// Each round, each workgroup reads what the next one wrote in this round.
extern "C" __attribute__((global, target("gws"))) void grid_barriers(unsigned *values, unsigned *out, unsigned groups,
                                                                     unsigned rounds) {
  unsigned group = __builtin_amdgcn_workgroup_id_x(), item = __builtin_amdgcn_workitem_id_x();
  unsigned sum = 0;
  for (unsigned round = 1; round <= rounds; round++) {
    if (item == 0) {
      __hip_atomic_store(values + group, group * round, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
      __builtin_amdgcn_ds_gws_barrier(groups - 1, 5);
    }
    __builtin_amdgcn_s_barrier();
    sum += __hip_atomic_load(values + (group + 1) % groups, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    __builtin_amdgcn_s_barrier();
    if (item == 0) __builtin_amdgcn_ds_gws_barrier(groups - 1, 5);
    __builtin_amdgcn_s_barrier();
  }
  out[group * 128 + item] = sum;
}
#else
// Each wave but the last tells the barrier that it is there, and then looks at a flag until the last wave, behind the
// barrier, has set it. The second barrier comes after all that.
__global__ void signals(u32 *flags, u32 *out) {
  u32 *flag = flags + group();
  u32 waves = __builtin_amdgcn_workgroup_size_x() / __builtin_amdgcn_wavefrontsize();
  u32 wave = __builtin_amdgcn_readfirstlane(item() / __builtin_amdgcn_wavefrontsize());
  u32 looks = 0;
  __builtin_amdgcn_s_barrier_signal(-1);
  if (wave == waves - 1) {
    __builtin_amdgcn_s_barrier_wait(-1);
    store(flag, 7);
  } else {
    while (load(flag) == 0)
      ++looks;
    __builtin_amdgcn_s_barrier_wait(-1);
  }
  __builtin_amdgcn_s_barrier();
  out[group() * 128 + item()] = load(flag) + (looks == 0);
}
#endif

// The first wave looks at a flag that nobody sets until it gives up. The second wave waits for it.
__global__ void give_up(u32 *flag, u32 looks) {
  if (item() < 64)
    for (u32 look = 0; look < looks && load(flag) == 0; ++look)
      __builtin_amdgcn_s_sleep(1);
  __builtin_amdgcn_s_barrier();
}

// Waits until the clock has gone on by so many ticks, perhaps with sleeps.
__global__ void delay(u32 *out, u32 ticks, u32 sleeps) {
  unsigned long long begin = __builtin_readsteadycounter(), now;
  do {
    if (sleeps) __builtin_amdgcn_s_sleep(1);
    now = __builtin_readsteadycounter();
  } while (now - begin < ticks);
  if (item() == 0) {
    out[2 * group()] = begin;
    out[2 * group() + 1] = now;
  }
}
