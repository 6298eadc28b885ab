// Queues and signals through HSA: order, barriers, completion, destruction of a busy queue.
// Arguments: the code object of kernels.hip for each GPU.
#include "hsa_check.h"

struct add_arguments {
  int *values;
  int count;
};

struct chain_arguments {
  unsigned *value;
  unsigned factor;
};

static const hsa_signal_t NO_SIGNAL = {0};

static void results(int gpu, hsa_queue_t *queue, hsa_executable_t executable) {
  enum { COUNT = 1000 };
  int values[COUNT];
  int *device = allocate_device(gpu, sizeof values);
  struct add_arguments *arguments = allocate_arguments(sizeof *arguments);
  hsa_signal_t done = new_signal(1);
  for (int i = 0; i < COUNT; i++) values[i] = i;
  CHECK_HSA(hsa_memory_copy(device, values, sizeof values));
  *arguments = (struct add_arguments){device, COUNT - 3};
  // A partial workgroup at the end: 1000 is no multiple of 64.
  launch(queue, address_of(executable, "add_step.kd", gpus[gpu]), arguments, COUNT, 64, done);
  wait_done(done);
  CHECK_HSA(hsa_memory_copy(values, device, sizeof values));
  for (int i = 0; i < COUNT; i++) CHECK(values[i] == (i < COUNT - 3 ? i + 5 : i));
  CHECK_HSA(hsa_signal_destroy(done));
  CHECK_HSA(hsa_amd_memory_pool_free(device));
  CHECK_HSA(hsa_amd_memory_pool_free(arguments));
}

// Many more packets than the ring holds: each depends on the one before.
static void order(int gpu, hsa_queue_t *queue, hsa_executable_t executable) {
  enum { LAUNCHES = 5000, VARIANTS = 4 };
  unsigned expected = 1, value = 1;
  unsigned *device = allocate_device(gpu, 4);
  struct chain_arguments *arguments = allocate_arguments(VARIANTS * sizeof *arguments);
  uint64_t kernel = address_of(executable, "chain.kd", gpus[gpu]);
  hsa_signal_t done = new_signal(1);
  CHECK_HSA(hsa_memory_copy(device, &value, 4));
  for (unsigned i = 0; i < VARIANTS; i++) arguments[i] = (struct chain_arguments){device, i + 2};
  for (int i = 0; i < LAUNCHES; i++) {
    expected = expected * (unsigned)(i % VARIANTS + 2) + 1;
    launch(queue, kernel, arguments + i % VARIANTS, 1, 1, i + 1 == LAUNCHES ? done : NO_SIGNAL);
  }
  wait_done(done);
  CHECK_HSA(hsa_memory_copy(&value, device, 4));
  CHECK(value == expected);
  CHECK_HSA(hsa_signal_destroy(done));
  CHECK_HSA(hsa_amd_memory_pool_free(device));
  CHECK_HSA(hsa_amd_memory_pool_free(arguments));
}

static void submit_barrier(hsa_queue_t *queue, int type, hsa_signal_t first, hsa_signal_t second,
                           hsa_signal_t done) {
  hsa_barrier_and_packet_t packet = {0};
  packet.dep_signal[0] = first;
  packet.dep_signal[3] = second;
  packet.completion_signal = done;
  submit(queue, &packet, (uint16_t)(type | 1 << HSA_PACKET_HEADER_BARRIER));
}

// Returns whether the signal keeps its value for a while.
static int holds(hsa_signal_t signal, hsa_signal_value_t value) {
  return hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_NE, value, 20000000,
                                   HSA_WAIT_STATE_ACTIVE) == value;
}

