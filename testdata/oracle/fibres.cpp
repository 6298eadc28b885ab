#include "fibres.h"

#include <algorithm>
#include <stdexcept>
#include <ucontext.h>
#include <vector>

namespace oracle {

Index thread, block, block_size;

namespace {

constexpr unsigned WAVE = 64;
constexpr std::size_t STACK_BYTES = 64 * 1024;

enum class State { Runnable, AtBarrier, AtWaveOperation, Finished };

struct Fibre {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(STACK_BYTES);
  Index thread;
  State state;
  u32 posted; // what the others of the wave read
};

// Fibres keep their stacks from one workgroup to the next.
std::vector<Fibre> fibres;
std::size_t count;
std::size_t current;
ucontext_t scheduler;
const std::function<void()> *body;

void suspend(State state) {
  fibres[current].state = state;
  swapcontext(&fibres[current].context, &scheduler);
}

void fibre_main() {
  (*body)();
  suspend(State::Finished);
}

void prepare(Fibre &fibre, u32 number) {
  fibre.thread = {number % block_size.x, number / block_size.x % block_size.y,
                  number / block_size.x / block_size.y};
  fibre.state = State::Runnable;
  getcontext(&fibre.context);
  fibre.context.uc_stack.ss_sp = fibre.stack.data();
  fibre.context.uc_stack.ss_size = fibre.stack.size();
  fibre.context.uc_link = nullptr;
  makecontext(&fibre.context, fibre_main, 0);
}

void resume(std::size_t number) {
  current = number;
  thread = fibres[number].thread;
  swapcontext(&scheduler, &fibres[number].context);
}

// Makes the fibres of a range runnable if all unfinished ones wait in `state`.
bool release(std::size_t first, std::size_t end, State state) {
  bool waiting = false;
  for (std::size_t i = first; i < end; ++i) {
    if (fibres[i].state == State::Finished)
      continue;
    if (fibres[i].state != state)
      return false;
    waiting = true;
  }
  for (std::size_t i = first; waiting && i < end; ++i)
    if (fibres[i].state == state)
      fibres[i].state = State::Runnable;
  return waiting;
}

bool release_waiting() {
  bool released = release(0, count, State::AtBarrier);
  for (std::size_t first = 0; first < count; first += WAVE)
    released |= release(first, std::min(first + WAVE, count), State::AtWaveOperation);
  return released;
}

// Posts a value, and calls `read` with the wave's fibres after all of them have posted. The second
// suspension keeps a fast lane from posting its next value before a slow one has read.
template <class Read> auto with_wave(u32 value, Read read) {
  fibres[current].posted = value;
  suspend(State::AtWaveOperation);
  std::size_t first = current - current % WAVE;
  auto result = read(first, std::min(first + WAVE, count));
  suspend(State::AtWaveOperation);
  return result;
}

} // namespace

void barrier() { suspend(State::AtBarrier); }

void end_thread() {
  suspend(State::Finished);
  __builtin_unreachable(); // Nobody resumes it.
}

u32 lane() { return static_cast<u32>(current % WAVE); }

u64 ballot(bool predicate) {
  return with_wave(predicate, [](std::size_t first, std::size_t end) {
    u64 votes = 0;
    for (std::size_t i = first; i < end; ++i)
      if (fibres[i].state != State::Finished)
        votes |= static_cast<u64>(fibres[i].posted) << (i - first);
    return votes;
  });
}

u32 shuffle(u32 value, u32 from) {
  return with_wave(
      value, [from](std::size_t first, std::size_t) { return fibres[first + from % WAVE].posted; });
}

u32 first_lane(u32 value) {
  return with_wave(value, [](std::size_t first, std::size_t) {
    while (fibres[first].state == State::Finished)
      ++first;
    return fibres[first].posted;
  });
}

void run_workgroup(Index workgroup, Index size, const std::function<void()> &kernel) {
  block = workgroup;
  block_size = size;
  body = &kernel;
  count = static_cast<std::size_t>(size.x) * size.y * size.z;
  if (fibres.size() < count)
    fibres.resize(count);
  for (std::size_t i = 0; i < count; ++i)
    prepare(fibres[i], static_cast<u32>(i));
  do {
    for (std::size_t i = 0; i < count; ++i)
      if (fibres[i].state == State::Runnable)
        resume(i);
  } while (release_waiting());
  for (std::size_t i = 0; i < count; ++i)
    if (fibres[i].state != State::Finished)
      throw std::runtime_error("work-items wait for others that have finished or diverged");
}

} // namespace oracle
