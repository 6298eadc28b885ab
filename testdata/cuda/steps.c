// Does what its arguments say, one after the other, with the driver that it is linked with:
//
//   device:N         makes the primary context of GPU N the current one (0 at the start)
//   context:N        makes a context of GPU N, and makes it the current one
//   use:N            makes the context that came N-th (from 0) the current one
//   load:FILE        loads a cubin, or PTX, as a module
//   data:FILE        loads the content of a file as a module
//   options:FILE     does so with options
//   fatbinary:FILE   does so by the call for fat binaries
//   library:FILE     loads the content of a file as a library
//   library-file:F   loads a file as a library
//   linked:FILE,..   loads the fat binaries of units as nvlink joins them (-rdc=true), as a library. The first is the code
//   link:FILE,..     links PTX from memory by the driver, and loads the cubin. link-files:FILE,.. does so from files
//   nvrtc:FILE       has NVRTC compile a file to a cubin, and loads that; with the library at the place in STAND_IN_NVRTC
//   nvjitlink:N:FILE has nvJitLink of the same file link an input of kind N, and loads the cubin
//   early:FILE       loads the content of a file as a library, before there is a context: the first step only
//   open:FILE        opens a shared library
//   get              asks for the module of the library in this context, as the CUDA runtime does
//   launch           has the driver load the library's module by itself
//   module:N         goes on with the module that came N-th (from 0)
//   plant:NAME:N,..  writes counts into a variable of the module
//   unload           unloads the module, or the library
//   release          releases the primary context
//   reset            resets the primary context
//   destroy          destroys the current context
//   trap             has a kernel fail
//   kernel:N         has a kernel run until the driver was asked N times
//   capture:begin    begins to capture a graph; capture:end prints the status of its end
//   label:NAME       opens a label of rocov, and pop closes it
//   dump:NAME, drain, reset-counts, start, stop: rocov's functions of these names
//   thread:STEP      does a step in a thread of its own, in the current context
//   race:N:FILE      loads FILE N times and unloads it, while another thread drains and a third has libraries loaded
//   fork:N           forks a child that exits with N, and prints how it has ended
//   kill             kills the process
//   exit:N           ends with this status
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Context Context;
typedef struct Module Module;
typedef struct Library Library;
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(Context **, int);
int cuDevicePrimaryCtxRelease_v2(int);
int cuDevicePrimaryCtxReset_v2(int);
int cuCtxCreate_v2(Context **, unsigned, int);
int cuCtxDestroy_v2(Context *);
int cuCtxSetCurrent(Context *);
int cuModuleLoad(Module **, const char *);
int cuModuleLoadData(Module **, const void *);
int cuModuleLoadDataEx(Module **, const void *, unsigned, void *, void *);
int cuModuleLoadFatBinary(Module **, const void *);
int cuModuleUnload(Module *);
int cuLibraryLoadData(Library **, const void *, void *, void *, unsigned, void *, void *, unsigned);
int cuLibraryLoadFromFile(Library **, const char *, void *, void *, unsigned, void *, void *, unsigned);
int cuLibraryGetModule(Module **, Library *);
int cuLinkCreate_v2(unsigned, int *, void **, void **);
int cuLinkAddData_v2(void *, int, void *, size_t, const char *, unsigned, int *, void **);
int cuLinkAddFile_v2(void *, int, const char *, unsigned, int *, void **);
int cuLinkComplete(void *, void **, size_t *);
int cuLinkDestroy(void *);
int cuLibraryUnload(Library *);
int cuModuleGetGlobal_v2(uint64_t *, size_t *, Module *, const char *);
int cuMemcpyHtoD_v2(uint64_t, const void *, size_t);
int cuStreamBeginCapture_v2(void *, int);
int cuStreamEndCapture(void *, void **);
int standInLaunch(Library *);
Module *standInModule(Library *);
int standInTrap(void);
int standInKernel(int);

static Context *contexts[16], *context;
static Module *modules[1024], *module;
static int context_count, module_count, device;
static Library *library;

