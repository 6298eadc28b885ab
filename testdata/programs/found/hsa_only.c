// Loads a code object through HSA alone and launches its kernel `count` once on each GPU.
//
//   hsa_only CODE_OBJECT memory|unmapped|reused|file [keep]
//
// memory    the reader's buffer stays as it is
// unmapped  reader and buffer are gone between the load and the freeze
// reused    the same, and something else is where the buffer was: the code object in OTHER
// file      a file reader, closed after the load
//
// With `keep` the executables are not destroyed.
#include "hsa_check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GRID = 128, GROUP = 64 };

struct storage {
  int file;
  void *bytes;
  size_t size;
};

static struct storage map(const char *path) {
  struct storage storage = {open(path, O_RDONLY), NULL, 0};
  struct stat status = {0};
  CHECK(storage.file >= 0 && fstat(storage.file, &status) == 0);
  storage.size = (size_t)status.st_size;
  // Not a mapping of the file itself: the loader would find its name.
  storage.bytes = mmap(NULL, storage.size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pread(storage.file, storage.bytes, storage.size, 0) == status.st_size);
  return storage;
}

static hsa_executable_t load_from(const char *path, const char *how, hsa_agent_t gpu) {
  hsa_executable_t executable = {0};
  hsa_code_object_reader_t reader;
  struct storage storage = map(path);
  CHECK_HSA(hsa_executable_create_alt(HSA_PROFILE_BASE, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                                      NULL, &executable));
  if (!strcmp(how, "file"))
    CHECK_HSA(hsa_code_object_reader_create_from_file(storage.file, &reader));
  else
    CHECK_HSA(hsa_code_object_reader_create_from_memory(storage.bytes, storage.size, &reader));
  CHECK_HSA(hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL));
  CHECK_HSA(hsa_code_object_reader_destroy(reader));
  if (!strcmp(how, "unmapped")) CHECK(munmap(storage.bytes, storage.size) == 0);
  if (!strcmp(how, "reused")) {
    struct storage other = map(getenv("OTHER"));
    memset(storage.bytes, 0, storage.size);
    memcpy(storage.bytes, other.bytes, other.size < storage.size ? other.size : storage.size);
  }
  if (!strcmp(how, "file")) CHECK(munmap(storage.bytes, storage.size) == 0);
  CHECK(close(storage.file) == 0);
  CHECK_HSA(hsa_executable_freeze(executable, NULL));
  return executable;
}

int main(int argc, char **argv) {
  hsa_executable_t executables[MAX_GPUS];
  if (argc < 3) return 2;
  start();
  for (int gpu = 0; gpu < gpu_count; gpu++) {
    executables[gpu] = load_from(argv[1], argv[2], gpus[gpu]);
    if (failures) return finish();
    hsa_queue_t *queue = new_queue(gpus[gpu]);
    hsa_signal_t done = new_signal(1);
    void **arguments = allocate_arguments(sizeof *arguments);
    *arguments = allocate_device(gpu, GRID * sizeof(unsigned));
    launch(queue, address_of(executables[gpu], "_Z5countPj.kd", gpus[gpu]), arguments, GRID, GROUP,
           done);
    wait_done(done);
    CHECK_HSA(hsa_queue_destroy(queue));
  }
  if (argc < 4 || strcmp(argv[3], "keep")) {
    for (int gpu = 0; gpu < gpu_count; gpu++) CHECK_HSA(hsa_executable_destroy(executables[gpu]));
    CHECK_HSA(hsa_shut_down());
  }
  return finish();
}
