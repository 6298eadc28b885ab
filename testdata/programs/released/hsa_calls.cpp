// A tool of ROCr that counts the calls of each function in the core and AMD tables. The counts are in
// the file $HSA_CALLS, so that they are complete when the process has ended: two arrays of SLOTS
// numbers, the calls so far, and those before `hsa_calls_mark`.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

constexpr int SLOTS = 512;
constexpr int STUB = 32;

struct Table {
  uint32_t major, bytes, step, reserved;
  void *functions[];
};

// Names of the assembly below. Its memory is a whole number of pages.
extern "C" {
__attribute__((visibility("hidden"))) extern char hsa_calls_stubs[];
__attribute__((visibility("hidden"))) extern uint64_t hsa_calls_counts[2 * SLOTS];
__attribute__((visibility("hidden"))) extern void *hsa_calls_next[SLOTS];
}

// Each stub counts, and jumps to the function that was in the table.
asm(R"(
    .bss
    .balign 4096
    .hidden hsa_calls_counts
    .globl hsa_calls_counts
hsa_calls_counts:
    .zero 8192
    .hidden hsa_calls_next
    .globl hsa_calls_next
hsa_calls_next:
    .zero 4096
    .text
    .balign 32
    .hidden hsa_calls_stubs
    .globl hsa_calls_stubs
hsa_calls_stubs:
    .set slot, 0
    .rept 512
    .balign 32
    lock incq hsa_calls_counts+8*slot(%rip)
    jmp *hsa_calls_next+8*slot(%rip)
    .set slot, slot+1
    .endr
)");

extern "C" __attribute__((visibility("default"))) const uint32_t HSA_AMD_TOOL_PRIORITY = 10;

static int used;

static void take(Table *table) {
  const int functions = (table->bytes - sizeof(Table)) / sizeof(void *);
  for (int i = 0; i < functions && used < SLOTS; i++) {
    if (table->functions[i]) {
      hsa_calls_next[used] = table->functions[i];
      table->functions[i] = hsa_calls_stubs + STUB * used++;
    }
  }
}

extern "C" __attribute__((visibility("default"))) bool OnLoad(void *root, uint64_t, uint64_t,
                                                              const char *const *) {
  const char *path = std::getenv("HSA_CALLS");
  const int file = path ? open(path, O_RDWR) : -1;
  const int access = PROT_READ | PROT_WRITE;
  if (file < 0 || mmap(hsa_calls_counts, sizeof hsa_calls_counts, access, MAP_SHARED | MAP_FIXED,
                       file, 0) == MAP_FAILED) {
    return false;
  }
  close(file);
  void *const *tables = static_cast<Table *>(root)->functions;
  take(static_cast<Table *>(tables[0]));
  take(static_cast<Table *>(tables[1]));
  return true;
}

extern "C" __attribute__((visibility("default"))) void OnUnload() {}

extern "C" __attribute__((visibility("default"))) void hsa_calls_mark() {
  std::memcpy(hsa_calls_counts + SLOTS, hsa_calls_counts, SLOTS * sizeof(uint64_t));
}
