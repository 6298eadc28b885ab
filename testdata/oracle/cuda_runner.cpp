// Runs the kernels of a pack (see tools/dev/hardware) on an NVIDIA GPU through the CUDA driver, and prints one line
// for each result. Needs no CUDA to build: the driver is opened when it runs.
//
//   cuda_runner device           the device, the driver and their sizes
//   cuda_runner counts CASE...   Each CASE is a directory with a spec, the buffers and the counts of the host, and a
//                                cubin for each way of counting.
//   cuda_runner times CASE...    Each CASE has a spec and a cubin for each way of counting.
//   cuda_runner launch CASE MODULE   Each CASE has a spec and the buffers of the host. MODULE is PTX or a cubin, of which
//                                it reads no counts.
//   cuda_runner marks CASE...    Each CASE has a spec, plain.cubin, blocks.cubin with a counter for each block, and
//                                `marks`: numbers, and the places of counters. The kernels add to expect[NUMBER] where a
//                                mark is: see testdata/hardware/instrument/marks.cu.
#include "cubin.h"
#include "cuda_driver.h"
#include "spec.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using cuda::driver;
using Counts = std::map<std::string, std::vector<std::uint64_t>>;

const char *const WAYS[] = {"plain", "llvm", "reached", "fast"};

bool exists(const std::string &path) { return std::ifstream(path).good(); }

// Code that the driver has loaded.
class Loaded {
public:
  explicit Loaded(const char *path) { CHECK(driver().cuModuleLoad(&module, path)); }
  ~Loaded() { driver().cuModuleUnload(module); }
  Loaded(const Loaded &) = delete;
  Loaded &operator=(const Loaded &) = delete;

  cuda::Function function(const std::string &name) const {
    cuda::Function function;
    CHECK(driver().cuModuleGetFunction(&function, module, name.c_str()));
    return function;
  }

  // The words of a variable.
  std::vector<std::uint64_t> variable(const char *name) const {
    cuda::Address address;
    std::size_t size;
    CHECK(driver().cuModuleGetGlobal(&address, &size, module, name));
    return words(address, size);
  }

protected:
  std::vector<std::uint64_t> words(cuda::Address address, std::uint64_t bytes) const {
    std::vector<std::uint64_t> words(bytes / 8);
    CHECK(driver().cuMemcpyDtoH(words.data(), address, bytes));
    return words;
  }

  cuda::Module module = nullptr;
};

// A loaded cubin that may count.
class Module : public Loaded {
public:
  explicit Module(const std::string &path) : Loaded(path.c_str()), cubin(path) {}

  const Cubin &file() const { return cubin; }

  // The counts of all functions: the plain counters and all copies.
  Counts counts() const;

private:
  // The driver places each variable by itself, and knows local and weak ones by name, too.
  cuda::Address address_of(const Cubin::Symbol &symbol) const {
    cuda::Address address;
    std::size_t size;
    CHECK(driver().cuModuleGetGlobal(&address, &size, module, symbol.name.c_str()));
    return address;
  }

  Cubin cubin;
};

