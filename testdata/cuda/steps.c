// Does what its arguments say, one after the other, with the driver that it is linked with:
//
//   device:N         makes the primary context of GPU N the current one (0 at the start)
//   load:FILE        loads a cubin as a module
//   library:FILE     loads a cubin as a library
//   get              asks for the module of the library in this context, as the CUDA runtime does
//   launch           has the driver load the library's module by itself
//   plant:NAME:N,..  writes counts into a variable of the module
//   unload           unloads the module, or the library
//   release          releases the primary context
//   exit:N           ends with this status
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Context Context;
typedef struct Module Module;
typedef struct Library Library;
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(Context **, int);
int cuDevicePrimaryCtxRelease_v2(int);
int cuCtxSetCurrent(Context *);
int cuModuleLoad(Module **, const char *);
int cuModuleUnload(Module *);
int cuLibraryLoadData(Library **, const void *, void *, void *, unsigned, void *, void *, unsigned);
int cuLibraryGetModule(Module **, Library *);
int cuLibraryUnload(Library *);
int standInLaunch(Library *);
int cuModuleGetGlobal_v2(uint64_t *, size_t *, Module *, const char *);
int cuMemcpyHtoD_v2(uint64_t, const void *, size_t);

static void check(int status, const char *step) {
  if (status == 0)
    return;
  printf("%s: status %d\n", step, status);
  exit(1);
}

static void *content_of(const char *path) {
  FILE *file = fopen(path, "rb");
  char *content = calloc(1, 64 << 20);
  if (file == NULL || fread(content, 1, 64 << 20, file) == 0)
    exit(1);
  fclose(file);
  return content;
}

int main(int count, char **steps) {
  Context *context;
  Module *module = NULL;
  Library *library = NULL;
  int device = 0;
  check(cuInit(0), "cuInit");
  check(cuDevicePrimaryCtxRetain(&context, device), "context");
  check(cuCtxSetCurrent(context), "current");
  for (int i = 1; i < count; ++i) {
    char *step = steps[i], *value = strchr(step, ':');
    if (value != NULL)
      *value++ = '\0';
    if (strcmp(step, "device") == 0) {
      device = atoi(value);
      check(cuDevicePrimaryCtxRetain(&context, device), step);
      check(cuCtxSetCurrent(context), step);
    } else if (strcmp(step, "load") == 0) {
      check(cuModuleLoad(&module, value), step);
    } else if (strcmp(step, "library") == 0) {
      check(cuLibraryLoadData(&library, content_of(value), NULL, NULL, 0, NULL, NULL, 0), step);
    } else if (strcmp(step, "get") == 0) {
      check(cuLibraryGetModule(&module, library), step);
    } else if (strcmp(step, "launch") == 0) {
      check(standInLaunch(library), step);
    } else if (strcmp(step, "plant") == 0) {
      char *numbers = strchr(value, ':');
      *numbers++ = '\0';
      uint64_t address, words[64];
      size_t size, n = 0;
      for (char *word = strtok(numbers, ","); word != NULL; word = strtok(NULL, ","))
        words[n++] = strtoull(word, NULL, 0);
      // The driver that has loaded a library's module by itself tells its handle if asked.
      if (module == NULL)
        check(cuLibraryGetModule(&module, library), step);
      check(cuModuleGetGlobal_v2(&address, &size, module, value), value);
      check(cuMemcpyHtoD_v2(address, words, n * 8), value);
    } else if (strcmp(step, "unload") == 0) {
      check(library != NULL ? cuLibraryUnload(library) : cuModuleUnload(module), step);
      library = NULL;
      module = NULL;
    } else if (strcmp(step, "release") == 0) {
      check(cuDevicePrimaryCtxRelease_v2(device), step);
    } else if (strcmp(step, "exit") == 0) {
      printf("done\n");
      return atoi(value);
    }
  }
  printf("done\n");
  return 0;
}
