// Threads that load, launch and unload at the same time with HSA only, while others request drains.
//
//   threads CODE_OBJECT ROUNDS [PLANT]
//
// THREADS threads load the code object ROUNDS times each, launch its kernel `count` once, and
// unload it. PLANT is an error for the checking tools to find: a `leak`, an `access` or a `race`.
#include "count.h"

#include <dlfcn.h>
#include <pthread.h>

enum { THREADS = 4 };

static char object[1 << 20];
static size_t object_size;
static int rounds;

static hsa_executable_t load_object(hsa_agent_t gpu) {
  hsa_executable_t executable = {0};
  hsa_code_object_reader_t reader;
  CHECK_HSA(hsa_code_object_reader_create_from_memory(object, object_size, &reader));
  CHECK_HSA(hsa_executable_create_alt(HSA_PROFILE_BASE, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT,
                                      NULL, &executable));
  CHECK_HSA(hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL));
  CHECK_HSA(hsa_executable_freeze(executable, NULL));
  CHECK_HSA(hsa_code_object_reader_destroy(reader));
  return executable;
}

static void *load_and_unload(void *number) {
  int gpu = (int)((intptr_t)number % gpu_count);
  hsa_queue_t *queue = new_queue(gpus[gpu]);
  struct count_arguments *arguments = new_arguments(gpu);
  for (int round = 0; round < rounds; round++) {
    hsa_executable_t executable = load_object(gpus[gpu]);
    count(queue, count_kernel(executable, gpu), arguments);
    CHECK_HSA(hsa_executable_destroy(executable));
  }
  CHECK_HSA(hsa_queue_destroy(queue));
  free_arguments(arguments);
  return NULL;
}

static void *drain(void *unused) {
  int (*drain)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "rocov_drain");
  CHECK(drain != NULL);
  for (int round = 0; drain && round < rounds; round++) {
    CHECK(drain() <= 1);
  }
  return unused;
}

// librocov reads the given name pattern.
static void *set_file(void *pattern) {
  int (*set_file)(const char *) = (int (*)(const char *))dlsym(RTLD_DEFAULT, "rocov_set_file");
  CHECK(set_file != NULL);
  if (set_file)
    set_file(pattern);
  return NULL;
}

static void *lose_memory(void *unused) {
  void *volatile lost = malloc(4321);
  lost = NULL;
  (void)lost;
  return unused;
}

static void plant(const char *what) {
  char *pattern = strdup("planted.profraw");
  void *(*work)(void *) = set_file;
  pthread_t thread;
  if (strcmp(what, "leak") == 0) // on a stack that goes: nothing is left that leads to it
    work = lose_memory;
  else if (strcmp(what, "access") == 0)
    free(pattern);
  else
    CHECK(strcmp(what, "race") == 0);
  CHECK(pthread_create(&thread, NULL, work, pattern) == 0);
  if (strcmp(what, "race") == 0)
    *(volatile char *)pattern = 'P';
  CHECK(pthread_join(thread, NULL) == 0);
  if (strcmp(what, "access") != 0)
    free(pattern);
}

int main(int argc, char **argv) {
  pthread_t threads[THREADS + 2];
  FILE *file = argc > 2 ? fopen(argv[1], "rb") : NULL;
  if (!file)
    return 2;
  object_size = fread(object, 1, sizeof object, file);
  CHECK(object_size > 0 && object_size < sizeof object && fclose(file) == 0);
  rounds = atoi(argv[2]);
  start();
  for (intptr_t number = 0; number < THREADS + 2; number++) {
    void *(*work)(void *) = number < THREADS ? load_and_unload : drain;
    CHECK(pthread_create(&threads[number], NULL, work, (void *)number) == 0);
  }
  for (int number = 0; number < THREADS + 2; number++) {
    CHECK(pthread_join(threads[number], NULL) == 0);
  }
  if (argc > 3)
    plant(argv[3]);
  CHECK_HSA(hsa_shut_down());
  return finish();
}
