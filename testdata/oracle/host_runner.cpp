// The oracle: runs a spec's launches on the host. Linked with one kernel source that was compiled
// for the host with coverage instrumentation, it leaves the buffers and, at its exit, the counts
// that the same source must have on a GPU.
//
//   host_runner SPEC OUTDIR
#include "fibres.h"
#include "spec.h"

#include <cstdio>
#include <dlfcn.h>
#include <map>
#include <stdexcept>

namespace oracle {
namespace {

struct Kernel {
  const void *function;
  Invoke invoke;
};

// Filled before main: a function's local static, because kernels register in static constructors.
std::map<std::string, Kernel> &kernels() {
  static std::map<std::string, Kernel> map;
  return map;
}

void launch(const spec::Launch &launch, std::vector<spec::Bytes> &buffers) {
  auto kernel = kernels().find(launch.kernel);
  if (kernel == kernels().end())
    throw std::runtime_error("no kernel " + launch.kernel + " is registered");
  std::vector<void *> pointers(launch.arguments.size());
  std::vector<spec::Bytes> values(launch.arguments.size());
  std::vector<void *> arguments(launch.arguments.size());
  for (std::size_t i = 0; i < launch.arguments.size(); ++i) {
    const spec::Argument &argument = launch.arguments[i];
    if (argument.is_buffer) {
      pointers[i] = buffers[argument.buffer].data();
      arguments[i] = &pointers[i];
    } else {
      values[i] = argument.value;
      arguments[i] = values[i].data();
    }
  }
  auto work_item = [&] { kernel->second.invoke(kernel->second.function, arguments.data()); };
  Index size{launch.block[0], launch.block[1], launch.block[2]};
  for (u32 z = 0; z < launch.grid[2]; ++z)
    for (u32 y = 0; y < launch.grid[1]; ++y)
      for (u32 x = 0; x < launch.grid[0]; ++x)
        run_workgroup({x, y, z}, size, work_item);
}

} // namespace

Registration::Registration(const void *function, Invoke invoke) {
  Dl_info info;
  if (!dladdr(function, &info) || !info.dli_sname)
    throw std::runtime_error("a kernel has no symbol: link with -rdynamic");
  kernels()[info.dli_sname] = {function, invoke};
}

} // namespace oracle

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s SPEC OUTDIR\n", argv[0]);
    return 2;
  }
  try {
    spec::Spec spec = spec::read(argv[1]);
    for (const spec::Launch &launch : spec.launches)
      oracle::launch(launch, spec.buffers);
    spec::write_buffers(spec.buffers, argv[2]);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 1;
  }
}
