// Which of the kernel tables this processor runs. ndarray_backend_cpu.cc makes one for each
// instruction set.
#pragma once

#include <string>
#include <vector>

#include "../common/kernels.h"

namespace needle::cpu {

struct InstructionSet {
  const char* name;
  const Kernels* kernels;
};

// Those built in that this processor supports, the plainest first.
std::vector<InstructionSet> supported_instruction_sets();

// The one called `wanted`, or the best if `wanted` is null or empty. Throws DeviceError, naming the
// supported ones.
InstructionSet choose_instruction_set(const char* wanted);

}  // namespace needle::cpu
