// A tool of ROCr that comes before librocov and shows it tables of unknown versions: with
// UNKNOWN_TABLE=copy two copies, and it prints whether they changed; otherwise ROCr's own table.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

struct Version {
  uint32_t major, minor, step, reserved;
};

struct CoreTable {
  Version version;
  void *functions[125];
};

struct RootTable {
  Version version;
  CoreTable *core;
  void *others[8];
};

constexpr uint32_t UNKNOWN = 99;

using OnLoadFunction = bool(void *, uint64_t, uint64_t, const char *const *);

static void show(OnLoadFunction *on_load, RootTable root, CoreTable core) {
  root.core = &core;
  CoreTable before = core;
  bool accepted = on_load(&root, 0, 0, nullptr);
  std::printf("%s, %s\n", accepted ? "accepted" : "refused",
              std::memcmp(&core, &before, sizeof(core)) ? "changed" : "left alone");
}

extern "C" bool OnLoad(void *table, uint64_t, uint64_t, const char *const *) {
  auto *root = static_cast<RootTable *>(table);
  const char *which = std::getenv("UNKNOWN_TABLE");
  if (!which || std::strcmp(which, "copy") != 0) {
    root->core->version.major = UNKNOWN;
    return true;
  }
  // The first in the search order is librocov's: this library is not in it.
  auto *on_load = reinterpret_cast<OnLoadFunction *>(dlsym(RTLD_DEFAULT, "OnLoad"));
  RootTable other_root = *root;
  other_root.version.major = UNKNOWN;
  show(on_load, other_root, *root->core);
  CoreTable other_core = *root->core;
  other_core.version.major = UNKNOWN;
  show(on_load, *root, other_core);
  return true;
}

extern "C" void OnUnload() {}
