// Shared parts of HSA test programs: checks, the agents and their memory pools, code objects and
// dispatches.
#pragma once
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK_HSA(call)                                                                      \
  do {                                                                                       \
    hsa_status_t status_ = (call);                                                           \
    if (status_ != HSA_STATUS_SUCCESS && status_ != HSA_STATUS_INFO_BREAK) {                 \
      const char *text_ = "?";                                                               \
      hsa_status_string(status_, &text_);                                                    \
      printf("line %d: %s: %s\n", __LINE__, #call, text_);                                   \
      failures++;                                                                            \
    }                                                                                        \
  } while (0)

#define CHECK(condition)                                                                     \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      printf("line %d: not true: %s\n", __LINE__, #condition);                               \
      failures++;                                                                            \
    }                                                                                        \
  } while (0)

// Ends main: the marker shows that the program got here.
static inline int finish(void) {
  printf("finished, failures: %d\n", failures);
  return failures ? 1 : 0;
}

enum { MAX_GPUS = 8 };
static hsa_agent_t cpu, gpus[MAX_GPUS];
static int gpu_count;

static hsa_status_t note_agent(hsa_agent_t agent, void *unused) {
  hsa_device_type_t type;
  (void)unused;
  CHECK_HSA(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
  if (type == HSA_DEVICE_TYPE_CPU)
    cpu = agent;
  else if (type == HSA_DEVICE_TYPE_GPU && gpu_count < MAX_GPUS)
    gpus[gpu_count++] = agent;
  return HSA_STATUS_SUCCESS;
}

// Starts HSA and finds the agents.
static inline void start(void) {
  gpu_count = 0;
  CHECK_HSA(hsa_init());
  CHECK_HSA(hsa_iterate_agents(note_agent, NULL));
}

struct pool_search {
  uint32_t flags;
  hsa_amd_memory_pool_t pool;
};

static hsa_status_t note_pool(hsa_amd_memory_pool_t pool, void *data) {
  struct pool_search *search = (struct pool_search *)data;
  hsa_amd_segment_t segment;
  uint32_t flags = 0;
  CHECK_HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
  if (segment != HSA_AMD_SEGMENT_GLOBAL) return HSA_STATUS_SUCCESS;
  CHECK_HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
  if ((flags & search->flags) == 0) return HSA_STATUS_SUCCESS;
  search->pool = pool;
  return HSA_STATUS_INFO_BREAK;
}

// Memory of `agent` from its first pool with one of the flags; every GPU may access it.
static inline void *allocate(hsa_agent_t agent, uint32_t flags, size_t size) {
  struct pool_search search = {flags, {0}};
  void *memory = NULL;
  CHECK_HSA(hsa_amd_agent_iterate_memory_pools(agent, note_pool, &search));
  CHECK_HSA(hsa_amd_memory_pool_allocate(search.pool, size, 0, &memory));
  CHECK_HSA(hsa_amd_agents_allow_access(gpu_count, gpus, NULL, memory));
  return memory;
}

static inline void *allocate_device(int gpu, size_t size) {
  return allocate(gpus[gpu], HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED, size);
}

static inline void *allocate_host(size_t size) {
  return allocate(cpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED, size);
}

static inline void *allocate_arguments(size_t size) {
  return memset(allocate(cpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT, size), 0, size);
}

static inline hsa_signal_t new_signal(hsa_signal_value_t value) {
  hsa_signal_t signal;
  CHECK_HSA(hsa_signal_create(value, 0, NULL, &signal));
  return signal;
}

// Sleeps in the driver until the signal is below 1.
static inline void wait_done(hsa_signal_t signal) {
  hsa_signal_value_t value = hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1,
                                                       UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
  CHECK(value == 0);
}

// The code object in a file, loaded for one GPU.
static inline hsa_executable_t load(const char *path, hsa_agent_t gpu) {
  hsa_executable_t executable = {0};
  hsa_code_object_reader_t reader;
  FILE *file = fopen(path, "rb");
  static char bytes[1 << 20];
  size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  if (file) fclose(file);
  CHECK(size > 0 && size < sizeof bytes);
  CHECK_HSA(hsa_code_object_reader_create_from_memory(bytes, size, &reader));
  CHECK_HSA(hsa_executable_create_alt(HSA_PROFILE_BASE, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                                      NULL, &executable));
  CHECK_HSA(hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL));
  CHECK_HSA(hsa_executable_freeze(executable, NULL));
  return executable;
}

// The address of a kernel (named with its ".kd") or a variable.
static inline uint64_t address_of(hsa_executable_t executable, const char *name, hsa_agent_t gpu) {
  hsa_executable_symbol_t symbol;
  hsa_symbol_kind_t kind;
  uint64_t address = 0;
  CHECK_HSA(hsa_executable_get_symbol_by_name(executable, name, &gpu, &symbol));
  CHECK_HSA(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_TYPE, &kind));
  CHECK_HSA(hsa_executable_symbol_get_info(
      symbol,
      kind == HSA_SYMBOL_KIND_KERNEL ? HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT
                                     : HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS,
      &address));
  return address;
}

static inline hsa_queue_t *new_queue(hsa_agent_t gpu) {
  hsa_queue_t *queue = NULL;
  CHECK_HSA(hsa_queue_create(gpu, 1024, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX,
                             &queue));
  return queue;
}

// Writes a packet into the queue, its first two bytes last, and rings.
static inline void submit(hsa_queue_t *queue, const void *packet, uint16_t header) {
  uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
  char *slot = (char *)queue->base_address + 64 * (index & (queue->size - 1));
  while (index - hsa_queue_load_read_index_scacquire(queue) >= queue->size) {
  }
  memcpy(slot + 2, (const char *)packet + 2, 62);
  __atomic_store_n((uint16_t *)slot, header, __ATOMIC_RELEASE);
  hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
}

// Submits a one-dimensional dispatch.
static inline void launch(hsa_queue_t *queue, uint64_t kernel, void *arguments, uint32_t grid,
                          uint16_t group, hsa_signal_t done) {
  hsa_kernel_dispatch_packet_t packet = {0};
  packet.setup = 1;
  packet.workgroup_size_x = group;
  packet.workgroup_size_y = packet.workgroup_size_z = 1;
  packet.grid_size_x = grid;
  packet.grid_size_y = packet.grid_size_z = 1;
  packet.kernel_object = kernel;
  packet.kernarg_address = arguments;
  packet.completion_signal = done;
  submit(queue, &packet,
         HSA_PACKET_TYPE_KERNEL_DISPATCH |
             HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
             HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
}
