// The stand-in for the CUDA driver: see stand_in.h.
#define _GNU_SOURCE
#include "stand_in.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  INVALID_PTX = 218,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  NOT_READY = 600,
  LAUNCH_FAILED = 719,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901
};
enum { DEVICES = 2, MANY = 16384 };

Callback stand_in_callback;
unsigned char stand_in_enabled[4][1024];

struct Context {
  int device, alive;
  int failed;  // a kernel has failed: each call of the context answers with its error
  int busy;    // the number of times that the driver says that a kernel runs
};
struct Variable {
  char *name, *memory;
  size_t size;
};
struct Module {
  struct Context *context;
  struct Library *library; // null for a module of its own
  uint32_t id;
  struct Variable *variables;
  size_t count;
  char *image;
};
struct Library {
  char *image;
  size_t size;
};

static struct Context contexts[16];
static size_t context_count = DEVICES; // the first are the primary contexts
static _Thread_local struct Context *stack[16];
static _Thread_local int depth;
static struct Module *modules[MANY];
static uint32_t last_id = 22;
static struct Variable *all[MANY];
static size_t variable_count;

// The driver's lock. CUPTI tells of modules and contexts while it is held, as the driver may do.
static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
#define LOCKED(body)                                                                                                   \
  do {                                                                                                                 \
    pthread_mutex_lock(&lock);                                                                                         \
    body;                                                                                                              \
    pthread_mutex_unlock(&lock);                                                                                       \
  } while (0)

int stand_in_device_of(const void *context) { return ((const struct Context *)context)->device; }

static struct Context *current(void) { return depth > 0 ? stack[depth - 1] : NULL; }

// What a call in the current context answers if it does nothing wrong itself.
static int state(void) {
  if (current() == NULL || !current()->alive)
    return INVALID_CONTEXT;
  return current()->failed ? LAUNCH_FAILED : SUCCESS;
}

// CUpti_ResourceData and CUpti_ModuleResourceData.
struct ModuleData {
  uint32_t id;
  size_t size;
  const char *cubin;
};
struct Resource {
  struct Context *context;
  void *handle;
  const void *descriptor;
};

static void tell_resource(uint32_t id, struct Context *context, const struct ModuleData *module) {
  struct Resource data = {context, NULL, module};
  if (stand_in_callback != NULL && stand_in_enabled[3][id])
    stand_in_callback(NULL, 3, id, &data);
}

// CUpti_CallbackData.
struct Call {
  int site;
  const char *name;
  const void *parameters;
  const int *result;
};

static void tell_call(uint32_t id, int site, const char *name, const void *parameters, const int *result) {
  struct Call data = {site, name, parameters, result};
  if (stand_in_callback != NULL && stand_in_enabled[1][id])
    stand_in_callback(NULL, 1, id, &data);
}

// Runs the body of a call between its callbacks. WORDS are the arguments, as CUPTI hands them over: a callback may change
// them, and the body goes on with what they are then (driver 580).
#define CALL(id, body, ...)                                                                                            \
  do {                                                                                                                 \
    uint64_t words[] = {__VA_ARGS__};                                                                            \
    int result = SUCCESS;                                                                                              \
    tell_call(id, 0, __func__, words, NULL);                                                                           \
    LOCKED(body);                                                                                                      \
    tell_call(id, 1, __func__, words, &result);                                                                        \
    return result;                                                                                                     \
  } while (0)

int cuInit(unsigned flags) {
  (void)flags;
  static int started;
  if (started++)
    return SUCCESS;
  for (int i = 0; i < DEVICES; ++i)
    contexts[i].device = i;
  const char *injection = getenv("CUDA_INJECTION64_PATH");
  void *library = injection != NULL && *injection ? dlopen(injection, RTLD_NOW) : NULL;
  int (*begin)(void) = library != NULL ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
  if (begin != NULL)
    begin();
  return SUCCESS;
}

