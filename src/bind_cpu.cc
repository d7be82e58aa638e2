// The Python module ndarray_backend_cpu: the bindings of common/bind.h over the kernels of
// ndarray_backend_cpu.cc, memory from the system, settings from the environment. A translation unit
// of its own, so that editing a kernel does not compile pybind11 again.
/// SINCE full
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
/// END SINCE
#include <cstdlib>
/// SINCE full
#include <limits>
#include <new>
#include <stdexcept>
/// END SINCE

#include "common/bind.h"
/// SINCE full
#include "common/bind_strided.h"
/// END SINCE
#include "common/settings.h"
/// SINCE full
#include "cpu/dispatch.h"
#include "cpu/scratch.h"
#include "cpu/thread_pool.h"
/// END SINCE

namespace needle {

/// SINCE full
extern const char* const kBuildId;  // build_id.cc, made by CMake

/// END SINCE
/// UNTIL hw5
// namespace cpu {
// extern const Kernels kernels;
// }
//
/// END UNTIL
namespace {

constexpr long kKeptMb = 1024;  // that the pool keeps
/// UNTIL hw5
//
// void* allocate_memory(std::size_t bytes) {
//   void* block = nullptr;
//   return posix_memalign(&block, Pool::kGranularity, bytes) == 0 ? block : nullptr;
// }
//
// void release_memory(void* block, std::size_t) { std::free(block); }
/// END UNTIL
/// SINCE full
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kDistance = 5 * 256;

// A large block lies in whole huge pages, its last one included: a first touch then costs one page
// fault in 2 MiB instead of 512, and walks with a long stride do not run out of the processor's
// page table entries. Blocks start at different distances from their first page: equal elements of
// operands and result would else compete for the same lines of every cache.
void* allocate_memory(std::size_t bytes) {
  constexpr std::size_t kDistances = 16;
  static std::atomic<std::size_t> large_blocks{0};
  void* block = nullptr;
  if (bytes < kHugePage) {
    return posix_memalign(&block, Pool::kGranularity, bytes) == 0 ? block : nullptr;
  }
  const std::size_t distance = (large_blocks++ % kDistances) * kDistance;
  if (bytes > std::numeric_limits<std::ptrdiff_t>::max() - 2 * kHugePage) return nullptr;
  const std::size_t whole = (bytes + distance + kHugePage - 1) / kHugePage * kHugePage;
  if (posix_memalign(&block, kHugePage, whole) != 0) return nullptr;
#if defined(MADV_HUGEPAGE)
  madvise(block, whole, MADV_HUGEPAGE);
#endif
  return static_cast<char*>(block) + distance;
}

void release_memory(void* block, std::size_t bytes) {
  const std::size_t distance =
      bytes < kHugePage ? 0 : reinterpret_cast<std::uintptr_t>(block) % kHugePage;
  std::free(static_cast<char*>(block) - distance);
}
/// END SINCE

}  // namespace

Pool& pool() {
  static Pool* const instance = make_pool("cpu", {allocate_memory, release_memory}, kKeptMb);
  return *instance;
}

/// SINCE full
namespace cpu {

void* acquire_scratch(std::int64_t bytes) {
  void* block = pool().allocate(static_cast<std::size_t>(bytes));
  if (block == nullptr)
    fail<OutOfMemoryError>("cpu", "no room for ", bytes, " bytes of scratch memory");
  return block;
}

void release_scratch(void* block, std::int64_t bytes) noexcept {
  pool().release(block, static_cast<std::size_t>(bytes));
}

}  // namespace cpu

/// END SINCE
namespace {

/// SINCE full
void set_num_threads(int threads) {
  if (threads < 1)
    fail<DeviceError>("set_num_threads", "at least 1 thread is needed, not ", threads);
  cpu::ThreadPool::instance().resize(threads);
}

py::list supported_isas() {
  py::list names;
  for (const cpu::InstructionSet& set : cpu::supported_instruction_sets()) names.append(set.name);
  return names;
}

/// END SINCE
void start(py::module_& module) {
  /// SINCE full
  const cpu::InstructionSet chosen = cpu::choose_instruction_set(std::getenv("NEEDLE_ISA"));
  if (const long threads = setting("cpu", "NEEDLE_NUM_THREADS", 0); threads > 0)
    set_num_threads(static_cast<int>(threads));
  /// END SINCE
  pool();

  module.doc() = "The cpu backend of needle; its contract is needle.backend_ndarray.interface.";
  module.attr("__device_name__") = "cpu";
  /// SINCE full
  module.attr("__build_id__") = kBuildId;
  bind_backend(module, *chosen.kernels);
  bind_strided_kernels(module);
  bind_host_memory(module);
  module.def(
      "isa", [name = chosen.name] { return name; },
      "Return the instruction set that was chosen at import.");
  module.def("supported_isas", supported_isas,
             "Return the instruction sets that this machine can run.");
  module.def("set_num_threads", set_num_threads, py::arg("threads"),
             "Let kernels use `threads` threads, the caller's included; DeviceError below 1.");
  module.def(
      "get_num_threads", [] { return cpu::ThreadPool::instance().size(); },
      "Return how many threads a kernel may use.");
  /// END SINCE
  /// UNTIL hw5
  // bind_backend(module, cpu::kernels);
  /// END UNTIL
}

}  // namespace
}  // namespace needle

// What is thrown here becomes an ImportError with its text, which `cpu().reason` tells.
PYBIND11_MODULE(ndarray_backend_cpu, module) {
  pybind11::register_local_exception_translator([](std::exception_ptr failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const needle::DeviceError&) {
      needle::raise_current_exception("cpu");
    }
  });
  needle::start(module);
}
