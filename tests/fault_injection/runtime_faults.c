/* Preloaded into a program under librocov: makes librocov's calls of HSA functions fail.
 *
 * librocov finds the functions with dlsym in ROCr's own handle, and this library interposes dlsym. The
 * calls of the program and of HIP still go to ROCr. The environment selects the faults:
 *
 *   ROCOV_TEST_FAULT=FUNCTION:NUMBER:WHAT[,...]   the call of this number, from 0, or each for `*`
 *     WHAT a number   the function is not called and returns it as its status
 *     WHAT `hang`     the function is not called and returns success: a copy that never ends
 *     WHAT `late`     like `hang`, but the copy comes after the program has unloaded something
 *     WHAT `fail`     like `hang`, but the copy's signal reports an error
 *     WHAT `null`     the callback gets a null handle first
 *     WHAT `missing`  dlsym does not find the function
 *   ROCOV_TEST_FAULT_CALLS=FILE   gets a line for each function, with its name and number of calls,
 *                                 one for each fault, with its text and number of strikes, and
 *                                 the lines `unloaded`, the number of unload requests to ROCr, and
 *                                 `freed`, the number of late copies whose source was already freed
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint32_t status_t;
/* Eight integers or pointers: a function ignores arguments beyond its own. A caller that expects a status
 * reads the lower half of the result. */
typedef long (*function_t)(long, long, long, long, long, long, long, long);

#define FUNCTIONS(X)                                                                               \
  X(hsa_iterate_agents)                                                                            \
  X(hsa_agent_get_info)                                                                            \
  X(hsa_isa_get_info_alt)                                                                          \
  X(hsa_executable_get_symbol_by_name)                                                             \
  X(hsa_executable_symbol_get_info)                                                                \
  X(hsa_memory_copy)                                                                               \
  X(hsa_amd_agent_iterate_memory_pools)                                                            \
  X(hsa_amd_memory_pool_get_info)                                                                  \
  X(hsa_amd_agent_memory_pool_get_info)                                                            \
  X(hsa_amd_pointer_info)                                                                          \
  X(hsa_amd_memory_async_copy)                                                                     \
  X(hsa_amd_memory_lock)                                                                           \
  X(hsa_amd_memory_unlock)                                                                         \
  X(hsa_amd_signal_async_handler)                                                                  \
  X(hsa_signal_create)                                                                             \
  X(hsa_signal_destroy)                                                                            \
  X(hsa_signal_load_scacquire)                                                                     \
  X(hsa_signal_store_screlease)                                                                    \
  X(hsa_signal_wait_scacquire)                                                                     \
  X(hsa_queue_load_read_index_scacquire)                                                           \
  X(hsa_queue_load_write_index_scacquire)                                                          \
  X(hsa_queue_cas_write_index_scacq_screl)                                                         \
  X(hsa_system_get_info)                                                                           \
  X(hsa_system_get_major_extension_table)                                                          \
  X(iterate_executables)                                                                           \
  X(iterate_loaded_code_objects)                                                                   \
  X(loaded_code_object_get_info)                                                                   \
  X(query_host_address)

enum {
#define X(name) NUMBER_##name,
  FUNCTIONS(X)
#undef X
  COUNT
};

static const char *const names[COUNT] = {
#define X(name) #name,
    FUNCTIONS(X)
#undef X
};
static function_t real[COUNT];
static long calls[COUNT];

enum { MOST = 4 };

static struct fault {
  char text[128];
  int function;
  long number; /* -1: each */
  status_t status;
  int hangs, is_late, fails, null_handle, is_missing;
  long struck;
} faults[MOST];
static int fault_count;

typedef status_t (*callback_t)(long, long, long);

static void strike(struct fault *fault) {
  __atomic_fetch_add(&fault->struck, 1, __ATOMIC_SEQ_CST);
}

