// A suite of GoogleTest with 50 tests over one kernel, with a label for each if LABELLED. The last one ends the process by
// the signal of the number in LAST_SIGNAL.
#ifdef LABELLED
#include "rocov_gtest.h"
ROCOV_LABEL_TESTS;
#endif

#include "calls.h"

#include <csignal>
#include <cstdlib>
#include <gtest/gtest.h>

struct Fifty : testing::TestWithParam<int> {};

TEST_P(Fifty, Sum) {
  EXPECT_EQ(sum_of(100), 4950);
  if (GetParam() == 49) {
    std::raise(std::atoi(std::getenv("LAST_SIGNAL")));
  }
}

INSTANTIATE_TEST_SUITE_P(All, Fifty, testing::Range(0, 50));