static void barriers(hsa_queue_t *queue) {
  hsa_signal_t one = new_signal(1), two = new_signal(1), done = new_signal(1);
  submit_barrier(queue, HSA_PACKET_TYPE_BARRIER_AND, one, two, done);
  CHECK(holds(done, 1));
  hsa_signal_store_screlease(two, 0);
  CHECK(holds(done, 1));
  hsa_signal_store_screlease(one, 0);
  wait_done(done);

  hsa_signal_store_relaxed(one, 1);
  hsa_signal_store_relaxed(two, 1);
  hsa_signal_store_relaxed(done, 1);
  submit_barrier(queue, HSA_PACKET_TYPE_BARRIER_OR, one, two, done);
  CHECK(holds(done, 1));
  hsa_signal_store_screlease(two, 0);
  wait_done(done);

  // Without dependencies both kinds complete at once.
  hsa_signal_store_relaxed(done, 2);
  submit_barrier(queue, HSA_PACKET_TYPE_BARRIER_AND, NO_SIGNAL, NO_SIGNAL, done);
  submit_barrier(queue, HSA_PACKET_TYPE_BARRIER_OR, NO_SIGNAL, NO_SIGNAL, done);
  wait_done(done);
  CHECK_HSA(hsa_signal_destroy(one));
  CHECK_HSA(hsa_signal_destroy(two));
  CHECK_HSA(hsa_signal_destroy(done));
}

// Two queues run side by side: a kernel in one waits for a kernel in the other.
static void side_by_side(int gpu, hsa_executable_t executable) {
  hsa_queue_t *one = new_queue(gpus[gpu]), *two = new_queue(gpus[gpu]);
  unsigned zero = 0, *flag = allocate_device(gpu, 4);
  unsigned **spin_arguments = allocate_arguments(8);
  struct chain_arguments *arguments = allocate_arguments(sizeof *arguments);
  hsa_signal_t spun = new_signal(1), set = new_signal(1);
  CHECK_HSA(hsa_memory_copy(flag, &zero, 4));
  *spin_arguments = flag;
  *arguments = (struct chain_arguments){flag, 1};
  launch(one, address_of(executable, "spin.kd", gpus[gpu]), spin_arguments, 1, 1, spun);
  CHECK(holds(spun, 1));
  launch(two, address_of(executable, "chain.kd", gpus[gpu]), arguments, 1, 1, set);
  wait_done(set);
  wait_done(spun);
  CHECK_HSA(hsa_signal_destroy(spun));
  CHECK_HSA(hsa_signal_destroy(set));
  CHECK_HSA(hsa_queue_destroy(one));
  CHECK_HSA(hsa_queue_destroy(two));
  CHECK_HSA(hsa_amd_memory_pool_free(spin_arguments));
  CHECK_HSA(hsa_amd_memory_pool_free(arguments));
  CHECK_HSA(hsa_amd_memory_pool_free(flag));
}

// A kernel that never ends must not outlive its queue.
static void destroy_busy(int gpu, hsa_executable_t executable) {
  hsa_queue_t *queue = new_queue(gpus[gpu]);
  unsigned zero = 0, *flag = allocate_device(gpu, 4);
  unsigned **arguments = allocate_arguments(8);
  hsa_signal_t done = new_signal(1);
  CHECK_HSA(hsa_memory_copy(flag, &zero, 4));
  *arguments = flag;
  launch(queue, address_of(executable, "spin.kd", gpus[gpu]), arguments, 1, 1, done);
  CHECK(holds(done, 1));
  CHECK_HSA(hsa_queue_destroy(queue));
  CHECK(hsa_signal_load_scacquire(done) == 1);
  CHECK_HSA(hsa_signal_destroy(done));
}

int main(int argc, char **argv) {
  start();
  printf("gpus: %d\n", gpu_count);
  CHECK(argc == gpu_count + 1);
  for (int gpu = 0; gpu < gpu_count && gpu + 1 < argc; gpu++) {
    hsa_executable_t executable = load(argv[gpu + 1], gpus[gpu]);
    hsa_queue_t *queue = new_queue(gpus[gpu]);
    if (failures) break;
    results(gpu, queue, executable);
    order(gpu, queue, executable);
    barriers(queue);
    side_by_side(gpu, executable);
    destroy_busy(gpu, executable);
    CHECK_HSA(hsa_queue_destroy(queue));
    CHECK_HSA(hsa_executable_destroy(executable));
  }
  CHECK_HSA(hsa_shut_down());
  return finish();
}