/* The fault of this call, or NULL. */
static const struct fault *fault_of(int function) {
  const long number = __atomic_fetch_add(&calls[function], 1, __ATOMIC_SEQ_CST);
  for (struct fault *fault = faults; fault < faults + fault_count; fault++) {
    if (function == fault->function && (fault->number < 0 || fault->number == number)) {
      strike(fault);
      return fault;
    }
  }
  return NULL;
}

/* Late copies: the arguments of hsa_amd_memory_async_copy. */
static long late[MOST][8];
static int late_count;
static long unloaded, freed;

static void remember_copy(long a, long b, long c, long d, long e, long f, long g, long h) {
  if (late_count < MOST) {
    const long arguments[8] = {a, b, c, d, e, f, g, h};
    memcpy(late[late_count++], arguments, sizeof arguments);
  }
}

/* The head of an hsa_amd_pointer_info_t, and room for the rest. */
struct pointer_info {
  uint32_t size, type;
  char rest[120];
};

/* After an unload request to ROCr: runs the late copies. */
static void copy_late(void) {
  unloaded++;
  while (late_count > 0) {
    const long *copy = late[--late_count];
    struct pointer_info source = {.size = sizeof source};
    real[NUMBER_hsa_amd_pointer_info](copy[2], (long)&source, 0, 0, 0, 0, 0, 0);
    if (source.type != 1) { /* not ROCr's memory */
      freed++;
      continue;
    }
    const long signal = copy[7];
    const long before =
        real[NUMBER_hsa_signal_load_scacquire](signal, 0, 0, 0, 0, 0, 0, 0);
    real[NUMBER_hsa_amd_memory_async_copy](copy[0], copy[1], copy[2], copy[3], copy[4], copy[5],
                                           copy[6], signal);
    real[NUMBER_hsa_signal_wait_scacquire](signal, 2 /* less */, before, -1, 0, 0, 0, 0);
  }
}

typedef status_t (*destroy_t)(uint64_t);
typedef status_t (*shut_down_t)(void);

static void *real_dlsym(void *handle, const char *name) {
  static void *(*next)(void *, const char *);
  if (!next) {
    next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
  }
  return next(handle, name);
}

static status_t destroy_executable(uint64_t executable) {
  const status_t status = ((destroy_t)real_dlsym(RTLD_NEXT, "hsa_executable_destroy"))(executable);
  copy_late();
  return status;
}

/* The release of the last reference unloads everything. */
static status_t shut_down(void) {
  unloaded++;
  freed += late_count;
  late_count = 0;
  return ((shut_down_t)real_dlsym(RTLD_NEXT, "hsa_shut_down"))();
}

static long call(int function, long a, long b, long c, long d, long e, long f, long g, long h) {
  const struct fault *fault = fault_of(function);
  if (fault) {
    if (fault->fails) {
      /* The last argument of a copy. */
      real[NUMBER_hsa_signal_store_screlease](h, -1, 0, 0, 0, 0, 0, 0);
    }
    if (fault->is_late) {
      remember_copy(a, b, c, d, e, f, g, h);
    }
    if (fault->hangs || fault->is_late || fault->fails) {
      return 0;
    }
    if (!fault->null_handle) {
      return fault->status;
    }
    if (function == NUMBER_iterate_loaded_code_objects) {
      ((callback_t)b)(a, 0, c);
    } else {
      ((callback_t)a)(0, b, 0);
    }
  }
  return real[function](a, b, c, d, e, f, g, h);
}

#define X(name)                                                                                    \
  static long wrapped_##name(long a, long b, long c, long d, long e, long f, long g, long h) {     \
    return call(NUMBER_##name, a, b, c, d, e, f, g, h);                                            \
  }
FUNCTIONS(X)
#undef X

static const function_t wrapped[COUNT] = {
#define X(name) wrapped_##name,
    FUNCTIONS(X)
#undef X
};

static void wrap(int function, void **slot) {
  if (*slot && *slot != (void *)wrapped[function]) {
    real[function] = (function_t)*slot;
    *slot = (void *)wrapped[function];
  }
}

