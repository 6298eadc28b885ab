// Loads a code object with HSA only and launches its kernel `count` once on each GPU.
//
//   hsa_only CODE_OBJECT memory|unmapped|file [keep|again]
//   hsa_only CODE_OBJECT reused OTHER
//
// memory    the reader's buffer stays as it is
// unmapped  reader and buffer are gone between the load and the freeze
// reused    like `unmapped`, with the code object OTHER, no larger, at the buffer's place
// file      a file reader, closed after the load
//
// `keep` does not destroy the executables. `again` repeats everything eight times. The program
// prints the address of the bounds table each time, and the kernel object after the word `kernel`.
#include "count.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct storage {
  int file;
  void *bytes;
  size_t size;
};

static struct storage open_file(const char *path) {
  struct storage storage = {open(path, O_RDONLY), NULL, 0};
  struct stat status = {0};
  CHECK(storage.file >= 0 && fstat(storage.file, &status) == 0);
  storage.size = (size_t)status.st_size;
  return storage;
}

// Reads the file, because a mapping of the file would tell the loader its name.
static void read_file(struct storage *storage) {
  storage->bytes =
      mmap(NULL, storage->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(pread(storage->file, storage->bytes, storage->size, 0) == (ssize_t)storage->size);
}

static hsa_executable_t load_from(const char *path, const char *how, const char *instead,
                                  hsa_agent_t gpu) {
  hsa_executable_t executable = {0};
  hsa_code_object_reader_t reader;
  struct storage storage = open_file(path);
  CHECK_HSA(hsa_executable_create_alt(HSA_PROFILE_BASE, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                                      NULL, &executable));
  if (!strcmp(how, "file")) {
    CHECK_HSA(hsa_code_object_reader_create_from_file(storage.file, &reader));
  } else {
    read_file(&storage);
    CHECK_HSA(hsa_code_object_reader_create_from_memory(storage.bytes, storage.size, &reader));
  }
  CHECK_HSA(hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL));
  CHECK_HSA(hsa_code_object_reader_destroy(reader));
  if (!strcmp(how, "unmapped"))
    CHECK(munmap(storage.bytes, storage.size) == 0);
  if (!strcmp(how, "reused")) {
    struct storage other = open_file(instead);
    memset(storage.bytes, 0, storage.size);
    CHECK(pread(other.file, storage.bytes, storage.size, 0) == (ssize_t)other.size);
    CHECK(close(other.file) == 0);
  }
  CHECK(close(storage.file) == 0);
  CHECK_HSA(hsa_executable_freeze(executable, NULL));
  return executable;
}

static void run(int gpu, hsa_executable_t executable) {
  hsa_queue_t *queue = new_queue(gpus[gpu]);
  struct count_arguments *arguments = new_arguments(gpu);
  printf("%#lx\n", address_of(executable, "__llvm_profile_sections", gpus[gpu]));
  uint64_t kernel = count_kernel(executable, gpu);
  printf("kernel %#lx\n", kernel);
  count(queue, kernel, arguments);
  CHECK_HSA(hsa_queue_destroy(queue));
  free_arguments(arguments);
}

int main(int argc, char **argv) {
  if (argc < 3)
    return 2;
  int keep = argc > 3 && !strcmp(argv[3], "keep");
  int times = argc > 3 && !strcmp(argv[3], "again") ? 8 : 1;
  start();
  for (int time = 0; time < times; time++) {
    for (int gpu = 0; gpu < gpu_count; gpu++) {
      hsa_executable_t executable = load_from(argv[1], argv[2], argv[3], gpus[gpu]);
      if (failures)
        return finish();
      run(gpu, executable);
      if (!keep)
        CHECK_HSA(hsa_executable_destroy(executable));
    }
  }
  if (!keep)
    CHECK_HSA(hsa_shut_down());
  return finish();
}
