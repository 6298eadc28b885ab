// The counts of tally.hip's kernel are known: each run adds WORK_ITEMS calls, TALLIED of which are
// below the limit.
#pragma once

constexpr int WORK_ITEMS = 128;
constexpr int TALLIED = 100;

// Runs the kernel `times` times and checks its result. Returns 0, or an error of HIP or the check.
extern "C" int run_tally(int times);
