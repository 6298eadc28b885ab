// The kernels on the host, on one thread.
//
//   host NAME GX GY BX BY RUNS RESULT ARG...
//
// Runs a kernel RUNS times on a grid of GX*GY workgroups of BX*BY work-items. ARG is `f:FILE`, a buffer
// with the file's contents, `u:NUMBER` or `x:FLOAT`. Prints the CPU time of the fastest run in
// nanoseconds. Each run starts with the files' contents. Writes the buffer with number RESULT, as the
// last run left it, to the file that $HOST_RESULT names.
#include "kernels.hip"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

// Keeps the registers of a caller on its stack, and goes on on another one.
extern "C" void fibre_switch(void **from, void *to);
asm(R"(
.text
.globl fibre_switch
fibre_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
)");

namespace {

constexpr std::size_t STACK = 16384;

struct Fibre {
  void *stack;
  host::Index thread;
};

std::vector<Fibre> fibres;
std::vector<char> stacks;
std::size_t current, left;
void *outside;
void (*body)(const void *);
const void *arguments;

void go_to(std::size_t next) {
  std::size_t old = current;
  current = next;
  host::thread = fibres[next].thread;
  fibre_switch(&fibres[old].stack, fibres[next].stack);
}

void enter() {
  body(arguments);
  // Work-items come here in order: all have passed the same barriers.
  if (--left == 0) {
    void *unused;
    fibre_switch(&unused, outside);
  }
  go_to(current + 1);
  __builtin_trap();
}

template <class Kernel> void run_fibres(const Kernel &kernel) {
  const u32 items = host::size.x * host::size.y;
  fibres.resize(items);
  stacks.resize(items * STACK);
  body = [](const void *kernel) { (*static_cast<const Kernel *>(kernel))(); };
  arguments = &kernel;
  for (u32 item = 0; item < items; ++item) {
    // Six registers, the address to go to, and one word for the alignment of a call.
    void **top = reinterpret_cast<void **>(&stacks[0] + (item + 1) * STACK - 64);
    top = reinterpret_cast<void **>(reinterpret_cast<std::size_t>(top) & ~std::size_t(15));
    top[6] = reinterpret_cast<void *>(enter);
    fibres[item] = {top, {item % host::size.x, item / host::size.x}};
  }
  current = 0;
  left = items;
  host::thread = fibres[0].thread;
  fibre_switch(&outside, fibres[0].stack);
}

template <class Kernel> void run_loop(const Kernel &kernel) {
  for (u32 y = 0; y < host::size.y; ++y)
    for (u32 x = 0; x < host::size.x; ++x) {
      host::thread = {x, y};
      kernel();
    }
}

struct Launch {
  host::Index grid;
  std::vector<std::vector<char>> buffers;
  std::vector<u32> words;
  std::vector<float> floats;

  template <class T> T *p(std::size_t number) { return reinterpret_cast<T *>(buffers[number].data()); }
};

template <bool BARRIERS, class Kernel> void run(const Launch &launch, const Kernel &kernel) {
  for (u32 y = 0; y < launch.grid.y; ++y)
    for (u32 x = 0; x < launch.grid.x; ++x) {
      host::block = {x, y};
      if constexpr (BARRIERS)
        run_fibres(kernel);
      else
        run_loop(kernel);
    }
}

constexpr bool LOOP = false, FIBRES = true;

const std::map<std::string, std::function<void(Launch &)>> KERNELS = {
    {"saxpy", [](Launch &l) {
       run<LOOP>(l, [x = l.p<float>(0), y = l.p<float>(1), n = l.words[0], a = l.floats[0]] { saxpy(x, y, n, a); });
     }},
    {"heat", [](Launch &l) {
       run<LOOP>(l, [a = l.p<double>(0), b = l.p<double>(1), n = l.words[0]] { heat(a, b, n); });
     }},
    {"matmul", [](Launch &l) {
       run<FIBRES>(l, [a = l.p<float>(0), b = l.p<float>(1), c = l.p<float>(2), n = l.words[0]] { matmul(a, b, c, n); });
     }},
    {"reduce", [](Launch &l) {
       run<FIBRES>(l, [a = l.p<float>(0), b = l.p<float>(1), n = l.words[0]] { reduce(a, b, n); });
     }},
    {"histogram", [](Launch &l) {
       run<FIBRES>(l, [a = l.p<u32>(0), b = l.p<u32>(1), n = l.words[0]] { histogram(a, b, n); });
     }},
    {"mandelbrot", [](Launch &l) {
       run<LOOP>(l, [a = l.p<u32>(0), n = l.words[0], m = l.words[1]] { mandelbrot(a, n, m); });
     }},
    {"bitonic", [](Launch &l) { run<FIBRES>(l, [a = l.p<u32>(0)] { bitonic(a); }); }},
    {"hash", [](Launch &l) {
       run<LOOP>(l, [a = l.p<u32>(0), b = l.p<u32>(1), n = l.words[0]] { hash(a, b, n); });
     }},
    {"black_scholes", [](Launch &l) {
       run<LOOP>(l, [a = l.p<float>(0), b = l.p<float>(1), c = l.p<float>(2), d = l.p<float>(3), n = l.words[0]] {
         black_scholes(a, b, c, d, n);
       });
     }},
    {"scan", [](Launch &l) { run<FIBRES>(l, [a = l.p<u32>(0), b = l.p<u32>(1)] { scan(a, b); }); }},
    {"transpose", [](Launch &l) {
       run<FIBRES>(l, [a = l.p<float>(0), b = l.p<float>(1), n = l.words[0]] { transpose(a, b, n); });
     }},
    {"nbody", [](Launch &l) {
       run<LOOP>(l, [a = l.p<Body>(0), b = l.p<Body>(1), n = l.words[0]] { nbody(a, b, n); });
     }},
};

long long cpu_time() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

} // namespace

void host::barrier() { go_to(current + 1 == fibres.size() ? 0 : current + 1); }

int main(int count, char **words) {
  if (count < 8)
    return 2;
  auto number = [&](int place) { return static_cast<u32>(std::strtoul(words[place], nullptr, 10)); };
  Launch launch;
  launch.grid = {number(2), number(3)};
  host::size = {number(4), number(5)};
  for (int place = 8; place < count; ++place) {
    const std::string value = words[place] + 2;
    if (words[place][0] == 'f') {
      std::ifstream file(value, std::ios::binary);
      launch.buffers.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    } else if (words[place][0] == 'u') {
      launch.words.push_back(static_cast<u32>(std::stoul(value)));
    } else {
      launch.floats.push_back(std::stof(value));
    }
  }
  const auto fresh = launch.buffers;
  const auto &kernel = KERNELS.at(words[1]);
  long long best = -1;
  for (u32 run = 0; run < number(6); ++run) {
    for (std::size_t buffer = 0; buffer < fresh.size(); ++buffer)
      std::memcpy(launch.buffers[buffer].data(), fresh[buffer].data(), fresh[buffer].size());
    const long long start = cpu_time();
    kernel(launch);
    const long long time = cpu_time() - start;
    if (best < 0 || time < best)
      best = time;
  }
  std::printf("%lld\n", best);
  const auto &result = launch.buffers.at(number(7));
  std::ofstream(std::getenv("HOST_RESULT"), std::ios::binary).write(result.data(), static_cast<long>(result.size()));
}
