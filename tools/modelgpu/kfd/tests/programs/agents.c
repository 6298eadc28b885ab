// Prints the agents, their instruction sets and their memory pools.
#include "hsa_check.h"

static hsa_status_t print_pool(hsa_amd_memory_pool_t pool, void *unused) {
  hsa_amd_segment_t segment;
  uint32_t flags = 0;
  size_t size;
  (void)unused;
  CHECK_HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
  CHECK_HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SIZE, &size));
  if (segment == HSA_AMD_SEGMENT_GLOBAL)
    CHECK_HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
  printf("  pool: segment %d, flags %u, %zu KiB\n", (int)segment, flags, size >> 10);
  return HSA_STATUS_SUCCESS;
}

static hsa_status_t print_isa(hsa_isa_t isa, void *unused) {
  char name[128];
  (void)unused;
  CHECK_HSA(hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME, name));
  printf("  isa: %s\n", name);
  return HSA_STATUS_SUCCESS;
}

int main(void) {
  start();
  for (int gpu = 0; gpu < gpu_count; gpu++) {
    char name[64];
    uint32_t node, units, bus;
    CHECK_HSA(hsa_agent_get_info(gpus[gpu], HSA_AGENT_INFO_NAME, name));
    CHECK_HSA(hsa_agent_get_info(gpus[gpu], HSA_AGENT_INFO_NODE, &node));
    CHECK_HSA(hsa_agent_get_info(gpus[gpu], (hsa_agent_info_t)HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT,
                                 &units));
    CHECK_HSA(hsa_agent_get_info(gpus[gpu], (hsa_agent_info_t)HSA_AMD_AGENT_INFO_BDFID, &bus));
    printf("gpu %d: %s, node %u, %u compute units, bus %#x\n", gpu, name, node, units, bus);
    CHECK_HSA(hsa_agent_iterate_isas(gpus[gpu], print_isa, NULL));
    CHECK_HSA(hsa_amd_agent_iterate_memory_pools(gpus[gpu], print_pool, NULL));
  }
  CHECK_HSA(hsa_shut_down());
  return finish();
}