Counts Module::counts() const {
  const std::string PREFIX = "__profc_";
  Counts counts;
  std::map<cuda::Address, std::uint64_t *> places; // of each word of the plain counters
  for (const Cubin::Symbol &symbol : cubin.symbols()) {
    if (symbol.name.rfind(PREFIX, 0) != 0)
      continue;
    const cuda::Address address = address_of(symbol);
    auto &function = counts[symbol.name.substr(PREFIX.size())];
    function = words(address, symbol.size);
    for (std::size_t i = 0; i < function.size(); ++i)
      places[address + 8 * i] = &function[i];
  }
  for (const Cubin::Symbol &symbol : cubin.symbols()) {
    if (symbol.name.rfind("__rocov_copies_table", 0) != 0)
      continue;
    // docs/src/internals/counter-copies.md has the table.
    const auto table = words(address_of(symbol), symbol.size);
    const std::uint64_t version = table[1] & 0xffffffff;
    if (std::memcmp(table.data(), "rocovcps", 8) != 0 || version < 1 || version > 2)
      throw std::runtime_error("a table of copies of another version");
    // The counters that each word of a copy is added to.
    std::vector<std::vector<cuda::Address>> sums;
    if (version == 1) {
      for (std::size_t i = 4; i + 1 < table.size(); i += 2)
        for (cuda::Address counter = table[i]; counter < table[i + 1]; counter += 8)
          sums.push_back({counter});
    } else {
      sums.resize(table[6]);
      cuda::Address counter = table[4];
      for (std::size_t half = 14; counter < table[5]; ++half) {
        const std::uint32_t term = table[half / 2] >> (half % 2 * 32);
        if (term >> 1 != 0x7fffffff)
          sums.at(term >> 1).push_back(counter);
        if (term % 2 == 0)
          counter += 8;
      }
    }
    const std::size_t stride = (sums.size() * 8 + 511) / 512 * 512;
    const std::size_t copies = stride == 0 ? 0 : (table[3] - table[2]) / stride;
    const auto area = words(table[2], copies * stride);
    for (std::size_t copy = 0; copy < copies; ++copy)
      for (std::size_t i = 0; i < sums.size(); ++i)
        for (const cuda::Address counter : sums[i])
          *places.at(counter) += area[copy * stride / 8 + i];
  }
  return counts;
}

// The buffers of a spec on the GPU.
class Buffers {
public:
  explicit Buffers(const spec::Spec &spec) : spec(spec) {
    for (const spec::Bytes &bytes : spec.buffers) {
      cuda::Address address;
      CHECK(driver().cuMemAlloc(&address, bytes.size()));
      addresses.push_back(address);
    }
    fill();
  }
  ~Buffers() {
    for (cuda::Address address : addresses)
      driver().cuMemFree(address);
  }
  Buffers(const Buffers &) = delete;
  Buffers &operator=(const Buffers &) = delete;

  void fill() {
    for (std::size_t i = 0; i < addresses.size(); ++i)
      CHECK(driver().cuMemcpyHtoD(addresses[i], spec.buffers[i].data(), spec.buffers[i].size()));
  }

  void launch(const Loaded &module) {
    for (const spec::Launch &work : spec.launches) {
      std::vector<void *> arguments;
      for (const spec::Argument &argument : work.arguments) {
        const void *value = argument.is_buffer ? static_cast<const void *>(&addresses[argument.buffer])
                                               : argument.value.data();
        arguments.push_back(const_cast<void *>(value));
      }
      CHECK(driver().cuLaunchKernel(module.function(work.kernel), work.grid[0], work.grid[1], work.grid[2],
                                    work.block[0], work.block[1], work.block[2], 0, nullptr,
                                    arguments.data(), nullptr));
    }
  }

  std::vector<spec::Bytes> results() const {
    CHECK(driver().cuCtxSynchronize());
    std::vector<spec::Bytes> results = spec.buffers;
    for (std::size_t i = 0; i < results.size(); ++i)
      CHECK(driver().cuMemcpyDtoH(results[i].data(), addresses[i], results[i].size()));
    return results;
  }

private:
  const spec::Spec &spec;
  std::vector<cuda::Address> addresses;
};

Counts read_counts(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error("cannot read " + path);
  Counts counts;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string name;
    line >> name;
    for (std::uint64_t count; line >> count;)
      counts[name].push_back(count);
  }
  return counts;
}

// Returns the first difference, or an empty text.
std::string difference(const Counts &device, const Counts &host) {
  for (const auto &[name, expected] : host) {
    const auto found = device.find(name);
    if (found == device.end())
      return "no counters of " + name;
    if (found->second == expected)
      continue;
    for (std::size_t i = 0; i < std::min(expected.size(), found->second.size()); ++i)
      if (found->second[i] != expected[i])
        return name + ", counter " + std::to_string(i) + ": " + std::to_string(found->second[i]) + ", on the host " +
               std::to_string(expected[i]);
    return name + " has another number of counters";
  }
  return device.size() == host.size() ? "" : "functions that the host lacks";
}

