// The sample's statistics of 0, 1, 2, ..., for callers without HIP: the tests of a suite.
#include "calls.h"
#include "statistics.h"

static std::vector<float> numbers(int count) {
  std::vector<float> numbers(count);
  for (int i = 0; i < count; ++i) {
    numbers[i] = static_cast<float>(i);
  }
  return numbers;
}

int sum_of(int count) {
  DeviceArray<float> values(numbers(count));
  DeviceArray<float> sums(std::vector<float>(blocks_for(count), 0.0f));
  block_sums(values.get(), count, sums.get());
  int sum = 0;
  for (float block : sums.to_host()) {
    sum += static_cast<int>(block);
  }
  return sum;
}

int bin_of_all(int count, int low, int bin) {
  DeviceArray<float> values(numbers(count));
  DeviceArray<unsigned> bins(std::vector<unsigned>(BINS, 0));
  histogram(values.get(), count, static_cast<float>(low), 1.0f, bins.get());
  return static_cast<int>(bins.to_host()[bin]);
}
