// Opens shared libraries one after the other, each with its own kernel, and runs the kernel twice:
// `loader [keep|close] [local|global] LIBRARY...`. Not linked with HIP: the libraries load it.
#include <cstdio>
#include <cstring>
#include <dlfcn.h>

int main(int argc, char **argv) {
  if (argc < 4) {
    return 2;
  }
  bool close = std::strcmp(argv[1], "close") == 0;
  int scope = std::strcmp(argv[2], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL;
  for (int i = 3; i < argc; i++) {
    void *library = dlopen(argv[i], RTLD_NOW | scope);
    if (!library) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
    auto run_tally = reinterpret_cast<int (*)(int)>(dlsym(library, "run_tally"));
    int error = run_tally ? run_tally(2) : -1;
    std::printf("tally: %d\n", error);
    if (error) {
      return 1;
    }
    if (close) {
      dlclose(library);
    }
  }
}