// Compares buffers of 32-bit words, byte by byte, or as floats if they differ. Returns the largest difference in units
// of the last place.
std::string buffer_difference(const std::vector<spec::Bytes> &results, const std::string &directory) {
  long most = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::ifstream file(directory + "/buf" + std::to_string(i) + ".bin", std::ios::binary);
    const spec::Bytes expected(std::istreambuf_iterator<char>(file), {});
    if (expected.size() != results[i].size())
      return "buffer " + std::to_string(i) + " has another size";
    for (std::size_t at = 0; at + 4 <= expected.size(); at += 4) {
      std::int32_t ours, theirs;
      std::memcpy(&ours, &results[i][at], 4);
      std::memcpy(&theirs, &expected[at], 4);
      const auto ordered = [](std::int32_t bits) -> long { return bits < 0 ? -(bits & 0x7fffffffL) : bits; };
      most = std::max(most, std::labs(ordered(ours) - ordered(theirs)));
    }
  }
  return most == 0 ? "equal" : "within " + std::to_string(most) + " units of the last place";
}

// Launches a spec with a module that the driver loads.
std::vector<spec::Bytes> launched(const spec::Spec &spec, const Loaded &module) {
  Buffers buffers(spec);
  buffers.launch(module);
  return buffers.results();
}

bool launch(const std::string &directory, const char *path) {
  const spec::Spec spec = spec::read(directory + "/spec");
  const auto results = launched(spec, Loaded(path));
  std::printf("launch %s %s: buffers %s\n", directory.c_str(), path, buffer_difference(results, directory).c_str());
  return true;
}

// Compares the counts of blocks that have marks with what the kernels have added to memory there.
bool compare_marks(const std::string &directory) {
  const spec::Spec spec = spec::read(directory + "/spec");
  const Loaded plain((directory + "/plain.cubin").c_str());
  const Module counting(directory + "/blocks.cubin");
  const bool is_same = launched(spec, plain) == launched(spec, counting);
  const auto expected = plain.variable("expect"), added = counting.variable("expect");
  const auto counts = counting.counts();
  std::map<std::size_t, std::uint64_t> sums;
  std::ifstream marks(directory + "/marks");
  for (std::size_t mark, place; marks >> mark >> place;)
    sums[mark] += counts.at(counts.begin()->first).at(place);
  std::string wrong;
  for (std::size_t mark = 0; mark < expected.size(); ++mark) {
    if (expected[mark] == 0 && sums.count(mark) == 0)
      continue;
    if (sums[mark] != expected[mark] || added[mark] != expected[mark])
      wrong += " mark " + std::to_string(mark) + " is " + std::to_string(sums[mark]) + ", in memory " +
               std::to_string(added[mark]) + ", without counters " + std::to_string(expected[mark]) + ";";
  }
  std::printf("marks %s: %zu marks, %s; buffers %s\n", directory.c_str(), sums.size(),
              wrong.empty() ? "all equal" : wrong.c_str(), is_same ? "equal" : "differ");
  return wrong.empty() && is_same && !sums.empty();
}

bool compare(const std::string &directory) {
  const spec::Spec spec = spec::read(directory + "/spec");
  const Counts host = read_counts(directory + "/counts");
  bool is_equal = true;
  for (const char *way : WAYS) {
    const std::string path = directory + "/" + way + ".cubin";
    if (!exists(path))
      continue;
    const Module module(path);
    Buffers buffers(spec);
    buffers.launch(module);
    const std::string bytes = buffer_difference(buffers.results(), directory);
    const std::string counts = difference(module.counts(), host);
    is_equal &= counts.empty();
    std::printf("counts %s %s: %s; buffers %s\n", directory.c_str(), way, counts.empty() ? "equal" : counts.c_str(),
                bytes.c_str());
  }
  return is_equal;
}

