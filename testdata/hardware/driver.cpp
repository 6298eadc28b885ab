// A program with the driver API. It does what its arguments say, one after the other:
//
//   module:FILE file:FILE library:FILE   load a cubin or PTX in each way, and make it the one that is launched
//   link:FILE:FILE                       has the driver link two cubins, and loads what it makes
//   unload                               unloads it
//   h:N c:N w:N                          launches histogram, collatz or weigh of it N times
//   kernel:NAME                          launches another kernel with the parameters of collatz
//   sync                                 waits for the context
//   device:N                             goes on in the primary context of GPU N
//   context destroy                      goes on in a new context, and destroys it
//   threads:N:FILE                       N threads load it into a context each, and launch histogram
//   turns:N:FILE:FILE                    loads, launches and unloads two modules in turn, N times
//   many:N:FILE                          loads N modules that differ in a number, and launches histogram in each
//   equal:N:FILE                         loads N modules that are equal, and does the rest of `many`
//   exit-times                           prints how long the handlers took that run at exit, in nanoseconds
//   gpus                                 prints the number of GPUs
//   floor:BYTES:FOLDER:FOLDER            at exit, copies so many bytes for each module, and the files of a folder
//   exit:N                               ends with this status
#include "cuda_driver.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

// As in doses.h.
constexpr unsigned BLOCKS = 4, THREADS = 256, VALUES = 1000, BINS = 10;

using cuda::driver;

long long now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

