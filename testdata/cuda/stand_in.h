// A stand-in for the CUDA driver and CUPTI, for machines without an NVIDIA GPU. It loads cubins into memory and runs
// nothing: programs plant the counts. It is as strict as driver 580: each variable lies by itself, and a copy must stay
// inside one.
#pragma once
#include <stddef.h>
#include <stdint.h>

// The callback of the subscriber; null without one. libcuda has the variable.
typedef void (*Callback)(void *user, int domain, uint32_t id, const void *data);
extern Callback stand_in_callback;
// Set for each callback of the driver's calls (domain 1) and of resources (domain 3).
extern unsigned char stand_in_enabled[4][1024];
// The number of the GPU of a context.
int stand_in_device_of(const void *context);
