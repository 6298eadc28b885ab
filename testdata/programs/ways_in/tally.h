// What the kernel of tally.hip counts is known: each run adds WORK_ITEMS calls, TALLIED of which are
// below the limit.
#pragma once

constexpr int WORK_ITEMS = 128;
constexpr int TALLIED = 100;

// Runs the kernel `times` times and checks what it did; 0, or what HIP or the check said.
extern "C" int run_tally(int times);
