// The stand-in for CUPTI: see stand_in.h. STAND_IN_CUPTI=taken answers as if another tool had subscribed, and broken as
// if it did not fit the driver. It is compiled once more as an older one, without a function.
#include "stand_in.h"

#include <stdlib.h>
#include <string.h>

int cuptiSubscribe(void **subscriber, Callback callback, void *user) {
  (void)user;
  const char *answer = getenv("STAND_IN_CUPTI");
  if (answer != NULL && strcmp(answer, "taken") == 0)
    return 39;
  if (answer != NULL && strcmp(answer, "broken") == 0)
    return 999;
  *subscriber = &stand_in_callback;
  stand_in_callback = callback;
  return 0;
}

int cuptiEnableCallback(uint32_t enable, void *subscriber, int domain, uint32_t id) {
  (void)subscriber;
  stand_in_enabled[domain][id] = enable != 0;
  return 0;
}

#ifdef OLDER
#define cuptiGetDeviceId cuptiGetDevice
#endif
int cuptiGetDeviceId(const void *context, uint32_t *device) {
  *device = (uint32_t)stand_in_device_of(context);
  return 0;
}

int cuptiGetResultString(int result, const char **text) {
  *text = result == 0 ? "CUPTI_SUCCESS" : "CUPTI_ERROR_UNKNOWN";
  return 0;
}
