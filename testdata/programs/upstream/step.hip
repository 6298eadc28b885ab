// One kernel, one work-item, one side of its branch. `step collect` requests a drain before the
// program uses the GPU.

#include "check.h"
#include "collect.h"

#include <cstring>

__global__ void step(int *value) {
  if (*value > 0) {
    *value += 1;
  } else {
    *value -= 1;
  }
}

int main(int count, char **arguments) {
  if (count > 1 && std::strcmp(arguments[1], "collect") == 0) {
    if (collect() != 0) {
      return 2;
    }
  }
  int value = 5;
  int *device = on_device(&value, 1);
  step<<<1, 1>>>(device);
  to_host(&value, device, 1);
  return value == 6 ? 0 : 1;
}
