// Runs one workgroup on the host: one fibre per work-item, resumed in order and suspended while it
// waits for the others of its wave or workgroup.
#pragma once

#include "host_dev.h"

#include <functional>

namespace oracle {

// Runs `kernel` once per work-item. Throws std::runtime_error if work-items wait for others that
// will never arrive.
void run_workgroup(Index workgroup, Index size, const std::function<void()> &kernel);

} // namespace oracle