std::string content_of(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Memory {
  cuda::Address values = 0, bins = 0, numbers = 0;

  void allocate() {
    if (values != 0)
      return;
    float host[VALUES];
    const unsigned zeros[BINS] = {};
    for (unsigned i = 0; i < VALUES; ++i)
      host[i] = static_cast<float>(i % 13) - 1.5f;
    CHECK(driver().cuMemAlloc(&values, sizeof host));
    CHECK(driver().cuMemAlloc(&bins, sizeof zeros));
    CHECK(driver().cuMemAlloc(&numbers, VALUES * sizeof(unsigned)));
    CHECK(driver().cuMemcpyHtoD(values, host, sizeof host));
    CHECK(driver().cuMemcpyHtoD(bins, zeros, sizeof zeros));
  }
};

// The code that is launched: a module or a library.
struct Code {
  cuda::Module module = nullptr;
  cuda::Library library = nullptr;

  cuda::Function kernel(const char *name) const {
    cuda::Function found = nullptr;
    if (module != nullptr)
      CHECK(driver().cuModuleGetFunction(&found, module, name));
    else // a launch takes a kernel of a library, too
      CHECK(driver().cuLibraryGetKernel(&found, library, name));
    return found;
  }

  void launch(const std::string &name, Memory &memory, int times) const {
    memory.allocate();
    unsigned count = VALUES;
    void *of_histogram[] = {&memory.values, &count, &memory.bins}, *of_others[] = {&memory.numbers, &count};
    void **const arguments = name == "histogram" ? of_histogram : of_others;
    const cuda::Function found = kernel(name.c_str());
    for (int i = 0; i < times; ++i)
      CHECK(driver().cuLaunchKernel(found, BLOCKS, 1, 1, THREADS, 1, 1, 0, nullptr, arguments, nullptr));
  }

  void unload() {
    if (module != nullptr)
      CHECK(driver().cuModuleUnload(module));
    else
      CHECK(driver().cuLibraryUnload(library));
    *this = {};
  }
};

Code loaded(const std::string &image) {
  Code code;
  CHECK(driver().cuModuleLoadData(&code.module, image.c_str()));
  return code;
}

Code linked(const std::vector<std::string> &files) {
  cuda::Link link = nullptr;
  CHECK(driver().cuLinkCreate(0, nullptr, nullptr, &link));
  for (const std::string &file : files) {
    std::string image = content_of(file);
    CHECK(driver().cuLinkAddData(link, cuda::LINK_CUBIN, image.data(), image.size(), file.c_str(), 0, nullptr, nullptr));
  }
  void *image = nullptr;
  std::size_t size = 0;
  CHECK(driver().cuLinkComplete(link, &image, &size));
  Code code;
  CHECK(driver().cuModuleLoadData(&code.module, image));
  CHECK(driver().cuLinkDestroy(link));
  return code;
}

// Where the module has its counters: two modules are at one address if these are.
cuda::Address place_of(const Code &code, const char *name) {
  cuda::Address address = 0;
  std::size_t size;
  CHECK(driver().cuModuleGetGlobal(&address, &size, code.module, name));
  return address;
}

void take_turns(int times, const std::string &first, const std::string &second, Memory &memory) {
  const std::string images[] = {content_of(first), content_of(second)};
  int same = 0;
  cuda::Address before = 0;
  for (int i = 0; i < times * 2; ++i) {
    Code code = loaded(images[i % 2]);
    // The first variable of every cubin. Those after it lie at distances that differ.
    const cuda::Address place = place_of(code, "__rocov_raw_version");
    same += i > 0 && place == before;
    before = place;
    code.launch(i % 2 == 0 ? "histogram" : "weigh", memory, 1);
    code.unload();
  }
  std::printf("same-address %d of %d\n", same, times * 2 - 1);
}

void in_a_thread(const std::string &file) {
  cuda::Context context;
  CHECK(driver().cuCtxCreate(&context, 0, 0));
  Memory memory;
  loaded(content_of(file)).launch("histogram", memory, 1);
}

// What the floor of a drain needs: see the comment at the top.
struct Floor {
  std::size_t bytes = 0;
  std::vector<cuda::Address> modules;
  cuda::Address memory = 0;
  std::string to;
  std::vector<std::pair<std::string, std::string>> files; // names, and contents

  void prepare(std::size_t size, const std::string &from, const std::string &into, std::size_t count) {
    bytes = size;
    to = into;
    CHECK(driver().cuMemAlloc(&memory, std::max<std::size_t>(bytes * count, 1)));
    for (std::size_t i = 0; i < count; ++i)
      modules.push_back(memory + i * bytes);
    DIR *directory = opendir(from.c_str());
    while (const dirent *entry = directory != nullptr ? readdir(directory) : nullptr)
      if (entry->d_name[0] != '.')
        files.emplace_back(entry->d_name, content_of(from + "/" + entry->d_name));
    if (directory != nullptr)
      closedir(directory);
  }

  void pay() {
    const long long begin = now();
    void *pinned = nullptr;
    CHECK(driver().cuMemHostAlloc(&pinned, bytes * modules.size(), 0));
    const long long allocated = now();
    for (std::size_t i = 0; i < modules.size(); ++i)
      CHECK(driver().cuMemcpyDtoHAsync(static_cast<char *>(pinned) + i * bytes, modules[i], bytes, nullptr));
    CHECK(driver().cuStreamSynchronize(nullptr));
    const long long copied = now();
    for (const auto &[name, content] : files) {
      FILE *file = std::fopen((to + "/" + name).c_str(), "wb");
      if (file == nullptr || std::fwrite(content.data(), 1, content.size(), file) != content.size() || std::fclose(file))
        throw std::runtime_error("cannot write " + to + "/" + name);
    }
    const long long written = now();
    std::printf("floor-pinned %lld\nfloor-copies %lld\nfloor-files %lld\n", allocated - begin, copied - allocated,
                written - copied);
  }
};

Floor &the_floor() {
  static Floor &made = *new Floor;
  return made;
}
bool prints_exit_times = false;
long long exit_began = 0;

// Registered last, so it runs first.
void exit_begins() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  std::printf("exit-at %lld\n", time.tv_sec * 1000000000LL + time.tv_nsec);
  exit_began = now();
  if (!the_floor().to.empty()) {
    try {
      the_floor().pay();
    } catch (const std::exception &error) {
      std::printf("floor: %s\n", error.what());
    }
  }
}

// Registered before CUDA starts, so rocov's handler runs before.
void exit_ends() {
  if (prints_exit_times)
    std::printf("exit-took %lld\nexit-began %lld\n", now() - exit_began, exit_began);
  std::fflush(stdout);
}

