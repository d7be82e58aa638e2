// Where code stands in its source, and what belongs to this module.
#pragma once

#include <cstddef>
#include <string>

namespace needle::emulator {

// "k.cu:4" for the instruction at `code`, found by addr2line (binutils) in the module's debugging
// information; without these "module.so+0x12ab".
std::string source_place(const void* code);

// The file and the line alone; an empty file if they are not known.
struct SourcePlace {
  std::string file;
  int line = 0;
};
SourcePlace find_source_place(const void* code);

// Whether the address lies in this module: its variables and code, or its code alone.
bool in_module(const void* address);
bool in_module_code(const void* address);

// Where the module's addresses begin: instructions are counted from there.
const char* module_base();

struct ModuleRange {
  const char* begin;
  std::size_t bytes;
};
ModuleRange module_range();

// "k.cu", without folders.
std::string file_name(const std::string& path);

}  // namespace needle::emulator