/* The loader's functions come in a table: hsa_ven_amd_loader_1_03_pfn_t. */
static long with_table(long extension, long version, long size, long table, long e, long f,
                       long g, long h) {
  const status_t status = (status_t)
      wrapped_hsa_system_get_major_extension_table(extension, version, size, table, e, f, g, h);
  void **functions = (void **)table;
  if (status == 0 && extension == 0x201 && size >= 56) {
    wrap(NUMBER_query_host_address, &functions[0]);
    wrap(NUMBER_iterate_loaded_code_objects, &functions[3]);
    wrap(NUMBER_loaded_code_object_get_info, &functions[4]);
    wrap(NUMBER_iterate_executables, &functions[6]);
  }
  return status;
}

void *dlsym(void *handle, const char *name) {
  /* librocov passes the program's calls on to the next library in the search order. */
  if (handle == RTLD_NEXT && strcmp(name, "hsa_executable_destroy") == 0) {
    return (void *)destroy_executable;
  }
  if (handle == RTLD_NEXT && strcmp(name, "hsa_shut_down") == 0) {
    return (void *)shut_down;
  }
  void *found = real_dlsym(handle, name);
  if (!found || handle == RTLD_NEXT || handle == RTLD_DEFAULT) {
    return found;
  }
  for (int function = 0; function < NUMBER_iterate_executables; function++) {
    if (strcmp(name, names[function]) == 0) {
      for (struct fault *fault = faults; fault < faults + fault_count; fault++) {
        if (function == fault->function && fault->is_missing) {
          strike(fault);
          return real_dlsym(handle, "no such function");
        }
      }
      wrap(function, &found);
      return function == NUMBER_hsa_system_get_major_extension_table ? (void *)with_table : found;
    }
  }
  return found;
}

static void give_up(const char *why, const char *text) {
  fprintf(stderr, "runtime_faults: %s: %s\n", why, text);
  abort();
}

static void add_fault(const char *text) {
  char name[64], number[16], what[16];
  if (fault_count == MOST || strlen(text) >= sizeof faults->text ||
      sscanf(text, "%63[^:]:%15[^:]:%15s", name, number, what) != 3) {
    give_up("not a fault, or one too many", text);
  }
  struct fault *fault = &faults[fault_count];
  strcpy(fault->text, text);
  fault->function = -1;
  for (int function = 0; function < COUNT; function++) {
    if (strcmp(name, names[function]) == 0) {
      fault->function = function;
    }
  }
  if (fault->function < 0) {
    give_up("no such function", text);
  }
  fault->number = strcmp(number, "*") == 0 ? -1 : strtol(number, NULL, 0);
  fault->hangs = strcmp(what, "hang") == 0;
  fault->is_late = strcmp(what, "late") == 0;
  fault->fails = strcmp(what, "fail") == 0;
  fault->null_handle = strcmp(what, "null") == 0;
  fault->is_missing = strcmp(what, "missing") == 0;
  fault->status = (status_t)strtoul(what, NULL, 0);
  if (!fault->status && !fault->hangs && !fault->is_late && !fault->fails &&
      !fault->null_handle && !fault->is_missing) {
    give_up("nothing that goes wrong", text);
  }
  fault_count++;
}

__attribute__((constructor)) static void read_faults(void) {
  const char *text = getenv("ROCOV_TEST_FAULT");
  char *list = strdup(text ? text : ""), *rest = NULL;
  for (char *one = strtok_r(list, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
    add_fault(one);
  }
  free(list);
}

/* Runs after librocov's last drain: that is in an exit handler, and destructors run later. */
__attribute__((destructor)) static void write_calls(void) {
  const char *path = getenv("ROCOV_TEST_FAULT_CALLS");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (!file) {
    return;
  }
  for (int function = 0; function < COUNT; function++) {
    fprintf(file, "%s %ld\n", names[function], calls[function]);
  }
  for (int fault = 0; fault < fault_count; fault++) {
    fprintf(file, "%s %ld\n", faults[fault].text, faults[fault].struck);
  }
  fprintf(file, "unloaded %ld\nfreed %ld\n", unloaded, freed);
  fclose(file);
}