// Loads so many modules, which differ in the number of doses.cu if they are to be distinct.
void load_many(int count, const std::string &file, bool is_distinct, Memory &memory) {
  std::string image = content_of(file);
  const unsigned serial[] = {0x5eed5eed, 0x0ddba115, 0x0ddba115, 0x5eed5eed};
  const std::size_t at = image.find(reinterpret_cast<const char *>(serial), 0, sizeof serial);
  std::vector<long long> times;
  std::vector<Code> all;
  for (int i = 0; i < count; ++i) {
    if (is_distinct && at != std::string::npos)
      std::memcpy(&image[at], &i, sizeof i);
    Code code;
    const long long begin = now();
    CHECK(driver().cuModuleLoadData(&code.module, image.c_str()));
    times.push_back(now() - begin);
    all.push_back(code);
  }
  for (const Code &code : all)
    code.launch("histogram", memory, 1);
  CHECK(driver().cuCtxSynchronize());
  std::sort(times.begin(), times.end());
  long long sum = 0;
  for (long long time : times)
    sum += time;
  std::printf("load-median %lld\nload-mean %lld\n", times[times.size() / 2], sum / count);
}

std::vector<std::string> split(const std::string &text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ':');)
    words.push_back(word);
  return words;
}

int run(int count, char **steps) {
  std::atexit(exit_ends);
  cuda::start();
  cuda::Context context = nullptr;
  std::map<cuda::Context, Memory> memories;
  Code code;
  std::size_t modules = 1;
  for (int at = 1; at < count; ++at) {
    const std::vector<std::string> words = split(steps[at]);
    const std::string &step = words[0];
    const auto word = [&](std::size_t i) { return i < words.size() ? words[i] : std::string(); };
    const int number = std::atoi(word(1).c_str());
    Memory &memory = memories[context];
    if (step == "module")
      code = loaded(content_of(word(1)));
    else if (step == "file")
      CHECK(driver().cuModuleLoad(&(code = {}).module, word(1).c_str()));
    else if (step == "library")
      CHECK(driver().cuLibraryLoadData(&(code = {}).library, content_of(word(1)).c_str(), nullptr, nullptr, 0, nullptr,
                                       nullptr, 0));
    else if (step == "link")
      code = linked({word(1), word(2)});
    else if (step == "unload")
      code.unload();
    else if (step == "h")
      code.launch("histogram", memory, number);
    else if (step == "c")
      code.launch("collatz", memory, number);
    else if (step == "w")
      code.launch("weigh", memory, number);
    else if (step == "kernel")
      code.launch(word(1), memory, 1);
    else if (step == "sync")
      CHECK(driver().cuCtxSynchronize());
    else if (step == "device") {
      int device;
      CHECK(driver().cuDeviceGet(&device, number));
      CHECK(driver().cuDevicePrimaryCtxRetain(&context, device));
      CHECK(driver().cuCtxSetCurrent(context));
    } else if (step == "context")
      CHECK(driver().cuCtxCreate(&context, 0, 0));
    else if (step == "destroy") {
      CHECK(driver().cuCtxDestroy(context));
      memories.erase(context);
      CHECK(driver().cuDevicePrimaryCtxRetain(&context, 0));
      CHECK(driver().cuCtxSetCurrent(context));
    } else if (step == "threads") {
      std::vector<std::thread> threads;
      for (int i = 0; i < number; ++i)
        threads.emplace_back(in_a_thread, word(2));
      for (std::thread &thread : threads)
        thread.join();
    } else if (step == "turns")
      take_turns(number, word(2), word(3), memory);
    else if (step == "many" || step == "equal") {
      load_many(number, word(2), step == "many", memory);
      modules = static_cast<std::size_t>(number);
    } else if (step == "exit-times") {
      prints_exit_times = true;
      usleep(50000); // the files of before have another time of change
      std::atexit(exit_begins);
    } else if (step == "floor")
      the_floor().prepare(std::strtoull(word(1).c_str(), nullptr, 10), word(2), word(3), modules);
    else if (step == "gpus") {
      int gpus = 0;
      CHECK(driver().cuDeviceGetCount(&gpus));
      std::printf("gpus %d\n", gpus);
    } else if (step == "exit") {
      std::printf("done\n");
      return number;
    } else
      throw std::runtime_error("unknown step " + step);
  }
  std::printf("done\n");
  return 0;
}

} // namespace

int main(int count, char **steps) {
  try {
    return run(count, steps);
  } catch (const std::exception &error) {
    std::printf("%s\n", error.what());
    std::fflush(stdout);
    _exit(99);
  }
}
