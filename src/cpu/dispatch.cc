// The choice of an instruction set at import; see dispatch.h. Compiled for the plainest processor.
#include "dispatch.h"

#include "../common/error.h"

namespace needle::cpu {

namespace baseline {
extern const Kernels kernels;
}
#if defined(NEEDLE_X86_VARIANTS)
namespace avx2 {
extern const Kernels kernels;
}
namespace avx512 {
extern const Kernels kernels;
}
#endif

// The builtin also asks whether the operating system saves the wide registers.
std::vector<InstructionSet> supported_instruction_sets() {
  std::vector<InstructionSet> sets{{"baseline", &baseline::kernels}};
#if defined(NEEDLE_X86_VARIANTS)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    sets.push_back({"avx2", &avx2::kernels});
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
      sets.push_back({"avx512", &avx512::kernels});
    }
  }
#endif
  return sets;
}

InstructionSet choose_instruction_set(const char* wanted) {
  const std::vector<InstructionSet> sets = supported_instruction_sets();
  const std::string name = wanted == nullptr ? "" : wanted;
  if (name.empty()) return sets.back();
  std::string names;
  for (const InstructionSet& set : sets) {
    if (name == set.name) return set;
    names += names.empty() ? set.name : std::string(", ") + set.name;
  }
  fail<DeviceError>("cpu", "NEEDLE_ISA is '", name, "'; this machine supports: ", names);
}

}  // namespace needle::cpu
