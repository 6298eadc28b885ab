// Runs the programs of a pack (see tools/dev/hardware) in each way of counting, with kernel_times preloaded:
//
//   sample_runner LIBRARY FOLDER...   Each FOLDER has `arguments` and a program for each way of counting.
//
// It prints
//
//   samples FOLDER WAY RESULT MILLISECONDS RATIO LAUNCHES REGISTERS BLOCKS
//   occupancy FOLDER KERNEL PLAIN FAST
//
// MILLISECONDS is the time of all kernels, the median of several runs, and RATIO that to the program without counters.
// Registers and blocks for each multiprocessor are those of the kernel with the most time. The second line is
// for a kernel of which fewer blocks fit with fast counters.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

// LLVM's counters are slow, and their ratios large.
const struct {
  const char *name;
  int runs;
} WAYS[] = {{"plain", 3}, {"llvm", 1}, {"reached", 3}, {"fast", 3}};

constexpr unsigned SECONDS_FOR_A_RUN = 60;
const char OUTPUT[] = "output", TIMES[] = "times";

struct Kernel {
  int launches, late, registers, blocks;
  double milliseconds;
};

struct Run {
  std::string result;
  std::map<std::string, Kernel> kernels;

  double milliseconds() const {
    double all = 0;
    for (const auto &[name, kernel] : kernels)
      all += kernel.milliseconds;
    return all;
  }
};

std::string text_of(const std::string &path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

[[noreturn]] void become(const std::string &folder, const std::string &way, const std::string &library) {
  std::istringstream line(text_of(folder + "/arguments"));
  std::vector<std::string> words{"./" + way};
  for (std::string word; line >> word;)
    words.push_back(word);
  std::vector<char *> pointers;
  for (std::string &word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const int output = chdir(folder.c_str()) == 0 ? open(OUTPUT, O_WRONLY | O_CREAT | O_TRUNC, 0644) : -1;
  if (output < 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0)
    _exit(126);
  setenv("LD_PRELOAD", library.c_str(), 1);
  setenv("KERNEL_TIMES", TIMES, 1);
  // A kernel that is loaded by its first launch would stop that launch.
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  alarm(SECONDS_FOR_A_RUN);
  execv(pointers[0], pointers.data());
  _exit(127);
}

// Some programs report a failure in words only.
std::string result_of(int status, std::string output) {
  if (WIFSIGNALED(status))
    return WTERMSIG(status) == SIGALRM ? "too-slow" : "signal-" + std::to_string(WTERMSIG(status));
  if (WEXITSTATUS(status) != 0)
    return "status-" + std::to_string(WEXITSTATUS(status));
  std::transform(output.begin(), output.end(), output.begin(), [](unsigned char it) { return std::tolower(it); });
  return output.find("fail") == std::string::npos ? "passed" : "failed";
}

Run run(const std::string &folder, const std::string &way, const std::string &library) {
  const std::string times = folder + "/" + TIMES;
  unlink(times.c_str());
  const pid_t child = fork();
  if (child == 0)
    become(folder, way, library);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child)
    return {"not-started", {}};
  Run run{result_of(status, text_of(folder + "/" + OUTPUT)), {}};
  std::ifstream file(times);
  std::string name;
  for (Kernel it; file >> name >> it.launches >> it.milliseconds >> it.late >> it.registers >> it.blocks;)
    run.kernels.emplace(name, it);
  if (run.result == "passed" && run.kernels.empty())
    run.result = "no-kernel";
  for (const auto &[kernel, it] : run.kernels)
    if (run.result == "passed" && it.late > 0)
      run.result = "late";
  return run;
}

// The run with the median time, or the first that did not pass.
Run median(const std::string &folder, const std::string &way, int runs, const std::string &library) {
  std::vector<Run> all;
  for (int i = 0; i < runs; ++i) {
    all.push_back(run(folder, way, library));
    if (all.back().result != "passed")
      return all.back();
  }
  std::sort(all.begin(), all.end(), [](const Run &a, const Run &b) { return a.milliseconds() < b.milliseconds(); });
  return all[all.size() / 2];
}

void print(const std::string &folder, const char *way, const Run &run, double plain) {
  int launches = 0;
  Kernel most{};
  for (const auto &[name, kernel] : run.kernels) {
    launches += kernel.launches;
    if (kernel.milliseconds >= most.milliseconds)
      most = kernel;
  }
  std::printf("samples %s %s %s %.4f %.2f %d %d %d\n", folder.c_str(), way, run.result.c_str(), run.milliseconds(),
              plain > 0 ? run.milliseconds() / plain : 0, launches, most.registers, most.blocks);
  std::fflush(stdout);
}

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: sample_runner LIBRARY FOLDER...\n");
    return 2;
  }
  char *const library = realpath(argv[1], nullptr);
  if (library == nullptr) {
    std::perror(argv[1]);
    return 2;
  }
  bool is_well = true;
  double logarithms = 0, worst = 0;
  int programs = 0; // that passed with and without fast counters
  for (int i = 2; i < argc; ++i) {
    const std::string folder = argv[i];
    Run plain;
    for (const auto &way : WAYS) {
      const Run run = median(folder, way.name, way.runs, library);
      if (plain.result.empty())
        plain = run;
      print(folder, way.name, run, plain.milliseconds());
      is_well &= run.result == "passed";
      if (std::string(way.name) != "fast" || run.result != "passed" || plain.result != "passed")
        continue;
      ++programs;
      const double ratio = run.milliseconds() / plain.milliseconds();
      logarithms += std::log(ratio);
      worst = std::max(worst, ratio);
      for (const auto &[name, kernel] : run.kernels) {
        const auto before = plain.kernels.find(name);
        if (before != plain.kernels.end() && kernel.blocks < before->second.blocks)
          std::printf("occupancy %s %s %d %d\n", folder.c_str(), name.c_str(), before->second.blocks, kernel.blocks);
      }
    }
  }
  if (programs > 0)
    std::printf("samples: %d of %d passed, geometric mean of fast to plain %.3f, worst %.3f\n", programs, argc - 2,
                std::exp(logarithms / programs), worst);
  return is_well ? 0 : 1;
}
