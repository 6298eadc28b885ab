// The symbols of a cubin, NVIDIA's ELF: PTX has no sections, so each counter is found by its symbol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

class Cubin {
public:
  struct Symbol {
    std::string name;
    std::uint64_t size;
  };

  // Throws std::runtime_error if the file cannot be read or is no 64-bit ELF.
  explicit Cubin(const std::string &path);

  const std::vector<char> &bytes() const { return content; }
  const std::vector<Symbol> &symbols() const { return found; }
  // The size of all functions.
  std::size_t code_bytes() const { return code; }

private:
  std::vector<char> content;
  std::vector<Symbol> found;
  std::size_t code = 0;
};
