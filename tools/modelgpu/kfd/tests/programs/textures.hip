// Textures and surfaces: of linear memory, of rows with a pitch, of arrays in one to three dimensions and of
// layers, with both filters. Each is compared with the numbers that it holds.
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

__global__ void read_line(hipTextureObject_t texture, float *out) {
  out[threadIdx.x] = tex1D<float>(texture, threadIdx.x + 0.5f);
}

__global__ void read_layers(hipTextureObject_t texture, float *out) {
  int x = threadIdx.x, y = threadIdx.y;
  for (int z = 0; z < depth; z++)
    out[(z * height + y) * width + x] = tex2DLayered<float>(texture, x + 0.5f, y + 0.5f, z);
}

// The second byte, as a part of 1, between a texel and the next one.
__global__ void read_bytes(hipTextureObject_t texture, float *out) {
  int x = threadIdx.x, y = threadIdx.y;
  out[y * width + x] = tex2D<float4>(texture, x + 1.0f, y + 0.5f).y;
}

// CDNA has no levels.
__global__ void read_level(hipTextureObject_t texture, float *out) {
#ifndef __GFX9__
  int x = threadIdx.x, y = threadIdx.y;
  float2 step = make_float2(0.5f, 0.25f);
  float of_level = tex2DLod<float>(texture, x + 0.5f, y + 0.5f, 0);
  out[y * width + x] = (of_level + tex2DGrad<float>(texture, x + 0.5f, y + 0.5f, step, step)) / 2;
#endif
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
                                  hipTextureFilterMode filter, bool normalized,
                                  hipTextureReadMode reads = hipReadModeElementType) {
  hipTextureDesc description;
  memset(&description, 0, sizeof description);
  description.addressMode[0] = description.addressMode[1] = description.addressMode[2] = mode;
  description.filterMode = filter;
  description.normalizedCoords = normalized;
  description.readMode = reads;
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

  hipDeviceProp_t device;
  CHECK_HIP(hipGetDeviceProperties(&device, 0));
  if (strncmp(device.gcnArchName, "gfx9", 4) != 0) {
    read_level<<<1, texels>>>(plain(resource), out);
    CHECK(result(out, plane) == first);
  }

  hipSurfaceObject_t surface;
  CHECK_HIP(hipCreateSurfaceObject(&surface, &resource));
  change<<<1, texels>>>(surface);
  CHECK_HIP(hipDeviceSynchronize());
  std::vector<float> changed(plane);
  CHECK_HIP(hipMemcpy2DFromArray(changed.data(), row, array, 0, 0, row, height,
                                 hipMemcpyDeviceToHost));
  for (int i = 0; i < plane; i++) CHECK(changed[i] == first[i] * 2 + 1);

  hipArray_t line;
  CHECK_HIP(hipMallocArray(&line, &floats, width, 0, 0));
  CHECK_HIP(hipMemcpy2DToArray(line, 0, 0, values.data(), row, row, 1, hipMemcpyHostToDevice));
  resource.res.array.array = line;
  read_line<<<1, width>>>(plain(resource), out);
  CHECK(result(out, width) == std::vector<float>(values.begin(), values.begin() + width));

  hipArray_t bytes;
  const hipChannelFormatDesc four = hipCreateChannelDesc(8, 8, 8, 8, hipChannelFormatKindUnsigned);
  std::vector<uchar4> colours(plane);
  for (int i = 0; i < plane; i++) colours[i] = make_uchar4(1, i, 2, 3);
  const size_t colour_row = width * sizeof(uchar4);
  CHECK_HIP(hipMallocArray(&bytes, &four, width, height, 0));
  CHECK_HIP(hipMemcpy2DToArray(bytes, 0, 0, colours.data(), colour_row, colour_row, height,
                               hipMemcpyHostToDevice));
  resource.res.array.array = bytes;
  read_bytes<<<1, texels>>>(object(resource, hipAddressModeClamp, hipFilterModeLinear, false,
                                   hipReadModeNormalizedFloat),
                            out);
  between = result(out, plane);
  for (int i = 0; i < plane; i++) {
    float middle = i % width + 1 < width ? i + 0.5f : i;
    CHECK(std::fabs(between[i] - middle / 255) < 1e-6f);
  }

  const hipExtent extent = make_hipExtent(width, height, depth);
  hipMemcpy3DParms copy;
  memset(&copy, 0, sizeof copy);
  copy.srcPtr = make_hipPitchedPtr(values.data(), row, width, height);
  copy.extent = extent;
  copy.kind = hipMemcpyHostToDevice;
  for (unsigned flags : {hipArrayDefault, hipArrayLayered}) {
    CHECK_HIP(hipMalloc3DArray(&copy.dstArray, &floats, extent, flags));
    CHECK_HIP(hipMemcpy3D(&copy));
    resource.res.array.array = copy.dstArray;
    auto read = flags == hipArrayLayered ? read_layers : read_volume;
    read<<<1, texels>>>(plain(resource), out);
    CHECK(result(out, count) == values);
  }
  return finish();
}

#endif
