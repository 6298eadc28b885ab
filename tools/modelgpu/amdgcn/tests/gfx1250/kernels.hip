// Kernels for what gfx1250 has and older targets lack. Compiled without HIP's headers. Each work-item has a word of
// the input and of the output.

typedef unsigned long long u64;
typedef unsigned u32;

#define KERNEL extern "C" __attribute__((global, amdgpu_flat_work_group_size(64, 64)))
#define SHARED static __attribute__((shared))

static __attribute__((device, always_inline)) u32 item() {
  return __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
}

// More values than the first bank of registers has, all of them live through a loop.
constexpr int MANY = 400;
KERNEL __attribute__((amdgpu_waves_per_eu(1, 1))) void many_registers(const u64 *in, u64 *out) {
  u32 values[MANY];
#pragma unroll
  for (int place = 0; place < MANY; place++)
    values[place] = u32(in[item()]) * (place + 1);
  for (u32 round = 0; round < u32(in[item()]) % 5 + 1; round++) {
#pragma unroll
    for (int place = 0; place < MANY; place++)
      values[place] = values[place] * values[(place * 7 + 3) % MANY] + values[(place * 5 + 1) % MANY];
  }
  u32 sum = 0;
#pragma unroll
  for (int place = 0; place < MANY; place++)
    sum = sum * 31 + values[place];
  out[item()] = sum;
}

// Offsets that are signed, and that count elements.
KERNEL void signed_offsets(const u64 *in, u64 *out) {
  const int back = -int(in[item()] % (item() + 1));
  const u64 *own = in + item();
  u64 bytes = reinterpret_cast<const unsigned char *>(own)[back];
  out[item()] = in[int(item()) + back] ^ in[u32(in[item()]) % (item() + 1)] ^ bytes << 8;
}

KERNEL void scratch_offsets(const u64 *in, u64 *out) {
  volatile u32 kept[64];
  for (u32 place = 0; place < 64; place++)
    kept[place] = u32(in[item()]) + place;
  volatile u32 *flat = kept + in[item()] % 32;
  __asm__("" : "+v"(flat));
  out[item()] = u64(kept[in[item()] % 64]) << 32 | flat[3];
}

// The work-item reads the scratch of its neighbour.
KERNEL void scratch_of_others(const u64 *in, u64 *out) {
  volatile u64 own = in[item()];
  SHARED u64 places[64];
  places[item() % 64] = reinterpret_cast<u64>(&own);
  __builtin_amdgcn_wave_barrier();
  const u64 other = places[item() % 64 ^ 1];
  out[item()] = *reinterpret_cast<volatile u64 *>(other);
}

// All work-items of a wave read the scratch of its first one.
KERNEL void scratch_of_one(const u64 *in, u64 *out) {
  volatile u64 own = in[item()];
  SHARED u64 places[64];
  places[item() % 64] = reinterpret_cast<u64>(&own);
  __builtin_amdgcn_wave_barrier();
  const u64 first = places[item() % 64 & ~31];
  out[item()] = *reinterpret_cast<volatile u64 *>(first);
}

KERNEL void long_integers(const u64 *in, u64 *out) {
  const u64 a = in[item()], b = a * 0x9e3779b97f4a7c15;
  const long long c = a, d = b;
  const u64 least = a < b ? a : b;
  const long long most = c > d ? c : d;
  out[item()] = least - most * (a + 0x123456789abcdef0) + u64(u32(a)) * u32(b);
}

KERNEL void copies_to_lds(const u64 *in, u64 *out) {
  typedef __attribute__((address_space(1))) int Global;
  typedef __attribute__((address_space(3))) int Local;
  SHARED u32 copied[2 * 64 + 4];
  const u32 number = item() % 64;
  const u32 *from = reinterpret_cast<const u32 *>(in + item());
  __builtin_amdgcn_global_load_async_to_lds_b32((Global *)from, (Local *)&copied[number], 0, 0);
  // The offset is for both addresses.
  __builtin_amdgcn_global_load_async_to_lds_b32((Global *)(from + 1 - 64), (Local *)&copied[number], 256, 0);
  __builtin_amdgcn_s_wait_asynccnt(0);
  *reinterpret_cast<volatile u32 *>(&copied[number]) += 1;
  // Clang does not see that the copies read LDS.
  __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  __asm__ volatile("" ::: "memory");
  u32 *to = reinterpret_cast<u32 *>(out + item());
  __builtin_amdgcn_global_store_async_from_lds_b32((Global *)to, (Local *)&copied[number], 0, 0);
  __builtin_amdgcn_global_store_async_from_lds_b32((Global *)(to + 1), (Local *)&copied[64 + number], 0, 0);
  __builtin_amdgcn_s_wait_asynccnt(0);
}

typedef __bf16 brain2 __attribute__((ext_vector_type(2)));

static __attribute__((device, always_inline)) brain2 brains(u32 low, u32 high) {
  return {static_cast<__bf16>(float(low % 256 | 1) - 128.0f), static_cast<__bf16>(float(high % 256 | 1) - 128.0f)};
}

// Odd numbers, so that no product is a zero. The results have up to 17 bits, of which bfloat16 keeps eight.
KERNEL void brain_floats(const u64 *in, u64 *out) {
  const u64 value = in[item()];
  const brain2 a = brains(value, value >> 8), b = brains(value >> 16, value >> 24), c = brains(value >> 32, value >> 40);
  u64 sum = __builtin_bit_cast(u32, brain2(a + b));
  sum = sum * 31 + __builtin_bit_cast(u32, brain2(a * b));
  sum = sum * 31 + __builtin_bit_cast(u32, __builtin_elementwise_fma(a, b, c));
  sum = sum * 31 + __builtin_bit_cast(u32, __builtin_elementwise_minnum(a, b));
  sum = sum * 31 + __builtin_bit_cast(u32, __builtin_elementwise_maxnum(b, c));
  sum = sum * 31 + __builtin_bit_cast(u32, __builtin_fmaf(float(a.x), float(b.y), float(c.x)));
  brain2 both;
  both.x = static_cast<__bf16>(__builtin_fmaf(float(a.y), float(b.x), float(c.y)));
  both.y = static_cast<__bf16>(__builtin_fmaf(float(a.x), float(b.x), float(c.y)));
  out[item()] = sum * 31 + __builtin_bit_cast(u32, both);
}
