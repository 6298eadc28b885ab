#include "spec.h"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <sstream>
#include <stdexcept>

namespace spec {
namespace {

Bytes read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error("cannot read " + path);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

// Random elements, which are the same in each run of the program.
Bytes parse_noise(std::istream &line) {
  std::string type;
  std::size_t count;
  double low, high;
  if (!(line >> type >> count >> low >> high) || (type != "f32" && type != "u32"))
    throw std::runtime_error("noise wants f32 or u32, COUNT, LOW and HIGH");
  std::mt19937 generator(1);
  Bytes bytes(4 * count);
  for (std::size_t i = 0; i < count; ++i) {
    const double number = low + (high - low) * generator() / 4294967296.0;
    const float real = static_cast<float>(number);
    const std::uint32_t whole = static_cast<std::uint32_t>(number);
    std::memcpy(&bytes[4 * i], type == "f32" ? static_cast<const void *>(&real) : &whole, 4);
  }
  return bytes;
}

Argument parse_argument(const std::string &word, std::size_t buffers) {
  if (word[0] == 'p') {
    std::size_t number = std::stoul(word.substr(1));
    if (number >= buffers)
      throw std::runtime_error("no buffer " + word);
    return {true, number, {}};
  }
  if (word[0] != 'h' || word.size() % 2 == 0)
    throw std::runtime_error("argument " + word + " is neither pN nor hHEX");
  Argument argument{false, 0, {}};
  for (std::size_t i = 1; i < word.size(); i += 2)
    argument.value.push_back(static_cast<char>(std::stoi(word.substr(i, 2), nullptr, 16)));
  return argument;
}

Launch parse_launch(std::istream &line, std::size_t buffers) {
  Launch launch;
  line >> launch.kernel;
  for (unsigned &size : launch.grid)
    line >> size;
  for (unsigned &size : launch.block)
    line >> size;
  if (!line)
    throw std::runtime_error("launch wants NAME GX GY GZ BX BY BZ");
  for (std::string word; line >> word;)
    launch.arguments.push_back(parse_argument(word, buffers));
  return launch;
}

} // namespace

Spec read(const std::string &path) {
  std::ifstream file(path);
  if (!file)
    throw std::runtime_error("cannot read " + path);
  Spec spec;
  std::size_t number = 0;
  for (std::string text; std::getline(file, text);) {
    ++number;
    std::istringstream line(text);
    std::string keyword;
    if (!(line >> keyword) || keyword[0] == '#')
      continue;
    try {
      if (keyword == "buf") {
        std::string name;
        line >> name;
        spec.buffers.push_back(read_file(name));
      } else if (keyword == "noise") {
        spec.buffers.push_back(parse_noise(line));
      } else if (keyword == "launch") {
        spec.launches.push_back(parse_launch(line, spec.buffers.size()));
      } else {
        throw std::runtime_error("unknown keyword " + keyword);
      }
    } catch (const std::exception &error) {
      throw std::runtime_error(path + ":" + std::to_string(number) + ": " + error.what());
    }
  }
  return spec;
}

void write_buffers(const std::vector<Bytes> &buffers, const std::string &directory) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    std::string path = directory + "/buf" + std::to_string(i) + ".bin";
    std::ofstream file(path, std::ios::binary);
    file.write(buffers[i].data(), static_cast<std::streamsize>(buffers[i].size()));
    if (!file.flush())
      throw std::runtime_error("cannot write " + path);
  }
}

} // namespace spec
