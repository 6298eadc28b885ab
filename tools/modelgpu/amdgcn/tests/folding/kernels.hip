// Addresses whose last summand a compiler may fold into an instruction's offset, while the rest is negative. With
// HIDDEN, it sees the sum only.
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define LOCAL __attribute__((address_space(3)))
#define PRIVATE __attribute__((address_space(5)))

typedef unsigned int u32;
typedef unsigned long long u64;

// The last operand is "v" for a value of each lane, "s" for one of the wave.
#define OPAQUE(value, kind) asm volatile("" : "+" kind(value))
#ifdef HIDDEN
#define SUM(base, offset, kind) ({ u32 sum_ = (base) + (offset); OPAQUE(sum_, kind); sum_; })
#else
#define SUM(base, offset, kind) ((base) + (offset))
#endif

enum { ITEMS = 128 };

static __attribute__((device)) u32 item() { return __builtin_amdgcn_workitem_id_x(); }
static __attribute__((device)) u32 place() { return __builtin_amdgcn_workgroup_id_x() * ITEMS + item(); }

#define FILLED(type, name)                                                      \
  __shared__ type name[8 * ITEMS];                                              \
  for (u32 n = item(); n < 8 * ITEMS; n += ITEMS) name[n] = (type)in[n % ITEMS] + n; \
  __syncthreads_()
#define __syncthreads_() __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); __builtin_amdgcn_s_barrier()

// One dword, and two by one instruction.
extern "C" __global__ void reads(const u64 *in, u64 *out) {
  FILLED(u32, s);
  u32 base = (u32)(LOCAL u32 *)s + item() * 4 - 512u;
  OPAQUE(base, "v");
  u32 a = *(LOCAL u32 *)SUM(base, 512, "v"), b = *(LOCAL u32 *)SUM(base, 1024, "v");
  u32 c = *(LOCAL u32 *)SUM(base, 520, "v");
  out[place()] = a * 3ull + b * 5ull + c * 7ull;
}

extern "C" __global__ void wide_reads(const u64 *in, u64 *out) {
  FILLED(u64, s);
  u32 base = (u32)(LOCAL u64 *)s + item() * 8 - 1024u;
  OPAQUE(base, "v");
  u64 a = *(LOCAL u64 *)SUM(base, 1024, "v"), b = *(LOCAL u64 *)SUM(base, 1032, "v");
  out[place()] = a * 3 + b * 5;
}

extern "C" __global__ void writes(const u64 *in, u64 *out) {
  FILLED(u32, s);
  u32 base = (u32)(LOCAL u32 *)s + item() * 4 - 512u;
  OPAQUE(base, "v");
  *(LOCAL u32 *)SUM(base, 512, "v") = (u32)in[place()];
  *(LOCAL u32 *)SUM(base, 1024, "v") = (u32)(in[place()] >> 32);
  __syncthreads_();
  out[place()] = s[item() ^ 1] * 3ull + s[ITEMS + item()] * 5ull;
}

extern "C" __global__ void atomics(const u64 *in, u64 *out) {
  FILLED(u32, s);
  u32 base = (u32)(LOCAL u32 *)s + item() / 4 * 4 - 512u;
  OPAQUE(base, "v");
  __hip_atomic_fetch_add((LOCAL u32 *)SUM(base, 512, "v"), (u32)in[place()], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  __syncthreads_();
  out[place()] = s[item()];
}

// The address is in a register of the wave.
extern "C" __global__ void appended(const u64 *in, u64 *out) {
  FILLED(u32, s);
  u32 base = (u32)(LOCAL u32 *)s - 512u;
  OPAQUE(base, "s");
  u32 old = 0;
  if (item() == 5) old = (u32)__builtin_amdgcn_ds_append((LOCAL int *)SUM(base, 528, "s"));
  __syncthreads_();
  out[place()] = old + s[4] * 5ull;
}

extern "C" __global__ void scratch(const u64 *in, u64 *out) {
  volatile u32 s[64];
  for (u32 n = 0; n < 64; n++) s[n] = (u32)in[(item() + n) % ITEMS];
  u32 base = (u32)(volatile PRIVATE u32 *)(volatile u32 *)s + item() % 16 * 4 - 64u;
  OPAQUE(base, "v");
  out[place()] = *(volatile PRIVATE u32 *)SUM(base, 64, "v") * 3ull + *(volatile PRIVATE u32 *)SUM(base, 128, "v");
}

extern "C" __global__ void buffers(const u64 *in, u64 *out) {
  // Dwords, and on RDNA a check of bytes.
#ifdef __GFX9__
  const u32 control = 0x00027000;
#else
  const u32 control = 0x30027000;
#endif
  auto whole = __builtin_amdgcn_make_buffer_rsrc((void *)in, 0, 8 * ITEMS, control);
  u32 base = item() * 8 - 2048u;
  OPAQUE(base, "v");
  u32 a = __builtin_amdgcn_raw_buffer_load_b32(whole, SUM(base, 2048, "v"), 0, 0);
  u32 b = __builtin_amdgcn_raw_buffer_load_b32(whole, SUM(base, 2060, "v"), 0, 0);
  out[place()] = a * 3ull + b * 5ull;
}

// Through the flat address space.
extern "C" __global__ void flat(const u64 *in, u64 *out) {
  FILLED(u32, s);
  u32 *p = (u32 *)s + item();
  OPAQUE(p, "v");
  u32 *q = p + 32;
#ifdef HIDDEN
  OPAQUE(q, "v");
#endif
  out[place()] = *p * 3ull + *q * 5ull;
}
