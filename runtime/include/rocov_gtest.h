/* Coverage of GPU code by test, for GoogleTest 1.10 or later. Labels the counts of each test with the
 * test's name, for `rocov report --per-test` and `rocov which`.
 *
 * Add one line in main, after InitGoogleTest:
 *
 *     rocov::label_tests();
 *
 * If the program takes main from gtest_main, add this line at namespace scope in one source:
 *
 *     ROCOV_LABEL_TESTS;
 *
 * The label of a test is `Suite/Test`. The label of SetUpTestSuite and TearDownTestSuite is `Suite`. The
 * header uses the librocov of the process: preloaded by `rocov run`, or linked. Without librocov it does
 * nothing. You need not link anything (before glibc 2.34, -ldl).
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
  /* Functions of rocov.h. librocov prints every error on standard error. A label that it rejects needs a
   * pop, too. */
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

/* Labels the tests from now on. Returns true. Later calls change nothing. */
inline bool label_tests() {
  static TestLabels *labels = nullptr;
  if (!labels) {
    labels = new TestLabels;
    testing::UnitTest::GetInstance()->listeners().Append(labels);
  }
  return true;
}

} // namespace rocov

#define ROCOV_LABEL_TESTS                                                                          \
  static const bool rocov_labels_tests __attribute__((unused)) = rocov::label_tests()

#endif
