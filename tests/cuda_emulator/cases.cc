// The test cases as C functions, for ctypes: emulator_cases.py calls them.
#include "cases.h"

#include <cstring>

namespace {

void put(char* buffer, int size, const std::string& text) {
  std::strncpy(buffer, text.c_str(), static_cast<std::size_t>(size) - 1);
  buffer[size - 1] = '\0';
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// "group name" of case i; null beyond the last.
EXPORTED const char* case_at(int i) {
  static std::string text;
  const auto& all = cases::all_cases();
  if (i < 0 || static_cast<std::size_t>(i) >= all.size()) return nullptr;
  text = std::string(all[i].group) + " " + all[i].name;
  return text.c_str();
}

// Returns 'r'ight, 'w'rong, 'd'iagnosed, or 'e'rror of the case itself. `kind` and `message` tell
// what was diagnosed.
EXPORTED char run_case(int i, char* kind, char* message, int size) {
  cudaGetLastError();  // forget what an earlier case has left
  try {
    return cases::all_cases()[i].run() ? 'r' : 'w';
  } catch (const needle::emulator::KernelError& error) {
    put(kind, size, error.kind());
    put(message, size, error.what());
    return 'd';
  } catch (const cases::CudaError& error) {
    put(kind, size, error.name());
    put(message, size, error.what());
    return 'd';
  } catch (const std::exception& error) {
    put(message, size, error.what());
    return 'e';
  }
}
