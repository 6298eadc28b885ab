#include "cubin.h"

#include <cstring>
#include <elf.h>
#include <fstream>
#include <iterator>
#include <stdexcept>

Cubin::Cubin(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  content.assign(std::istreambuf_iterator<char>(file), {});
  Elf64_Ehdr header;
  if (content.size() < sizeof header || std::memcmp(content.data(), ELFMAG, SELFMAG) != 0)
    throw std::runtime_error(path + " is no ELF");
  std::memcpy(&header, content.data(), sizeof header);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  std::memcpy(sections.data(), &content.at(header.e_shoff), sections.size() * sizeof(Elf64_Shdr));
  for (const Elf64_Shdr &section : sections) {
    if (section.sh_flags & SHF_EXECINSTR)
      code += section.sh_size;
    if (section.sh_type != SHT_SYMTAB)
      continue;
    std::vector<Elf64_Sym> symbols(section.sh_size / sizeof(Elf64_Sym));
    std::memcpy(symbols.data(), &content.at(section.sh_offset), section.sh_size);
    const char *names = &content.at(sections.at(section.sh_link).sh_offset);
    for (const Elf64_Sym &symbol : symbols)
      if (ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT)
        found.push_back({names + symbol.st_name, symbol.st_size});
  }
}
