// A substitute for LLVM's own drain for HIP (clang_rt.profile_rocm). It defines the same symbols.
// At exit it reads the counters of all loaded code and writes their sum to the file
// $LLVM_DRAIN_FILE. It skips code with empty sections, and writes no file if there is no other
// code. LLVM's drain is compiled with -fvisibility=hidden.
#include <cstdio>
#include <cstdlib>
#include <hsa/hsa.h>
#include <hsa/hsa_ven_amd_loader.h>
#include <vector>

using Word = unsigned long long;

static std::vector<hsa_agent_t> gpus;
static std::vector<hsa_executable_t> executables;

static hsa_status_t add_gpu(hsa_agent_t agent, void *) {
  hsa_device_type_t type;
  hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type);
  if (type == HSA_DEVICE_TYPE_GPU) {
    gpus.push_back(agent);
  }
  return HSA_STATUS_SUCCESS;
}

static hsa_status_t add_executable(hsa_executable_t executable, void *) {
  if (executable.handle) {
    executables.push_back(executable);
  }
  return HSA_STATUS_SUCCESS;
}

static int drained;

static Word counted_by(hsa_executable_t executable, hsa_agent_t gpu) {
  hsa_executable_symbol_t symbol;
  if (hsa_executable_get_symbol_by_name(executable, "__llvm_profile_sections", &gpu, &symbol) != HSA_STATUS_SUCCESS) {
    return 0;
  }
  Word address = 0;
  hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, &address);
  Word table[7] = {};
  hsa_memory_copy(table, reinterpret_cast<void *>(address), sizeof(table));
  if (table[3] == table[2]) {
    return 0;
  }
  drained++;
  std::vector<Word> counters((table[3] - table[2]) / sizeof(Word));
  hsa_memory_copy(counters.data(), reinterpret_cast<void *>(table[2]), counters.size() * sizeof(Word));
  Word sum = 0;
  for (Word counter : counters) {
    sum += counter;
  }
  return sum;
}

extern "C" int __llvm_profile_hip_collect_device_data() {
  hsa_ven_amd_loader_1_03_pfn_t loader = {};
  const char *path = std::getenv("LLVM_DRAIN_FILE");
  if (!path || hsa_system_get_major_extension_table(HSA_EXTENSION_AMD_LOADER, 1, sizeof(loader), &loader)) {
    return -1;
  }
  gpus.clear();
  executables.clear();
  drained = 0;
  hsa_iterate_agents(add_gpu, nullptr);
  loader.hsa_ven_amd_loader_iterate_executables(add_executable, nullptr);
  Word sum = 0;
  for (hsa_executable_t executable : executables) {
    for (hsa_agent_t gpu : gpus) {
      sum += counted_by(executable, gpu);
    }
  }
  if (drained == 0) {
    return 0;
  }
  std::FILE *file = std::fopen(path, "w");
  if (!file) {
    return -1;
  }
  std::fprintf(file, "%llu", sum);
  return std::fclose(file);
}

extern "C" void __llvm_profile_offload_register_shadow_variable(void *) {}
extern "C" void __llvm_profile_offload_register_section_shadow_variable(void *) {}
extern "C" void __llvm_profile_offload_register_dynamic_module(int, void **, const void *) {}
extern "C" void __llvm_profile_offload_unregister_dynamic_module(void *) {}

// For loader.cpp, which opens libraries that can run a kernel.
extern "C" __attribute__((weak, visibility("default"))) int run_tally(int) { return 0; }

static void drain_at_exit() { __llvm_profile_hip_collect_device_data(); }

__attribute__((constructor)) static void start() { std::atexit(drain_at_exit); }
