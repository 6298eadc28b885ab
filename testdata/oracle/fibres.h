// Runs one workgroup on the host: a fibre per work-item, resumed in order, suspended where it
// waits for the others of its wave or workgroup.
#pragma once

#include "host_dev.h"

#include <functional>

namespace oracle {

// Runs `kernel` once per work-item. Throws std::runtime_error when work-items wait for others
// that will not come.
void run_workgroup(Index workgroup, Index size, const std::function<void()> &kernel);

} // namespace oracle
