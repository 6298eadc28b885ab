// A spec: buffers and kernel launches from a small text file. The host oracle and the HIP program
// that runs a code object read one file, so both do the same work.
//
//   buf FILE                              the next buffer; its contents are the file's
//   noise TYPE COUNT LOW HIGH             the next buffer: COUNT random elements, f32 or u32
//   launch NAME GX GY GZ BX BY BZ ARG...  a grid of GX*GY*GZ workgroups of BX*BY*BZ work-items
//
// ARG is `pN`, the address of buffer N (from 0), or `h` and the hexadecimal bytes of a value as
// they lie in memory. After the last launch buffer N is written to OUTDIR/bufN.bin.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace spec {

using Bytes = std::vector<char>;

struct Argument {
  bool is_buffer;
  std::size_t buffer; // its number, if it is one
  Bytes value;        // its bytes otherwise
};

struct Launch {
  std::string kernel;
  unsigned grid[3];  // workgroups
  unsigned block[3]; // work-items
  std::vector<Argument> arguments;
};

struct Spec {
  std::vector<Bytes> buffers;
  std::vector<Launch> launches;
};

// Throw std::runtime_error with the file, the line and the problem.
Spec read(const std::string &path);
void write_buffers(const std::vector<Bytes> &buffers, const std::string &directory);

} // namespace spec