int cuDriverGetVersion(int *version) {
  const char *said = getenv("STAND_IN_VERSION");
  *version = said != NULL ? atoi(said) : 13000;
  return SUCCESS;
}
int cuDeviceGetCount(int *count) {
  *count = DEVICES;
  return SUCCESS;
}
int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return SUCCESS;
}
// All are sm_90, unless STAND_IN_SECOND says otherwise of the second: 80 is sm_80.
static int capability_of(int device) {
  const char *second = getenv("STAND_IN_SECOND");
  return device == 1 && second != NULL ? atoi(second) : 90;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  const int capability = capability_of(device);
  *value = attribute == 75 ? capability / 10 : capability % 10;
  return SUCCESS;
}
int cuDeviceGetUuid(char *uuid, int device) {
  memset(uuid, 0x10 + device, 16);
  return SUCCESS;
}

// A primary context has one address, however often it is made.
int cuDevicePrimaryCtxRetain(struct Context **context, int device) {
  *context = &contexts[device];
  (*context)->alive = 1;
  return SUCCESS;
}
int cuCtxCreate_v2(struct Context **context, unsigned flags, int device) {
  (void)flags;
  *context = &contexts[context_count++];
  **context = (struct Context){.device = device, .alive = 1};
  stack[depth++] = *context;
  return SUCCESS;
}
int cuCtxGetCurrent(struct Context **context) {
  *context = current();
  return SUCCESS;
}
int cuCtxGetDevice(int *device) {
  if (current() == NULL)
    return INVALID_CONTEXT;
  *device = current()->device;
  return SUCCESS;
}
int cuCtxSetCurrent(struct Context *context) {
  if (depth == 0)
    depth = 1;
  stack[depth - 1] = context;
  return SUCCESS;
}
int cuCtxPushCurrent_v2(struct Context *context) {
  if (!context->alive)
    return INVALID_CONTEXT;
  stack[depth++] = context;
  return SUCCESS;
}
int cuCtxPopCurrent_v2(struct Context **context) {
  *context = stack[--depth];
  return SUCCESS;
}

static void forget(struct Module *module) {
  for (size_t k = 0; k < module->count; ++k) {
    memset(module->variables[k].memory, 0xee, module->variables[k].size);
    for (size_t i = 0; i < variable_count; ++i)
      if (all[i] == &module->variables[k])
        all[i] = all[--variable_count];
  }
  module->count = 0;
}
static void destroy(struct Context *context) {
  tell_resource(2, context, NULL);
  for (int i = 0; i < MANY; ++i)
    if (modules[i] != NULL && modules[i]->context == context) {
      forget(modules[i]);
      modules[i] = NULL;
    }
  context->alive = context->failed = 0;
}
int cuCtxDestroy_v2(struct Context *context) { CALL(322, destroy(context), (uint64_t)context); }
int cuDevicePrimaryCtxRelease_v2(int device) { CALL(544, destroy(&contexts[device]), (uint64_t)device); }
int cuDevicePrimaryCtxReset_v2(int device) {
  CALL(545, destroy(&contexts[device]); contexts[device].alive = 1, (uint64_t)device);
}

// A kernel fails.
int standInTrap(void) {
  current()->failed = 1;
  return SUCCESS;
}
// A kernel runs until the driver was asked this many times.
int standInKernel(int times) {
  current()->busy = times;
  return SUCCESS;
}

// Loads the variables of a cubin.
static int place(struct Module *module, const char *image) {
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
  if (memcmp(image, ELFMAG, SELFMAG) != 0)
    return INVALID_IMAGE;
  const Elf64_Shdr *sections = (const Elf64_Shdr *)(image + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB)
      continue;
    const Elf64_Sym *symbols = (const Elf64_Sym *)(image + sections[i].sh_offset);
    const char *names = image + sections[sections[i].sh_link].sh_offset;
    const size_t count = sections[i].sh_size / sizeof *symbols;
    module->variables = calloc(count, sizeof *module->variables);
    for (size_t k = 0; k < count; ++k) {
      if (ELF64_ST_TYPE(symbols[k].st_info) != STT_OBJECT || symbols[k].st_shndx == SHN_UNDEF)
        continue;
      const Elf64_Shdr *section = &sections[symbols[k].st_shndx];
      struct Variable *variable = &module->variables[module->count++];
      *variable = (struct Variable){strdup(names + symbols[k].st_name), calloc(1, symbols[k].st_size + 1),
                                    symbols[k].st_size};
      if (section->sh_type != SHT_NOBITS)
        memcpy(variable->memory, image + section->sh_offset + symbols[k].st_value, variable->size);
      all[variable_count++] = variable;
    }
  }
  return SUCCESS;
}

