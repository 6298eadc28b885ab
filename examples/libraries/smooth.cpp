// Smooths as many numbers as the second argument says on the GPU that the first one names, and checks them.
#include "smooth.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

constexpr int NO_GPU = 77;

static bool smooth(const char *place, std::vector<float> &values) {
#ifdef ON_AMD
  if (std::strcmp(place, "on_amd") == 0) {
    return smooth_on_amd(values);
  }
#endif
#ifdef ON_NVIDIA
  if (std::strcmp(place, "on_nvidia") == 0) {
    return smooth_on_nvidia(values);
  }
#endif
  std::fprintf(stderr, "smooth: %s is not in this build\n", place);
  std::exit(2);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "Usage: smooth on_amd|on_nvidia COUNT\n");
    return 2;
  }
  std::vector<float> values(std::atoi(argv[2]));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(2 * i);
  }
  try {
    if (!smooth(argv[1], values)) {
      std::printf("smooth: no such GPU\n");
      return NO_GPU;
    }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "smooth: %s\n", error.what());
    return 1;
  }
  // The numbers are on a line, so only the ends change: each is the mean of two numbers that differ by 2.
  size_t last = values.size() - 1;
  float shift = values.size() < 3 ? 0.0f : 1.0f;
  for (size_t i = 0; i <= last; ++i) {
    float expected = 2.0f * i + (i == 0 ? shift : 0.0f) - (i == last ? shift : 0.0f);
    if (std::fabs(values[i] - expected) > 1e-3f) {
      std::fprintf(stderr, "smooth: %g instead of %g at %zu\n", values[i], expected, i);
      return 1;
    }
  }
  std::printf("smooth: %zu numbers\n", values.size());
}
