// The stand-in for the CUDA driver: see stand_in.h.
#include "stand_in.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_VALUE = 1, INVALID_IMAGE = 200, INVALID_CONTEXT = 201, NOT_FOUND = 500 };
enum { DEVICES = 2, MANY = 4096 };

Callback stand_in_callback;
unsigned char stand_in_enabled[4][1024];

struct Context {
  int device, alive;
};
struct Variable {
  char *name, *memory;
  size_t size;
  int is_global;
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

int stand_in_device_of(const void *context) { return ((const struct Context *)context)->device; }

static struct Context *current(void) { return depth > 0 ? stack[depth - 1] : NULL; }

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

// Runs the body of a call between its callbacks. WORDS are the arguments, as CUPTI hands them over.
#define CALL(id, body, ...)                                                                                            \
  do {                                                                                                                 \
    const uint64_t words[] = {__VA_ARGS__};                                                                            \
    int result = SUCCESS;                                                                                              \
    tell_call(id, 0, __func__, words, NULL);                                                                           \
    body;                                                                                                              \
    tell_call(id, 1, __func__, words, &result);                                                                        \
    return result;                                                                                                     \
  } while (0)

int cuInit(unsigned flags) {
  (void)flags;
  static int started;
  if (started++)
    return SUCCESS;
  for (int i = 0; i < DEVICES; ++i)
    contexts[i] = (struct Context){i, 1};
  const char *injection = getenv("CUDA_INJECTION64_PATH");
  void *library = injection != NULL && *injection ? dlopen(injection, RTLD_NOW) : NULL;
  int (*begin)(void) = library != NULL ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
  if (begin != NULL)
    begin();
  return SUCCESS;
}

int cuDriverGetVersion(int *version) {
  *version = 13000;
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
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  *value = attribute == 75 ? 9 : 0; // sm_90
  return SUCCESS;
}
int cuDeviceGetUuid(char *uuid, int device) {
  memset(uuid, 0x10 + device, 16);
  return SUCCESS;
}

int cuDevicePrimaryCtxRetain(struct Context **context, int device) {
  *context = &contexts[device];
  return SUCCESS;
}
int cuCtxCreate_v2(struct Context **context, unsigned flags, int device) {
  (void)flags;
  *context = &contexts[context_count++];
  **context = (struct Context){device, 1};
  stack[depth++] = *context;
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

static void destroy(struct Context *context) {
  tell_resource(2, context, NULL);
  for (int i = 0; i < MANY; ++i)
    if (modules[i] != NULL && modules[i]->context == context)
      modules[i] = NULL;
  context->alive = 0;
}
int cuCtxDestroy_v2(struct Context *context) { CALL(322, destroy(context), (uint64_t)context); }
int cuDevicePrimaryCtxRelease_v2(int device) { CALL(544, destroy(&contexts[device]), (uint64_t)device); }

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
                                    symbols[k].st_size, ELF64_ST_BIND(symbols[k].st_info) != STB_LOCAL};
      if (section->sh_type != SHT_NOBITS)
        memcpy(variable->memory, image + section->sh_offset + symbols[k].st_value, variable->size);
      all[variable_count++] = variable;
    }
  }
  return SUCCESS;
}

// The size of an ELF whose section headers are its last part.
static size_t size_of(const char *image) {
  const Elf64_Ehdr *header = (const Elf64_Ehdr *)image;
  return header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
}