// The size of an ELF: its headers of sections and of segments are its last parts.
static size_t size_of(const char *image) {
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
  const size_t sections = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
  const size_t segments = header->e_phoff + (size_t)header->e_phnum * header->e_phentsize;
  return sections > segments ? sections : segments;
}

static int load(struct Module **made, struct Library *library, const char *image) {
  if (state() != SUCCESS)
    return state();
  struct Module *module = calloc(1, sizeof *module);
  module->context = current();
  module->library = library;
  module->id = ++last_id;
  module->image = (char *)image;
  const int status = place(module, image);
  if (status != SUCCESS)
    return status;
  for (int i = 0; i < MANY; ++i)
    if (modules[i] == NULL) {
      modules[i] = module;
      break;
    }
  const struct ModuleData data = {module->id, size_of(image), image};
  tell_resource(6, module->context, &data);
  *made = module;
  return SUCCESS;
}

static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL)
    return NULL;
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  rewind(file);
  char *content = calloc(1, (size_t)size + sizeof(Elf64_Ehdr));
  if (fread(content, 1, (size_t)size, file) != (size_t)size)
    abort();
  fclose(file);
  return content;
}

// The wrapper of a fat binary (fatbinary_section.h).
struct Wrapper {
  uint32_t magic, version;
  const char *data;
  void *units;
};

// The cubin of a fat binary that is not compressed and fits the GPU of the current context best: the latest for its
// architecture. Or the code that is there instead.
static const char *of_fat_binary(const char *image) {
  const struct Wrapper *wrapper = (const struct Wrapper *)image;
  if (wrapper->magic == 0x466243b1)
    image = wrapper->data;
  if (memcmp(image, "\x50\xed\x55\xba", 4) != 0)
    return image;
  const unsigned own = (unsigned)capability_of(current() != NULL ? current()->device : 0);
  uint64_t size;
  memcpy(&size, image + 8, sizeof size);
  const char *entry = image + 16, *end = entry + size, *best = NULL;
  uint32_t best_architecture = 0;
  while (entry + 64 <= end) {
    uint16_t kind;
    uint32_t header, architecture;
    uint64_t padded;
    memcpy(&kind, entry, sizeof kind);
    memcpy(&header, entry + 4, sizeof header);
    memcpy(&padded, entry + 8, sizeof padded);
    memcpy(&architecture, entry + 28, sizeof architecture);
    const int fits = architecture / 10 == own / 10 && architecture <= own && architecture > best_architecture;
    if (kind == 2 && fits && memcmp(entry + header, ELFMAG, SELFMAG) == 0) {
      best = entry + header;
      best_architecture = architecture;
    }
    if (header == 0 || padded > size)
      break;
    entry += header + padded;
  }
  return best != NULL ? best : image;
}

// PTX is compiled: the cubin lies beside the file. It begins with a comment that names the cubin.
static const char *compiled(const char *image) {
  image = of_fat_binary(image);
  char path[4096];
  if (sscanf(image, "// cubin: %4095s", path) != 1)
    return image;
  return read_file(path);
}
int cuModuleLoadData(struct Module **module, const char *image) {
  CALL(19, result = load(module, NULL, compiled((const char *)words[1])), (uint64_t)module, (uint64_t)image);
}
int cuModuleLoadDataEx(struct Module **module, const char *image, unsigned count, void *options, void *values) {
  CALL(20, result = load(module, NULL, compiled((const char *)words[1])), (uint64_t)module, (uint64_t)image, count,
       (uint64_t)options, (uint64_t)values);
}
int cuModuleLoadFatBinary(struct Module **module, const char *image) {
  CALL(21, result = load(module, NULL, compiled((const char *)words[1])), (uint64_t)module, (uint64_t)image);
}
int cuModuleLoad(struct Module **module, const char *path) {
  CALL(18, const char *image = read_file((const char *)words[1]);
       result = image != NULL ? load(module, NULL, compiled(image)) : NOT_FOUND, (uint64_t)module, (uint64_t)path);
}

