// Stands in for NVRTC and nvJitLink: a program is PTX, which the ptxas assembles that STAND_IN_PTXAS names. So is LTO-IR.
// The options of each compilation are noted in the file that STAND_IN_OPTIONS names.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct Work {
  char *text, *cubin;
  size_t size;
  int is_for_ptx;
};

static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (file == NULL)
    return NULL;
  char *content = calloc(1, 1 << 20);
  *size = fread(content, 1, 1 << 20, file);
  fclose(file);
  return content;
}

static void note(int count, const char *const *options) {
  const char *path = getenv("STAND_IN_OPTIONS");
  FILE *file = path != NULL ? fopen(path, "a") : NULL;
  for (int i = 0; file != NULL && i < count; ++i)
    fprintf(file, "%s%s", i > 0 ? " " : "", options[i]);
  if (file != NULL) {
    fputc('\n', file);
    fclose(file);
  }
}

static int assemble(struct Work *work) {
  char directory[] = "/tmp/stand-in-compiler-XXXXXX", path[128], command[4096];
  if (mkdtemp(directory) == NULL)
    return 1;
  snprintf(path, sizeof path, "%s/ptx", directory);
  FILE *file = fopen(path, "wb");
  fwrite(work->text, 1, strlen(work->text), file);
  fclose(file);
  snprintf(command, sizeof command, "'%s' -arch=sm_90 '%s' -o '%s/cubin'", getenv("STAND_IN_PTXAS"), path, directory);
  const int status = system(command);
  snprintf(path, sizeof path, "%s/cubin", directory);
  if (status == 0)
    work->cubin = read_file(path, &work->size);
  snprintf(command, sizeof command, "rm -r '%s'", directory);
  return system(command) != 0 || work->cubin == NULL;
}

EXPORT int nvrtcCreateProgram(struct Work **program, const char *text, const char *name, int count, const void *headers,
                              const void *names) {
  (void)name, (void)count, (void)headers, (void)names;
  *program = calloc(1, sizeof **program);
  (*program)->text = strdup(text);
  return 0;
}
EXPORT int nvrtcCompileProgram(struct Work *program, int count, const char *const *options) {
  note(count, options);
  return assemble(program);
}
EXPORT int nvrtcGetCUBINSize(struct Work *program, size_t *size) { return *size = program->size, 0; }
EXPORT int nvrtcGetCUBIN(struct Work *program, char *cubin) { return memcpy(cubin, program->cubin, program->size), 0; }
EXPORT int nvrtcGetPTXSize(struct Work *program, size_t *size) { return *size = strlen(program->text) + 1, 0; }
EXPORT int nvrtcGetPTX(struct Work *program, char *text) { return strcpy(text, program->text), 0; }
EXPORT int nvrtcDestroyProgram(struct Work **program) {
  free((*program)->text);
  free((*program)->cubin);
  free(*program);
  *program = NULL;
  return 0;
}

EXPORT int nvJitLinkCreate(struct Work **link, uint32_t count, const char **options) {
  note((int)count, options);
  *link = calloc(1, sizeof **link);
  for (uint32_t i = 0; i < count; ++i)
    (*link)->is_for_ptx |= strcmp(options[i], "-ptx") == 0;
  return 0;
}
// NVJITLINK_INPUT_PTX and NVJITLINK_INPUT_LTOIR.
EXPORT int nvJitLinkAddData(struct Work *link, int kind, const void *data, size_t size, const char *name) {
  (void)name;
  if (kind != 2 && kind != 3)
    return 1;
  link->text = strndup(data, size);
  return 0;
}
EXPORT int nvJitLinkAddFile(struct Work *link, int kind, const char *path) {
  (void)link, (void)kind, (void)path;
  return 0;
}
EXPORT int nvJitLinkComplete(struct Work *link) { return link->is_for_ptx ? 0 : assemble(link); }
EXPORT int nvJitLinkGetLinkedCubinSize(struct Work *link, size_t *size) { return *size = link->size, 0; }
EXPORT int nvJitLinkGetLinkedCubin(struct Work *link, char *cubin) { return memcpy(cubin, link->cubin, link->size), 0; }
EXPORT int nvJitLinkGetLinkedPtxSize(struct Work *link, size_t *size) {
  return link->is_for_ptx ? (*size = strlen(link->text) + 1, 0) : 1;
}
EXPORT int nvJitLinkGetLinkedPtx(struct Work *link, char *text) { return strcpy(text, link->text), 0; }
EXPORT int nvJitLinkDestroy(struct Work **link) { return nvrtcDestroyProgram(link); }
