// Opens librocov after a kernel has run: `late [local|global] LIBROCOV [exit|drain|reset] LIBRARY...`.
// Each library has a kernel, which runs twice, besides runs that a reset drops. The libraries load HIP.
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

static void *open_library(const char *path, int scope) {
  void *library = dlopen(path, RTLD_NOW | scope);
  if (!library) {
    std::fprintf(stderr, "%s\n", dlerror());
  }
  return library;
}

static int call(void *librocov, const char *name) {
  auto function = reinterpret_cast<int (*)()>(dlsym(librocov, name));
  int status = function ? function() : -1;
  std::printf("%s: %d\n", name, status);
  return status;
}

int main(int argc, char **argv) {
  if (argc < 5) {
    return 2;
  }
  int scope = std::strcmp(argv[1], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
  bool drain = std::strcmp(argv[3], "drain") == 0;
  bool reset = std::strcmp(argv[3], "reset") == 0;
  void *librocov = nullptr;
  for (int i = 4; i < argc; i++) {
    void *library = open_library(argv[i], scope);
    auto run_tally = reinterpret_cast<int (*)(int)>(library ? dlsym(library, "run_tally") : nullptr);
    if (!run_tally || run_tally(1)) {
      return 1;
    }
    if (!librocov && !(librocov = open_library(argv[2], scope))) {
      return 1;
    }
    if (reset && call(librocov, "rocov_reset")) {
      return 1;
    }
    if (run_tally(reset ? 2 : 1)) {
      return 1;
    }
    if (drain) {
      if (call(librocov, "rocov_drain")) {
        return 1;
      }
      dlclose(library);
    }
  }
}
