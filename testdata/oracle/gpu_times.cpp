// Measures the kernels of a CUDA program that knows nothing of it: a library to be preloaded. CUPTI ($GPU_TIMES_CUPTI, the
// path of its library) notes the begin and the end of each kernel on the GPU, however it was launched. The library
// writes to the file $GPU_TIMES when main returns or calls exit, a line for each kernel:
//
//   NAME LAUNCHES MILLISECONDS REGISTERS
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <string>

namespace {

// CUPTI numbers the kinds of records in cupti_activity.h. Its functions return 0 if all is well.
constexpr int CONCURRENT_KERNEL = 10;
constexpr std::uint32_t FLUSH_FORCED = 1;
constexpr std::size_t BUFFER_BYTES = 8 << 20;

// The head of CUpti_ActivityKernel4 and of all later ones.
struct Record {
  std::uint32_t kind;
  std::uint8_t caches[2];
  std::uint16_t registers;
  std::uint32_t requested, executed;
  std::uint64_t begin, end, completed; // nanoseconds
  std::uint32_t device, context, stream;
  std::int32_t grid[3], block[3];
  std::int32_t static_shared, dynamic_shared;
  std::uint32_t local_for_thread, local, correlation;
  std::int64_t grid_id;
  const char *name;
};
static_assert(offsetof(Record, begin) == 16 && offsetof(Record, name) == 104);

struct Kernel {
  unsigned launches = 0, registers = 0;
  std::uint64_t nanoseconds = 0;
};

std::mutex guard;
std::map<std::string, Kernel> kernels;
void *cupti;

template <typename... Arguments> int call(const char *name, Arguments... arguments) {
  const auto function = reinterpret_cast<int (*)(Arguments...)>(dlsym(cupti, name));
  return function != nullptr ? function(arguments...) : -1;
}

void give_buffer(std::uint8_t **buffer, std::size_t *size, std::size_t *records) {
  *buffer = static_cast<std::uint8_t *>(std::aligned_alloc(8, BUFFER_BYTES));
  *size = *buffer != nullptr ? BUFFER_BYTES : 0;
  *records = 0; // no limit
}

void take_buffer(void *, std::uint32_t, std::uint8_t *buffer, std::size_t, std::size_t valid) {
  const std::lock_guard<std::mutex> lock(guard);
  Record *record = nullptr;
  while (call("cuptiActivityGetNextRecord", buffer, valid, &record) == 0) {
    if (record->kind != CONCURRENT_KERNEL)
      continue;
    Kernel &kernel = kernels[record->name != nullptr ? record->name : "unknown"];
    ++kernel.launches;
    kernel.registers = record->registers;
    kernel.nanoseconds += record->end - record->begin;
  }
  std::free(buffer);
}

void write_times() {
  static bool is_written = false;
  const char *path = std::getenv("GPU_TIMES");
  if (cupti == nullptr || path == nullptr || is_written)
    return;
  is_written = true;
  call("cuptiActivityFlushAll", FLUSH_FORCED);
  const std::lock_guard<std::mutex> lock(guard);
  if (kernels.empty())
    return; // a program that only starts another one
  if (std::FILE *file = std::fopen(path, "w")) {
    for (const auto &[name, kernel] : kernels)
      std::fprintf(file, "%s %u %.6f %u\n", name.c_str(), kernel.launches, kernel.nanoseconds * 1e-6, kernel.registers);
    std::fclose(file);
  }
}

void start() {
  const char *library = std::getenv("GPU_TIMES_CUPTI");
  cupti = library != nullptr ? dlopen(library, RTLD_NOW) : nullptr;
  if (cupti == nullptr)
    return;
  if (call("cuptiActivityRegisterCallbacks", &give_buffer, &take_buffer) != 0 ||
      call("cuptiActivityEnable", CONCURRENT_KERNEL) != 0)
    std::fprintf(stderr, "gpu_times: CUPTI notes no kernels\n");
}

using Main = int (*)(int, char **, char **);
Main real_main;

int measured_main(int count, char **arguments, char **environment) {
  start();
  const int status = real_main(count, arguments, environment);
  write_times();
  return status;
}

} // namespace

// The driver ends before destructors and exit handlers of a preloaded library run, and CUPTI with it.
#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int __libc_start_main(Main main, int count, char **arguments, void (*init)(), void (*fini)(),
                               void (*loader)(), void *stack) {
  real_main = main;
  const auto next = reinterpret_cast<int (*)(Main, int, char **, void (*)(), void (*)(), void (*)(), void *)>(
      dlsym(RTLD_NEXT, "__libc_start_main"));
  return next(measured_main, count, arguments, init, fini, loader, stack);
}

EXPORTED void exit(int status) {
  write_times();
  reinterpret_cast<void (*)(int)>(dlsym(RTLD_NEXT, "exit"))(status);
  __builtin_unreachable();
}
