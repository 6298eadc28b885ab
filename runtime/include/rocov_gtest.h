/* Coverage of GPU code by test, for GoogleTest 1.10 or later: labels what each test counts with the
 * test's name, for `rocov report --per-test` and `rocov which`.
 *
 * One line turns it on, in main after InitGoogleTest
 *
 *     rocov::label_tests();
 *
 * or, where the program takes main from gtest_main, at namespace scope in one source:
 *
 *     ROCOV_LABEL_TESTS;
 *
 * The label of a test is `Suite/Test`; of what a suite does in SetUpTestSuite and
 * TearDownTestSuite, `Suite`. librocov is taken as it is in the process: under `rocov run`, or
 * linked. Without it nothing is done, and nothing needs to be linked (before glibc 2.34, -ldl).
 */
#ifndef ROCOV_GTEST_H
#define ROCOV_GTEST_H

#include <dlfcn.h>
#include <gtest/gtest.h>

namespace rocov {

/* Pushes a label at the start of each suite and of each test in it, and pops it at the end. */
class TestLabels : public testing::EmptyTestEventListener {
public:
  TestLabels()
      : push_(reinterpret_cast<Push *>(dlsym(RTLD_DEFAULT, "rocov_label_push"))),
        pop_(reinterpret_cast<Pop *>(dlsym(RTLD_DEFAULT, "rocov_label_pop"))) {}

  void OnTestSuiteStart(const testing::TestSuite &suite) override { push(suite.name()); }
  void OnTestStart(const testing::TestInfo &test) override { push(test.name()); }
  void OnTestEnd(const testing::TestInfo &) override { pop(); }
  void OnTestSuiteEnd(const testing::TestSuite &) override { pop(); }

private:
  /* Of rocov.h. What they answer is for standard error, where librocov has said it: also a label
   * that it refuses is to be popped. */
  typedef int Push(const char *);
  typedef int Pop();

  void push(const char *label) {
    if (push_ && pop_) {
      push_(label);
    }
  }

  void pop() {
    if (push_ && pop_) {
      pop_();
    }
  }

  Push *push_;
  Pop *pop_;
};

/* Labels the tests that run from now on. Returns true. */
inline bool label_tests() {
  testing::UnitTest::GetInstance()->listeners().Append(new TestLabels);
  return true;
}

} // namespace rocov

#define ROCOV_LABEL_TESTS                                                                          \
  static const bool rocov_labels_tests __attribute__((unused)) = rocov::label_tests()

#endif