static void unload(struct Module *module) {
  const struct ModuleData data = {module->id, size_of(module->image), module->image};
  tell_resource(7, module->context, &data);
  for (int i = 0; i < MANY; ++i)
    if (modules[i] == module)
      modules[i] = NULL;
  forget(module);
}
static int is_loaded(const struct Module *module) {
  for (int i = 0; i < MANY; ++i)
    if (modules[i] != NULL && modules[i] == module)
      return 1;
  return 0;
}
int cuModuleUnload(struct Module *module) {
  CALL(22, if (is_loaded(module)) unload(module); else result = INVALID_HANDLE, (uint64_t)module);
}

// Writes a fat binary to the file that STAND_IN_LOADED names.
static void note_fat_binary(const char *image) {
  const char *path = getenv("STAND_IN_LOADED");
  FILE *file = path != NULL && memcmp(image, "\x50\xed\x55\xba", 4) == 0 ? fopen(path, "wb") : NULL;
  if (file == NULL)
    return;
  uint64_t size;
  memcpy(&size, image + 8, sizeof size);
  fwrite(image, 1, 16 + size, file);
  fclose(file);
}
int cuLibraryLoadData(struct Library **library, const char *code, void *a, void *b, unsigned c, void *d, void *e,
                      unsigned f) {
  CALL(678, note_fat_binary((const char *)words[1]); *library = calloc(1, sizeof **library);
       (*library)->image = (char *)words[1], (uint64_t)library,
       (uint64_t)code, (uint64_t)a, (uint64_t)b, c, (uint64_t)d, (uint64_t)e, f);
}

int cuLibraryLoadFromFile(struct Library **library, const char *path, void *a, void *b, unsigned c, void *d, void *e,
                          unsigned f) {
  CALL(679, *library = calloc(1, sizeof **library); (*library)->image = read_file((const char *)words[1]),
       (uint64_t)library, (uint64_t)path, (uint64_t)a, (uint64_t)b, c, (uint64_t)d, (uint64_t)e, f);
}

static struct Module *module_of(struct Library *library, struct Context *context) {
  for (int i = 0; i < MANY; ++i)
    if (modules[i] != NULL && modules[i]->library == library && modules[i]->context == context)
      return modules[i];
  return NULL;
}
int cuLibraryGetModule(struct Module **module, struct Library *library) {
  CALL(682, *module = module_of(library, current());
       if (*module == NULL) result = load(module, library, compiled(library->image)), (uint64_t)module,
       (uint64_t)library);
}
// What a launch of a kernel of the library does the first time: no call tells of the handle.
int standInLaunch(struct Library *library) {
  int result = SUCCESS;
  LOCKED(struct Module *module = module_of(library, current());
         if (module == NULL) result = load(&module, library, compiled(library->image)));
  return result;
}
// The module that the driver has loaded by itself. No call tells of it.
struct Module *standInModule(struct Library *library) { return module_of(library, current()); }
static void unload_all(struct Library *library) {
  for (int i = 0; i < MANY; ++i)
    if (modules[i] != NULL && modules[i]->library == library)
      unload(modules[i]);
}
int cuLibraryUnload(struct Library *library) { CALL(680, unload_all(library), (uint64_t)library); }

static int global(char **address, size_t *size, struct Module *module, const char *name) {
  if (state() != SUCCESS)
    return state();
  if (!is_loaded(module))
    return INVALID_HANDLE;
  for (size_t k = 0; k < module->count; ++k)
    if (strcmp(module->variables[k].name, name) == 0) {
      *address = module->variables[k].memory;
      *size = module->variables[k].size;
      return SUCCESS;
    }
  return NOT_FOUND;
}
int cuModuleGetGlobal_v2(char **address, size_t *size, struct Module *module, const char *name) {
  int result;
  LOCKED(result = global(address, size, module, name));
  return result;
}

