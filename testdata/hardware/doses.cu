// A module of driver.cpp. The program changes the number, so that each load is of other code.
#include "doses.h"

extern "C" __device__ unsigned serial[4] = {0x5eed5eed, 0x0ddba115, 0x0ddba115, 0x5eed5eed};