static int load(struct Module **made, struct Library *library, const char *image) {
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

int cuModuleLoadData(struct Module **module, const char *image) {
  CALL(19, result = load(module, NULL, image), (uint64_t)module, (uint64_t)image);
}
int cuModuleLoad(struct Module **module, const char *path) {
  char *image = read_file(path);
  CALL(18, result = image != NULL ? load(module, NULL, image) : NOT_FOUND, (uint64_t)module, (uint64_t)path);
}

static void unload(struct Module *module) {
  const struct ModuleData data = {module->id, size_of(module->image), module->image};
  tell_resource(7, module->context, &data);
  for (int i = 0; i < MANY; ++i)
    if (modules[i] == module)
      modules[i] = NULL;
  for (size_t k = 0; k < module->count; ++k)
    memset(module->variables[k].memory, 0xee, module->variables[k].size);
}
int cuModuleUnload(struct Module *module) { CALL(22, unload(module), (uint64_t)module); }

int cuLibraryLoadData(struct Library **library, const char *code, void *a, void *b, unsigned c, void *d, void *e,
                      unsigned f) {
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
  CALL(678, *library = calloc(1, sizeof **library); (*library)->image = (char *)code, (uint64_t)library,
       (uint64_t)code);
}

static struct Module *module_of(struct Library *library, struct Context *context) {
  for (int i = 0; i < MANY; ++i)
    if (modules[i] != NULL && modules[i]->library == library && modules[i]->context == context)
      return modules[i];
  return NULL;
}
int cuLibraryGetModule(struct Module **module, struct Library *library) {
  CALL(682, *module = module_of(library, current()); if (*module == NULL) result = load(module, library, library->image),
       (uint64_t)module, (uint64_t)library);
}
// What a launch of a kernel of the library does the first time: no call tells of the handle.
int standInLaunch(struct Library *library) {
  struct Module *module = module_of(library, current());
  return module != NULL ? SUCCESS : load(&module, library, library->image);
}
static void unload_all(struct Library *library) {
  for (int i = 0; i < MANY; ++i)
    if (modules[i] != NULL && modules[i]->library == library)
      unload(modules[i]);
}
int cuLibraryUnload(struct Library *library) { CALL(680, unload_all(library), (uint64_t)library); }

int cuModuleGetGlobal_v2(char **address, size_t *size, struct Module *module, const char *name) {
  for (size_t k = 0; k < module->count; ++k)
    if (module->variables[k].is_global && strcmp(module->variables[k].name, name) == 0) {
      *address = module->variables[k].memory;
      *size = module->variables[k].size;
      return SUCCESS;
    }
  return NOT_FOUND;
}

// A copy must stay inside a variable.
static int check(const char *address, size_t size) {
  for (size_t k = 0; k < variable_count; ++k)
    if (address >= all[k]->memory && address + size <= all[k]->memory + all[k]->size)
      return SUCCESS;
  return INVALID_VALUE;
}
int cuMemcpyDtoHAsync_v2(void *to, const char *from, size_t size, void *stream) {
  (void)stream;
  const int status = check(from, size);
  if (status == SUCCESS)
    memcpy(to, from, size);
  return status;
}
int cuMemcpyHtoDAsync_v2(char *to, const void *from, size_t size, void *stream) {
  (void)stream;
  const int status = check(to, size);
  if (status == SUCCESS)
    memcpy(to, from, size);
  return status;
}
int cuMemcpyHtoD_v2(char *to, const void *from, size_t size) { return cuMemcpyHtoDAsync_v2(to, from, size, NULL); }

// Streams and events have nothing to wait for.
static char a_stream, an_event;
int cuThreadExchangeStreamCaptureMode(int *mode) {
  *mode = 0;
  return SUCCESS;
}
int cuStreamCreate(void **stream, unsigned flags) {
  (void)flags;
  *stream = &a_stream;
  return SUCCESS;
}
int cuStreamSynchronize(void *stream) { return stream != NULL ? SUCCESS : INVALID_VALUE; }
int cuStreamDestroy_v2(void *stream) { return stream != NULL ? SUCCESS : INVALID_VALUE; }
int cuEventCreate(void **event, unsigned flags) {
  (void)flags;
  *event = &an_event;
  return SUCCESS;
}
int cuEventRecord(void *event, void *stream) { return event != stream ? SUCCESS : INVALID_VALUE; }
int cuCtxRecordEvent(void *context, void *event) { return event != context ? SUCCESS : INVALID_VALUE; }
int cuEventQuery(void *event) { return event != NULL ? SUCCESS : INVALID_VALUE; }
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