// A copy must stay inside a variable.
static int check(const char *address, size_t size) {
  if (state() != SUCCESS)
    return state();
  for (size_t k = 0; k < variable_count; ++k)
    if (address >= all[k]->memory && address + size <= all[k]->memory + all[k]->size)
      return SUCCESS;
  return INVALID_VALUE;
}
int cuMemcpyDtoHAsync_v2(void *to, const char *from, size_t size, void *stream) {
  (void)stream;
  int status;
  LOCKED(status = check(from, size); if (status == SUCCESS) memcpy(to, from, size));
  return status;
}
int cuMemcpyHtoDAsync_v2(char *to, const void *from, size_t size, void *stream) {
  (void)stream;
  int status;
  LOCKED(status = check(to, size); if (status == SUCCESS) memcpy(to, from, size));
  return status;
}
int cuMemcpyHtoD_v2(char *to, const void *from, size_t size) { return cuMemcpyHtoDAsync_v2(to, from, size, NULL); }

// Streams and events have nothing to wait for, but kernels that the program plays.
static char a_stream, an_event;
static int capturing, invalidated;
int cuThreadExchangeStreamCaptureMode(int *mode) {
  *mode = 0;
  return SUCCESS;
}
int cuStreamCreate(void **stream, unsigned flags) {
  (void)flags;
  *stream = &a_stream;
  int result;
  LOCKED(result = state());
  return result;
}
int cuStreamSynchronize(void *stream) { return stream != NULL ? SUCCESS : INVALID_VALUE; }
int cuStreamDestroy_v2(void *stream) { return stream != NULL ? SUCCESS : INVALID_VALUE; }
int cuEventCreate(void **event, unsigned flags) {
  (void)flags;
  *event = &an_event;
  return state();
}
int cuEventRecord(void *event, void *stream) { return event != stream ? state() : INVALID_VALUE; }
int cuCtxRecordEvent(void *context, void *event) {
  (void)context, (void)event;
  int result = state();
  LOCKED(if (capturing) result = CAPTURE_UNSUPPORTED; invalidated |= capturing);
  return result;
}
int cuEventQuery(void *event) {
  (void)event;
  if (current()->busy > 0 && current()->busy-- > 0)
    return NOT_READY;
  return state();
}
int cuStreamBeginCapture_v2(void *stream, int mode) {
  CALL(539, (void)mode; capturing = 1; invalidated = 0, (uint64_t)stream);
}
int cuStreamEndCapture(void *stream, void **graph) {
  CALL(497, (void)graph; capturing = 0; result = invalidated ? CAPTURE_INVALIDATED : SUCCESS, (uint64_t)stream);
}
int cuEventDestroy_v2(void *event) { return event != NULL ? SUCCESS : INVALID_VALUE; }
int cuMemHostAlloc(void **memory, size_t size, unsigned flags) {
  (void)flags;
  *memory = calloc(1, size + 1);
  return SUCCESS;
}
int cuMemFreeHost(void *memory) {
  free(memory);
  return SUCCESS;
}

