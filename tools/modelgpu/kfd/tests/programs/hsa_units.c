// Waves run on as many XCCs, shader engines, compute units and SIMDs as the runtime reports.
// Arguments: the code object of kernels.hip for each GPU.
#include "hsa_check.h"

enum { GROUPS = 2000, WAVES = 16 };

// Fields of HW_ID in the low half of a wave's place; XCC_ID is the high half.
static const uint64_t SIMD = 3 << 4, UNIT = 15 << 8, ENGINE = 7 << 13, XCC = UINT64_C(15) << 32;

static int compare(const void *one, const void *two) {
  uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)two;
  return (a > b) - (a < b);
}

// The number of distinct values of some fields.
static uint32_t distinct(const uint64_t *places, uint64_t fields) {
  static uint64_t values[GROUPS * WAVES];
  uint32_t count = 1;
  for (int i = 0; i < GROUPS * WAVES; i++) values[i] = places[i] & fields;
  qsort(values, GROUPS * WAVES, sizeof *values, compare);
  for (int i = 1; i < GROUPS * WAVES; i++) count += values[i] != values[i - 1];
  return count;
}

static uint32_t number_of(int gpu, int info) {
  uint32_t number = 0;
  CHECK_HSA(hsa_agent_get_info(gpus[gpu], (hsa_agent_info_t)info, &number));
  return number;
}

static void units(int gpu, hsa_executable_t executable) {
  static uint64_t places[GROUPS * WAVES];
  uint64_t *device = allocate_device(gpu, sizeof places);
  uint64_t **arguments = allocate_arguments(sizeof *arguments);
  hsa_queue_t *queue = new_queue(gpus[gpu]);
  hsa_signal_t done = new_signal(1);
  *arguments = device;
  launch(queue, address_of(executable, "place.kd", gpus[gpu]), arguments, GROUPS * WAVES * 64,
         WAVES * 64, done);
  wait_done(done);
  CHECK_HSA(hsa_memory_copy(places, device, sizeof places));

  // HSA_AMD_AGENT_INFO_NUM_XCC, which ROCr 5 does not know: its GPUs have one XCC.
  uint32_t xccs = 1;
  (void)hsa_agent_get_info(gpus[gpu], (hsa_agent_info_t)0xA111, &xccs);
  CHECK(distinct(places, XCC) == xccs);
  CHECK(distinct(places, XCC | ENGINE) == number_of(gpu, HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES));
  CHECK(distinct(places, XCC | ENGINE | UNIT) ==
        number_of(gpu, HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT));
  CHECK(distinct(places, SIMD) == number_of(gpu, HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU));
  // A workgroup stays in its unit.
  for (int i = 0; i < GROUPS * WAVES; i++)
    CHECK((places[i] & ~(SIMD | 15)) == (places[i / WAVES * WAVES] & ~(SIMD | 15)));
  printf("gpu %d: %u XCCs, %u units\n", gpu, xccs, distinct(places, XCC | ENGINE | UNIT));

  CHECK_HSA(hsa_signal_destroy(done));
  CHECK_HSA(hsa_queue_destroy(queue));
  CHECK_HSA(hsa_amd_memory_pool_free(arguments));
  CHECK_HSA(hsa_amd_memory_pool_free(device));
}

int main(int argc, char **argv) {
  start();
  CHECK(argc == gpu_count + 1);
  for (int gpu = 0; gpu < gpu_count && gpu + 1 < argc; gpu++) {
    hsa_executable_t executable = load(argv[gpu + 1], gpus[gpu]);
    if (failures) break;
    units(gpu, executable);
    CHECK_HSA(hsa_executable_destroy(executable));
  }
  CHECK_HSA(hsa_shut_down());
  return finish();
}