static void check(int status, const char *step) {
  if (status == 0)
    return;
  printf("%s: status %d\n", step, status);
  exit(1);
}

static void *content_of(const char *path) {
  FILE *file = fopen(path, "rb");
  char *content = calloc(1, 1 << 20);
  if (file == NULL || fread(content, 1, 1 << 20, file) == 0)
    exit(1);
  fclose(file);
  return content;
}

// Code that nvlink has joined: the wrapper of fatbinary_section.h.
static void *linked(char *files) {
  static struct {
    uint32_t magic, version;
    void *data, *units;
  } code = {0x466243b1, 2, NULL, NULL};
  static void *units[16];
  int count = 0;
  for (char *file = strtok(files, ","); file != NULL; file = strtok(NULL, ","))
    units[count++] = content_of(file);
  code.data = units[0];
  code.units = &units[1];
  return &code;
}

// Links PTX, and cubins by the ends of their names, and loads the result.
static void link_all(Module **made, char *files, int by_path) {
  void *state, *cubin;
  size_t size;
  check(cuLinkCreate_v2(0, NULL, NULL, &state), "create");
  for (char *file = strtok(files, ","); file != NULL; file = strtok(NULL, ",")) {
    char *content = content_of(file);
    const int kind = strstr(file, ".cubin") == NULL; // CU_JIT_INPUT_CUBIN and CU_JIT_INPUT_PTX
    struct stat status;
    check(stat(file, &status), "stat");
    const size_t length = (size_t)status.st_size + (size_t)kind; // PTX has a zero at its end
    check(by_path ? cuLinkAddFile_v2(state, kind, file, 0, NULL, NULL)
                  : cuLinkAddData_v2(state, kind, content, length, "input", 0, NULL, NULL),
          "add");
    // The driver has read it.
    memset(content, 0, length);
  }
  check(cuLinkComplete(state, &cubin, &size), "complete");
  char *copy = malloc(size);
  memcpy(copy, cubin, size);
  check(cuLinkDestroy(state), "destroy");
  check(cuModuleLoadData(made, copy), "load");
}

// A function of the library that stands in for NVRTC and nvJitLink, as Python's frameworks find it.
static void *of_compiler(const char *name) {
  static void *compilers;
  if (compilers == NULL)
    compilers = dlopen(getenv("STAND_IN_NVRTC"), RTLD_NOW | RTLD_LOCAL);
  void *found = dlsym(compilers, name);
  if (found == NULL)
    exit(1);
  return found;
}

// Compiles or links a file, and loads the cubin, whose memory the compiler gives back. `kind` is -1 for NVRTC.
static void compile(Module **made, const char *path, int kind) {
  int (*create_program)(void **, const char *, const char *, int, void *, void *) = of_compiler("nvrtcCreateProgram");
  int (*compile_program)(void *, int, const char **) = of_compiler("nvrtcCompileProgram");
  int (*create_link)(void **, uint32_t, const char **) = of_compiler("nvJitLinkCreate");
  int (*add)(void *, int, const void *, size_t, const char *) = of_compiler("nvJitLinkAddData");
  int (*complete)(void *) = of_compiler("nvJitLinkComplete");
  int (*size_of)(void *, size_t *) = of_compiler(kind < 0 ? "nvrtcGetCUBINSize" : "nvJitLinkGetLinkedCubinSize");
  int (*read)(void *, char *) = of_compiler(kind < 0 ? "nvrtcGetCUBIN" : "nvJitLinkGetLinkedCubin");
  int (*destroy)(void **) = of_compiler(kind < 0 ? "nvrtcDestroyProgram" : "nvJitLinkDestroy");
  const char *options[] = {"-arch=sm_90", "-lto"};
  void *work;
  size_t size;
  char *content = content_of(path);
  if (kind < 0) {
    check(create_program(&work, content, NULL, 0, NULL, NULL), "create");
    check(compile_program(work, 1, options), "compile");
  } else {
    check(create_link(&work, kind == 3 ? 2 : 1, options), "create");
    check(add(work, kind, content, strlen(content), "input"), "add");
    check(complete(work), "complete");
  }
  check(size_of(work, &size), "size");
  char *cubin = malloc(size);
  check(read(work, cubin), "read");
  check(destroy(&work), "destroy");
  check(cuModuleLoadData(made, cubin), "load");
}