// Milliseconds of the launches of a spec, again and again.
std::vector<float> times(const Module &module, Buffers &buffers) {
  constexpr int WARM = 2, RUNS = 15;
  cuda::Event begin, end;
  CHECK(driver().cuEventCreate(&begin, 0));
  CHECK(driver().cuEventCreate(&end, 0));
  std::vector<float> times;
  for (int i = 0; i < WARM + RUNS; ++i) {
    buffers.fill();
    CHECK(driver().cuEventRecord(begin, nullptr));
    buffers.launch(module);
    CHECK(driver().cuEventRecord(end, nullptr));
    CHECK(driver().cuEventSynchronize(end));
    float time;
    CHECK(driver().cuEventElapsedTime(&time, begin, end));
    if (i >= WARM)
      times.push_back(time);
  }
  std::sort(times.begin(), times.end());
  return times;
}

// Prints: times CASE WAY best median registers blocks code, with times in milliseconds, blocks for each multiprocessor
// and the code in bytes.
void measure(const std::string &directory) {
  const spec::Spec spec = spec::read(directory + "/spec");
  Buffers buffers(spec);
  for (const char *way : WAYS) {
    const std::string path = directory + "/" + way + ".cubin";
    if (!exists(path))
      continue;
    const Module module(path);
    const auto sorted = times(module, buffers);
    const spec::Launch &launch = spec.launches.front();
    const cuda::Function kernel = module.function(launch.kernel);
    int registers, blocks;
    CHECK(driver().cuFuncGetAttribute(&registers, cuda::NUM_REGS, kernel));
    const int threads = static_cast<int>(launch.block[0] * launch.block[1] * launch.block[2]);
    CHECK(driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, 0));
    std::printf("times %s %s %.4f %.4f %d %d %zu\n", directory.c_str(), way, sorted.front(), sorted[sorted.size() / 2],
                registers, blocks, module.file().code_bytes());
    std::fflush(stdout);
  }
}

void print_device() {
  char name[256];
  int version, processors, registers;
  CHECK(driver().cuDeviceGetName(name, sizeof name, 0));
  CHECK(driver().cuDriverGetVersion(&version));
  CHECK(driver().cuDeviceGetAttribute(&processors, cuda::MULTIPROCESSOR_COUNT, 0));
  CHECK(driver().cuDeviceGetAttribute(&registers, cuda::REGISTERS_PER_MULTIPROCESSOR, 0));
  std::printf("device %s, %d multiprocessors, driver for CUDA %d.%d\n", name, processors, version / 1000,
              version % 1000 / 10);
}

// Runs one case. Returns whether its counts are those of the host.
bool run(const std::string &part, const std::string &directory) {
  try {
    if (part == "counts")
      return compare(directory);
    if (part == "marks")
      return compare_marks(directory);
    measure(directory);
    return true;
  } catch (const std::exception &error) {
    std::printf("%s %s: %s\n", part.c_str(), directory.c_str(), error.what());
    return false;
  }
}

} // namespace

int main(int argc, char **argv) {
  const std::string part = argc > 1 ? argv[1] : "";
  const bool is_launch = part == "launch" && argc == 4;
  if (part != "device" && part != "counts" && part != "times" && part != "marks" && !is_launch) {
    std::fprintf(stderr, "usage: cuda_runner device | counts CASE... | times CASE... | marks CASE... | launch CASE MODULE\n");
    return 2;
  }
  try {
    cuda::start();
    if (part == "device")
      print_device();
    if (is_launch)
      return launch(argv[2], argv[3]) ? 0 : 1;
    bool is_well = true;
    for (int i = 2; i < argc; ++i)
      is_well &= run(part, argv[i]);
    return is_well ? 0 : 1;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "cuda_runner: %s\n", error.what());
    return 1;
  }
}