// The compiler of PTX: ptxas, which STAND_IN_PTXAS names, and nvlink beside it. It needs a context, as driver 580 does. Each
// call of ptxas is noted in the file that STAND_IN_COMPILED names, with the architecture.
struct Link {
  char directory[64];
  char *log;
  size_t log_size;
  char *cubin;
  int inputs, architecture;
};
int cuLinkCreate_v2(unsigned count, const int *options, void *const *values, struct Link **made) {
  if (current() == NULL)
    return INVALID_CONTEXT;
  struct Link *link = calloc(1, sizeof *link);
  strcpy(link->directory, "/tmp/stand-in-link-XXXXXX");
  if (mkdtemp(link->directory) == NULL)
    return OUT_OF_MEMORY;
  link->architecture = capability_of(current()->device);
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == 5) // CU_JIT_ERROR_LOG_BUFFER
      link->log = values[i];
    if (options[i] == 6) // CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
      link->log_size = (size_t)values[i];
    if (options[i] == 9) // CU_JIT_TARGET
      link->architecture = (int)(size_t)values[i];
  }
  *made = link;
  return SUCCESS;
}
static int run_tool(struct Link *link, const char *command) {
  const int status = system(command);
  char path[128];
  snprintf(path, sizeof path, "%s/log", link->directory);
  FILE *file = fopen(path, "rb");
  if (file != NULL && link->log != NULL)
    link->log[fread(link->log, 1, link->log_size - 1, file)] = '\0';
  if (file != NULL)
    fclose(file);
  return status == 0 ? SUCCESS : INVALID_PTX;
}
// CU_JIT_INPUT_CUBIN and CU_JIT_INPUT_PTX.
static int add(struct Link *link, int kind, const char *data, size_t size) {
  const char *ptxas = getenv("STAND_IN_PTXAS"), *noted = getenv("STAND_IN_COMPILED");
  if (ptxas == NULL || size == 0 || kind > 1 || (kind == 1 && data[size - 1] != '\0'))
    return INVALID_VALUE;
  char path[128], command[4096];
  const int number = link->inputs++;
  snprintf(path, sizeof path, kind == 1 ? "%s/ptx" : "%s/%d.cubin", link->directory, number);
  FILE *file = fopen(path, "wb");
  fwrite(data, 1, kind == 1 ? size - 1 : size, file);
  fclose(file);
  if (kind == 0)
    return SUCCESS;
  snprintf(command, sizeof command, "echo %d >>'%s'; '%s' -c -arch=sm_%d '%s' -o '%s/%d.cubin' 2>'%s/log'",
           link->architecture, noted != NULL ? noted : "/dev/null", ptxas, link->architecture, path, link->directory,
           number, link->directory);
  return run_tool(link, command);
}
static int complete(struct Link *link, void **cubin, size_t *size) {
  char path[128], command[4096];
  snprintf(command, sizeof command, "\"$(dirname '%s')/nvlink\" -arch=sm_%d '%s'/*.cubin -o '%s/linked' >'%s/log' 2>&1",
           getenv("STAND_IN_PTXAS"), link->architecture, link->directory, link->directory, link->directory);
  if (run_tool(link, command) != SUCCESS)
    return NOT_FOUND;
  snprintf(path, sizeof path, "%s/linked", link->directory);
  *cubin = link->cubin = read_file(path);
  *size = size_of(link->cubin);
  return SUCCESS;
}
int cuLinkAddData_v2(struct Link *link, int kind, const void *data, size_t size, const char *name, unsigned count,
                     const int *options, void *const *values) {
  CALL(382, result = add(link, (int)words[1], (const char *)words[2], words[3]), (uint64_t)link, (uint64_t)kind,
       (uint64_t)data, size, (uint64_t)name, count, (uint64_t)options, (uint64_t)values);
}
int cuLinkAddFile_v2(struct Link *link, int kind, const char *path, unsigned count, const int *options,
                     void *const *values) {
  CALL(383, char *data = read_file((const char *)words[2]);
       result = data == NULL ? NOT_FOUND
                               : add(link, (int)words[1], data, words[1] == 0 ? size_of(data) : strlen(data) + 1),
       (uint64_t)link,
       (uint64_t)kind, (uint64_t)path, count, (uint64_t)options, (uint64_t)values);
}
int cuLinkComplete(struct Link *link, void **cubin, size_t *size) {
  CALL(365, result = complete(link, cubin, size), (uint64_t)link, (uint64_t)cubin, (uint64_t)size);
}
int cuLinkDestroy(struct Link *link) {
  char command[128];
  snprintf(command, sizeof command, "rm -r '%s'", link->directory);
  const int status = system(command);
  if (link->cubin != NULL)
    memset(link->cubin, 0xee, SELFMAG); // nobody uses it any more
  free(link->cubin);
  free(link);
  return status;
}
