// The counts that are expected: runs launches of the kernels on the host.
//
//   host DOSES   such as h3c2w1: three launches of histogram, two of collatz and one of weigh
//
// Only the headers with kernels count.
#include "doses.h"
#include "other.h"

#include <cstdlib>

#define UNCOUNTED __attribute__((no_profile_instrument_function))

OneIndex threadIdx, blockIdx, blockDim;

template <typename Kernel, typename... Arguments> UNCOUNTED void launch(Kernel kernel, Arguments... arguments) {
  blockDim.x = THREADS;
  for (blockIdx.x = 0; blockIdx.x < BLOCKS; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < THREADS; ++threadIdx.x)
      kernel(arguments...);
}

UNCOUNTED int main(int argc, char **argv) {
  static float values[VALUES];
  static unsigned bins[BINS], numbers[VALUES];
  for (unsigned i = 0; i < VALUES; ++i)
    values[i] = (float)(i % 13) - 1.5f;
  for (const char *at = argc > 1 ? argv[1] : ""; *at != '\0';) {
    const char kind = *at++;
    char *end;
    for (long left = std::strtol(at, &end, 10); left > 0; --left)
      switch (kind) {
      case 'h':
        launch(histogram, values, VALUES, bins);
        break;
      case 'c':
        launch(collatz, numbers, VALUES);
        break;
      default:
        launch(weigh, numbers, VALUES);
      }
    at = end;
  }
}