static void enter(Context *made) {
  contexts[context_count++] = context = made;
  check(cuCtxSetCurrent(context), "current");
}

static void came(Module *made) { modules[module_count++] = module = made; }

// A function of librocov, which is preloaded; null without it.
static void call_rocov(const char *name, const char *argument) {
  int (*function)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, name);
  if (function != NULL)
    function(argument);
}

static void *drain(void *times) {
  for (long i = 0; i < (long)times; ++i)
    call_rocov("rocov_drain", NULL);
  return NULL;
}

static const char *raced;
static void *launches(void *times) {
  check(cuCtxSetCurrent(context), "current");
  for (long i = 0; i < (long)times; ++i) {
    Library *own;
    check(cuLibraryLoadData(&own, content_of(raced), NULL, NULL, 0, NULL, NULL, 0), "library");
    check(standInLaunch(own), "launch");
    check(cuLibraryUnload(own), "unload");
  }
  return NULL;
}

static void run(char *step);

static void *in_thread(void *step) {
  check(cuCtxSetCurrent(context), "current");
  run(step);
  return NULL;
}

static void run(char *step) {
  Module *made = NULL;
  char *value = strchr(step, ':');
  if (value != NULL)
    *value++ = '\0';
  if (strcmp(step, "device") == 0) {
    Context *primary;
    device = atoi(value);
    check(cuDevicePrimaryCtxRetain(&primary, device), step);
    enter(primary);
  } else if (strcmp(step, "context") == 0) {
    Context *other;
    check(cuCtxCreate_v2(&other, 0, atoi(value)), step);
    enter(other);
  } else if (strcmp(step, "use") == 0) {
    context = contexts[atoi(value)];
    check(cuCtxSetCurrent(context), step);
  } else if (strcmp(step, "load") == 0) {
    check(cuModuleLoad(&made, value), step);
    came(made);
  } else if (strcmp(step, "data") == 0) {
    check(cuModuleLoadData(&made, content_of(value)), step);
    came(made);
  } else if (strcmp(step, "options") == 0) {
    check(cuModuleLoadDataEx(&made, content_of(value), 0, NULL, NULL), step);
    came(made);
  } else if (strcmp(step, "fatbinary") == 0) {
    check(cuModuleLoadFatBinary(&made, content_of(value)), step);
    came(made);
  } else if (strcmp(step, "library") == 0) {
    check(cuLibraryLoadData(&library, content_of(value), NULL, NULL, 0, NULL, NULL, 0), step);
  } else if (strcmp(step, "library-file") == 0) {
    check(cuLibraryLoadFromFile(&library, value, NULL, NULL, 0, NULL, NULL, 0), step);
  } else if (strcmp(step, "open") == 0) {
    if (dlopen(value, RTLD_NOW) == NULL)
      exit(1);
  } else if (strcmp(step, "linked") == 0) {
    check(cuLibraryLoadData(&library, linked(value), NULL, NULL, 0, NULL, NULL, 0), step);
  } else if (strcmp(step, "link") == 0 || strcmp(step, "link-files") == 0) {
    link_all(&made, value, step[4] != '\0');
    came(made);
  } else if (strcmp(step, "nvrtc") == 0 || strcmp(step, "nvjitlink") == 0) {
    const int kind = step[2] == 'r' ? -1 : (int)strtol(value, &value, 10);
    compile(&made, kind < 0 ? value : value + 1, kind);
    came(made);
  } else if (strcmp(step, "get") == 0) {
    check(cuLibraryGetModule(&made, library), step);
    came(made);
  } else if (strcmp(step, "launch") == 0) {
    check(standInLaunch(library), step);
  } else if (strcmp(step, "module") == 0) {
    module = modules[atoi(value)];
  } else if (strcmp(step, "plant") == 0) {
    char *numbers = strchr(value, ':');
    *numbers++ = '\0';
    uint64_t address, words[64];
    size_t size, n = 0;
    for (char *word = strtok(numbers, ","); word != NULL; word = strtok(NULL, ","))
      words[n++] = strtoull(word, NULL, 0);
    if (module == NULL)
      module = standInModule(library);
    check(cuModuleGetGlobal_v2(&address, &size, module, value), value);
    check(cuMemcpyHtoD_v2(address, words, n * 8), value);
  } else if (strcmp(step, "unload") == 0) {
    check(library != NULL ? cuLibraryUnload(library) : cuModuleUnload(module), step);
    library = NULL;
    module = NULL;
  } else if (strcmp(step, "release") == 0) {
    check(cuDevicePrimaryCtxRelease_v2(device), step);
  } else if (strcmp(step, "reset") == 0) {
    check(cuDevicePrimaryCtxReset_v2(device), step);
    module = NULL;
  } else if (strcmp(step, "destroy") == 0) {
    check(cuCtxDestroy_v2(context), step);
    module = NULL;
  } else if (strcmp(step, "trap") == 0) {
    check(standInTrap(), step);
  } else if (strcmp(step, "kernel") == 0) {
    check(standInKernel(atoi(value)), step);
  } else if (strcmp(step, "capture") == 0) {
    void *graph;
    if (strcmp(value, "begin") == 0)
      check(cuStreamBeginCapture_v2(&graph, 0), step);
    else
      printf("capture: status %d\n", cuStreamEndCapture(&graph, &graph));
  } else if (strcmp(step, "label") == 0) {
    call_rocov("rocov_label_push", value);
  } else if (strcmp(step, "pop") == 0) {
    call_rocov("rocov_label_pop", NULL);
  } else if (strcmp(step, "dump") == 0) {
    call_rocov("rocov_dump", value);
  } else if (strcmp(step, "drain") == 0) {
    drain((void *)1);
  } else if (strcmp(step, "reset-counts") == 0) {
    call_rocov("rocov_reset", NULL);
  } else if (strcmp(step, "start") == 0) {
    call_rocov("rocov_start", NULL);
  } else if (strcmp(step, "stop") == 0) {
    call_rocov("rocov_stop", NULL);
  } else if (strcmp(step, "thread") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, value);
    pthread_join(thread, NULL);
  } else if (strcmp(step, "race") == 0) {
    const long times = atoi(value);
    pthread_t drainer, launcher;
    raced = strchr(value, ':') + 1;
    pthread_create(&drainer, NULL, drain, (void *)times);
    pthread_create(&launcher, NULL, launches, (void *)times);
    for (long i = 0; i < times; ++i) {
      check(cuModuleLoad(&made, raced), step);
      check(cuModuleUnload(made), step);
    }
    pthread_join(drainer, NULL);
    pthread_join(launcher, NULL);
  } else if (strcmp(step, "fork") == 0) {
    int status;
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0)
      exit(atoi(value));
    waitpid(child, &status, 0);
    printf("child: status %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  } else if (strcmp(step, "kill") == 0) {
    kill(getpid(), SIGKILL);
  } else if (strcmp(step, "exit") == 0) {
    printf("done\n");
    exit(atoi(value));
  } else {
    printf("no step: %s\n", step);
    exit(1);
  }
}

int main(int count, char **steps) {
  Context *primary;
  check(cuInit(0), "cuInit");
  const int is_early = count > 1 && strncmp(steps[1], "early:", 6) == 0;
  if (is_early)
    check(cuLibraryLoadData(&library, content_of(steps[1] + 6), NULL, NULL, 0, NULL, NULL, 0), "early");
  check(cuDevicePrimaryCtxRetain(&primary, device), "context");
  enter(primary);
  for (int i = 1 + is_early; i < count; ++i)
    run(steps[i]);
  printf("done\n");
  return 0;
}
