// Plants counts between ranges and marks of NVTX, with its own headers: the counter grows by a power of two at a time.
// The argument is a cubin.
#include <nvtx3/nvToolsExt.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct Context Context;
typedef struct Module Module;
int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(Context **, int);
int cuCtxSetCurrent(Context *);
int cuModuleLoad(Module **, const char *);
int cuModuleGetGlobal_v2(uint64_t *, size_t *, Module *, const char *);
int cuMemcpyHtoD_v2(uint64_t, const void *, size_t);

static uint64_t address;

// Adds 1 the first time, 2 the second, and so on.
static void count(void) {
  static uint64_t calls, next = 1;
  calls += next;
  next *= 2;
  cuMemcpyHtoD_v2(address, &calls, sizeof calls);
}

static nvtxEventAttributes_t attributes(void) {
  nvtxEventAttributes_t it;
  memset(&it, 0, sizeof it);
  it.version = NVTX_VERSION;
  it.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  return it;
}

static void *end(void *range) {
  nvtxRangeEnd(*(nvtxRangeId_t *)range);
  return NULL;
}

int main(int argument_count, char **arguments) {
  Context *context;
  Module *module;
  size_t size;
  int error = cuInit(0);
  error |= cuDevicePrimaryCtxRetain(&context, 0);
  error |= cuCtxSetCurrent(context);
  error |= argument_count < 2 ? 1 : cuModuleLoad(&module, arguments[1]);
  error |= cuModuleGetGlobal_v2(&address, &size, module, "__profc__Z6bin_off");
  if (error)
    return 1;

  count();
  nvtxMarkA("start up");
  const int level = nvtxRangePushA("train");
  count();
  nvtxEventAttributes_t event = attributes();
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = "step 1";
  nvtxRangePushEx(&event);
  count();
  nvtxRangePop();

  // Ranges of a domain close in their own order.
  const nvtxDomainHandle_t library = nvtxDomainCreateA("library");
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(library, "sort");
  nvtxDomainRangePushEx(library, &event);
  count();
  nvtxRangePushW(L"w\u00e4rme");
  count();
  nvtxDomainRangePop(library);
  nvtxRangePop();
  count();
  const int end_level = nvtxRangePop();

  // Ranges that start and end anywhere.
  nvtxRangeId_t epoch = nvtxRangeStartA("epoch");
  count();
  const nvtxRangeId_t inner = nvtxRangeStartW(L"inner");
  count();
  pthread_t thread;
  pthread_create(&thread, NULL, end, &epoch);
  pthread_join(thread, NULL);
  count();
  nvtxRangeEnd(inner);
  event.message.registered = nvtxDomainRegisterStringW(library, L"loose");
  const nvtxRangeId_t loose = nvtxDomainRangeStartEx(library, &event);
  count();
  nvtxDomainRangeEnd(library, loose);

  // No label: a message of another size than all, one that is too long, and a handle of nobody.
  event.messageType = NVTX_MESSAGE_UNKNOWN;
  nvtxRangePushEx(&event);
  count();
  nvtxRangePop();
  char text[200] = {0};
  memset(text, 'x', sizeof text - 1);
  nvtxRangePushA(text);
  count();
  nvtxRangePop();
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = (nvtxStringHandle_t)4711;
  nvtxDomainRangePushEx(library, &event);
  count();
  nvtxDomainRangePop(library);
  nvtxDomainDestroy(library);
  printf("levels %d %d\n", level, end_level);
  return 0;
}
