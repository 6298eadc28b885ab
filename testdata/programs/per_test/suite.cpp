// A suite of GoogleTest over kernels, with a label for each test if LABELLED, or LABELLED_LATE: after InitGoogleTest.
#ifdef LABELLED
#include "rocov_gtest.h"
ROCOV_LABEL_TESTS;
#endif
#ifdef LABELLED_LATE
#include "rocov_gtest.h"

int main(int count, char **arguments) {
  testing::InitGoogleTest(&count, arguments);
  rocov::label_tests();
  return RUN_ALL_TESTS();
}
#endif

#include "calls.h"

#include <gtest/gtest.h>

struct Histogram : testing::Test {
  static void SetUpTestSuite() { EXPECT_EQ(sum_of(10), 45); }
  void SetUp() override { EXPECT_EQ(bin_of_all(5, 0, 3), 1); }
};

TEST_F(Histogram, Above) { EXPECT_EQ(bin_of_all(100, 0, 15), 85); }

TEST_F(Histogram, Below) { EXPECT_EQ(bin_of_all(100, 7, 0), 8); }

struct Sum : testing::TestWithParam<int> {};

TEST_P(Sum, Of) { EXPECT_EQ(sum_of(GetParam()), GetParam() * (GetParam() - 1) / 2); }

INSTANTIATE_TEST_SUITE_P(Sizes, Sum, testing::Values(100, 300));
