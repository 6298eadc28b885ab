// Textures and surfaces: of linear memory, of rows with a pitch, of arrays in two and three
// dimensions, with both filters. Each is compared with the numbers that it holds.
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "check.h"

__global__ void nothing() {}

// gfx942 has no images.
#ifndef __gfx942__

constexpr int width = 16, height = 8, depth = 5;

__global__ void fetch(hipTextureObject_t texture, float *out) {
  out[threadIdx.x] = tex1Dfetch<float>(texture, threadIdx.x);
}

__global__ void read_plane(hipTextureObject_t texture, float *out) {
  int x = threadIdx.x, y = threadIdx.y;
  out[y * width + x] = tex2D<float>(texture, x + 0.5f, y + 0.5f);
}

// Between each two texels of a row, from the last to the first too.
__global__ void read_between(hipTextureObject_t texture, float *out) {
  int x = threadIdx.x, y = threadIdx.y;
  out[y * width + x] = tex2D<float>(texture, (x + 1.0f) / width, (y + 0.5f) / height);
}

__global__ void read_volume(hipTextureObject_t texture, float *out) {
  int x = threadIdx.x, y = threadIdx.y;
  for (int z = 0; z < depth; z++)
    out[(z * height + y) * width + x] = tex3D<float>(texture, x + 0.5f, y + 0.5f, z + 0.5f);
}

__global__ void change(hipSurfaceObject_t surface) {
  int x = threadIdx.x, y = threadIdx.y;
  float value;
  surf2Dread(&value, surface, x * sizeof(float), y);
  surf2Dwrite(value * 2 + 1, surface, x * sizeof(float), y);
}

static const hipChannelFormatDesc floats =
    hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindFloat);

static hipTextureObject_t object(const hipResourceDesc &resource, hipTextureAddressMode mode,
                                  hipTextureFilterMode filter, bool normalized) {
  hipTextureDesc description;
  memset(&description, 0, sizeof description);
  description.addressMode[0] = description.addressMode[1] = description.addressMode[2] = mode;
  description.filterMode = filter;
  description.normalizedCoords = normalized;
  hipTextureObject_t created;
  CHECK_HIP(hipCreateTextureObject(&created, &resource, &description, nullptr));
  return created;
}

static hipTextureObject_t plain(const hipResourceDesc &resource) {
  return object(resource, hipAddressModeClamp, hipFilterModePoint, false);
}

static std::vector<float> result(const float *device, int count) {
  std::vector<float> values(count);
  CHECK_HIP(hipDeviceSynchronize());
  CHECK_HIP(hipMemcpy(values.data(), device, count * sizeof(float), hipMemcpyDeviceToHost));
  return values;
}

int main() {
  const int plane = width * height, count = plane * depth;
  const size_t row = width * sizeof(float);
  std::vector<float> values(count);
  for (int i = 0; i < count; i++) values[i] = i * 1.5f;
  std::vector<float> first(values.begin(), values.begin() + plane);
  float *out;
  CHECK_HIP(hipMalloc(&out, count * sizeof(float)));
  const dim3 texels(width, height);
  hipResourceDesc resource;

  float *linear;
  CHECK_HIP(hipMalloc(&linear, count * sizeof(float)));
  CHECK_HIP(hipMemcpy(linear, values.data(), count * sizeof(float), hipMemcpyHostToDevice));
  memset(&resource, 0, sizeof resource);
  resource.resType = hipResourceTypeLinear;
  resource.res.linear.devPtr = linear;
  resource.res.linear.desc = floats;
  resource.res.linear.sizeInBytes = plane * sizeof(float);
  fetch<<<1, plane>>>(plain(resource), out);
  CHECK(result(out, plane) == first);

  float *rows;
  size_t pitch;
  CHECK_HIP(hipMallocPitch(reinterpret_cast<void **>(&rows), &pitch, row, height));
  CHECK_HIP(hipMemcpy2D(rows, pitch, values.data(), row, row, height, hipMemcpyHostToDevice));
  memset(&resource, 0, sizeof resource);
  resource.resType = hipResourceTypePitch2D;
  resource.res.pitch2D.devPtr = rows;
  resource.res.pitch2D.desc = floats;
  resource.res.pitch2D.width = width;
  resource.res.pitch2D.height = height;
  resource.res.pitch2D.pitchInBytes = pitch;
  read_plane<<<1, texels>>>(plain(resource), out);
  CHECK(result(out, plane) == first);

  hipArray_t array;
  CHECK_HIP(hipMallocArray(&array, &floats, width, height, 0));
  CHECK_HIP(hipMemcpy2DToArray(array, 0, 0, values.data(), row, row, height, hipMemcpyHostToDevice));
  memset(&resource, 0, sizeof resource);
  resource.resType = hipResourceTypeArray;
  resource.res.array.array = array;
  read_plane<<<1, texels>>>(plain(resource), out);
  CHECK(result(out, plane) == first);
  read_between<<<1, texels>>>(object(resource, hipAddressModeWrap, hipFilterModeLinear, true), out);
  std::vector<float> between = result(out, plane);
  for (int i = 0; i < plane; i++) {
    float next = first[i / width * width + (i + 1) % width];
    CHECK(std::fabs(between[i] - (first[i] + next) / 2) < 1e-3f);
  }

  hipSurfaceObject_t surface;
  CHECK_HIP(hipCreateSurfaceObject(&surface, &resource));
  change<<<1, texels>>>(surface);
  CHECK_HIP(hipDeviceSynchronize());
  std::vector<float> changed(plane);
  CHECK_HIP(hipMemcpy2DFromArray(changed.data(), row, array, 0, 0, row, height,
                                 hipMemcpyDeviceToHost));
  for (int i = 0; i < plane; i++) CHECK(changed[i] == first[i] * 2 + 1);

  hipArray_t volume;
  const hipExtent extent = make_hipExtent(width, height, depth);
  CHECK_HIP(hipMalloc3DArray(&volume, &floats, extent, 0));
  hipMemcpy3DParms copy;
  memset(&copy, 0, sizeof copy);
  copy.srcPtr = make_hipPitchedPtr(values.data(), row, width, height);
  copy.dstArray = volume;
  copy.extent = extent;
  copy.kind = hipMemcpyHostToDevice;
  CHECK_HIP(hipMemcpy3D(&copy));
  resource.res.array.array = volume;
  read_volume<<<1, texels>>>(plain(resource), out);
  CHECK(result(out, count) == values);
  return finish();
}

#endif
