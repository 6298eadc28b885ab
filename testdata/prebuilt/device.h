// Calls of HIP and of its libraries that have to succeed, and memory of the GPU.
#pragma once
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                                    \
    do {                                                                               \
        int status = (int)(call);                                                      \
        if (status != 0) {                                                             \
            std::printf("%s:%d: %s: %d\n", __FILE__, __LINE__, #call, status);         \
            std::exit(1);                                                              \
        }                                                                              \
    } while (0)

template <class T> static T *on_device(const std::vector<T> &values) {
    T *place;
    CHECK(hipMalloc(&place, values.size() * sizeof(T)));
    CHECK(hipMemcpy(place, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice));
    return place;
}
