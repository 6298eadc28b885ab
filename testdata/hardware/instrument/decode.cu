// A program that works as a language model does which makes one token after the other: many kernels of 5 to 10 microseconds,
// each with a few branches. Prints a checksum, and the microseconds of a token: the least of several rounds.
//
//   decode graph|launches ROUNDS TOKENS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>

static constexpr int WIDTH = 2048, ROWS = 4096, LAYERS = 12, HEADS = 32, HEAD = 64, PAST = 512;

__device__ float sum_of_block(float value) {
  __shared__ float parts[32];
  for (int step = 16; step > 0; step /= 2)
    value += __shfl_down_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0)
    parts[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    value = threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0;
    for (int step = 16; step > 0; step /= 2)
      value += __shfl_down_sync(0xffffffffu, value, step);
  }
  return value;
}

// Each block makes one vector of length one, as a server does with as many requests.
__global__ void normalize(const float *in, float *out, int width) {
  __shared__ float scale;
  const float *from = in + blockIdx.x * width;
  float sum = 0;
  for (int i = threadIdx.x; i < width; i += blockDim.x)
    sum += from[i] * from[i];
  sum = sum_of_block(sum);
  if (threadIdx.x == 0)
    scale = rsqrtf(sum / width + 1e-5f);
  __syncthreads();
  for (int i = threadIdx.x; i < width; i += blockDim.x)
    out[blockIdx.x * width + i] = from[i] * scale;
}

// A warp for each row.
__global__ void multiply(const float4 *weights, const float4 *in, float *out, int rows, int width) {
  int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows)
    return;
  float sum = 0;
  for (int i = lane; i < width / 4; i += 32) {
    float4 a = weights[row * (width / 4) + i], b = in[i];
    sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
  }
  for (int step = 16; step > 0; step /= 2)
    sum += __shfl_down_sync(0xffffffffu, sum, step);
  if (lane == 0)
    out[row] = sum > 6 ? 6 : sum < -6 ? -6 : sum;
}

// A block for each head: the weights of what was before, with a mask.
__global__ void attend(const float *query, const float *keys, float *out, int past, int window) {
  __shared__ float scores[PAST];
  int head = blockIdx.x;
  float largest = -1e30f;
  for (int at = threadIdx.x; at < past; at += blockDim.x) {
    float score = -1e30f;
    if (at + window >= past || at < 4) {
      score = 0;
      for (int i = 0; i < HEAD; i++)
        score += query[head * HEAD + i] * keys[(at * HEAD + i) % (PAST * HEAD)];
    }
    scores[at] = score;
    largest = fmaxf(largest, score);
  }
  __syncthreads();
  float sum = 0;
  for (int at = threadIdx.x; at < past; at += blockDim.x)
    if (scores[at] > -1e29f)
      sum += __expf(scores[at] - 8);
  sum = sum_of_block(sum);
  if (threadIdx.x == 0)
    out[head] = sum > 0 ? largest / sum : 0;
}

__global__ void activate(const float *in, float *out, int length, float scale) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= length)
    return;
  float value = in[i];
  if (value > 0.5f)
    value = value / (1 + __expf(-value));
  else if (value < -0.5f)
    value *= 0.1f;
  out[i] = value * scale;
}

#define CHECK(call)                                                                                                            \
  if (cudaError_t error = (call)) {                                                                                            \
    std::printf("%s: %s\n", #call, cudaGetErrorString(error));                                                                 \
    return 1;                                                                                                                  \
  }

static float *weights, *keys, *x, *normal, *hidden, *heads, *large;

static constexpr int REQUESTS = 512, LENGTH = 1 << 22;

static void token(cudaStream_t stream) {
  for (int layer = 0; layer < LAYERS; layer++) {
    normalize<<<REQUESTS, 256, 0, stream>>>(x, normal, WIDTH);
    multiply<<<ROWS / 8, 256, 0, stream>>>((float4 *)weights, (float4 *)normal, hidden, ROWS, WIDTH);
    attend<<<HEADS, 128, 0, stream>>>(hidden, keys, heads, PAST, 256);
    activate<<<LENGTH / 256, 256, 0, stream>>>(large, large + LENGTH, LENGTH, 1.0f);
  }
}

__global__ void fill(float *out, int length, unsigned seed) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < length; i += gridDim.x * blockDim.x) {
    unsigned bits = (i + seed) * 2654435761u;
    bits ^= bits >> 15;
    out[i] = (bits % 2001) / 1000.0f - 1;
  }
}

__global__ void add_up(const float *in, int length, double *out) {
  double sum = 0;
  for (int i = 0; i < length; i++)
    sum += in[i] * (1 + i % 7);
  *out += sum;
}

int main(int count, char **arguments) {
  if (count != 4)
    return 2;
  bool is_graph = std::strcmp(arguments[1], "graph") == 0;
  int rounds = std::atoi(arguments[2]), tokens = std::atoi(arguments[3]);
  struct { float **pointer; int length; } all[] = {{&weights, ROWS * WIDTH}, {&keys, PAST * HEAD}, {&x, REQUESTS * WIDTH},
    {&normal, REQUESTS * WIDTH}, {&hidden, ROWS}, {&heads, HEADS}, {&large, 2 * LENGTH}};
  unsigned seed = 1;
  for (auto &it : all) {
    CHECK(cudaMalloc(it.pointer, it.length * sizeof(float)));
    fill<<<264, 256>>>(*it.pointer, it.length, seed++);
  }
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  token(stream);
  CHECK(cudaDeviceSynchronize());
  cudaGraph_t graph;
  cudaGraphExec_t launched;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  token(stream);
  CHECK(cudaStreamEndCapture(stream, &graph));
  CHECK(cudaGraphInstantiate(&launched, graph, 0));
  double least = 1e30;
  for (int round = 0; round < rounds; round++) {
    auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < tokens; i++) {
      if (is_graph) {
        CHECK(cudaGraphLaunch(launched, stream));
      } else {
        token(stream);
      }
    }
    CHECK(cudaStreamSynchronize(stream));
    std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
    least = took.count() / tokens < least ? took.count() / tokens : least;
  }
  double *sum, checksum = 0;
  CHECK(cudaMalloc(&sum, sizeof *sum));
  CHECK(cudaMemset(sum, 0, sizeof *sum));
  add_up<<<1, 1>>>(hidden, ROWS, sum);
  add_up<<<1, 1>>>(heads, HEADS, sum);
  add_up<<<1, 1>>>(large + LENGTH, 4096, sum);
  CHECK(cudaMemcpy(&checksum, sum, sizeof checksum, cudaMemcpyDeviceToHost));
  std::printf("checksum %.9g\n%.3f us a token, %d kernels\n", checksum, least, 4 * LAYERS);
  return 0;
}
