// The Python modules of the CUDA devices: the bindings of common/bind.h over the kernels of
// ndarray_backend_cuda.cu. One object file for all three modules: ndarray_backend_cuda for a GPU,
// ndarray_backend_cuda_emulated and ndarray_backend_cuda_checked for the same kernels on the
// processor (cuda_emulator/README.md). What differs between them is behind cuda/device.h.
#include <cstdint>
#include <exception>
#include <limits>
#include <string_view>

#include "common/bind.h"
/// SINCE full
#include "common/bind_strided.h"
/// END SINCE
#include "common/settings.h"
#include "cuda/device.h"
/// SINCE full
#include "cuda/scratch.cuh"
/// END SINCE

namespace needle {

/// SINCE full
extern const char* const kBuildId;  // build_id.cc, made by CMake

/// END SINCE
namespace cuda {
extern const Kernels kernels;
}

namespace {

// What the pool keeps unless NEEDLE_POOL_MB says otherwise. On a GPU, all: cudaFree waits for every
// kernel, and a full device empties the pool anyway. On the checked device, nothing: a kept block
// hides a use after free.
long kept_mb() {
  if (cuda::kEmulation == nullptr) return 1 << 20;
  return std::string_view(cuda::kEmulation) == "checked" ? 0 : 1024;
}

}  // namespace

Pool& pool() {
  static Pool* const instance =
      make_pool("cuda", {cuda::allocate_memory, cuda::release_memory}, kept_mb());
  return *instance;
}

/// SINCE full
namespace cuda {

void* acquire_scratch(const char* op, std::int64_t bytes) {
  void* block = pool().allocate(static_cast<std::size_t>(bytes));
  if (block == nullptr) {
    fail<OutOfMemoryError>(op, "no room for ", bytes, " bytes of scratch memory; ",
                           pool().stats().live_bytes, " bytes are in use");
  }
  return block;
}

void release_scratch(void* block, std::int64_t bytes) noexcept {
  pool().release(block, static_cast<std::size_t>(bytes));
}

}  // namespace cuda

/// END SINCE
namespace {

// Needs neither driver nor device. What is thrown here becomes an ImportError with its text, which
// `cuda().reason` tells.
void start(py::module_& module) {
  py::register_local_exception_translator([](std::exception_ptr failure) {
    try {
      std::rethrow_exception(failure);
    } catch (const DeviceError&) {
      raise_current_exception("cuda");
    }
  });
  pool();
  module.doc() = "A cuda backend of needle; its contract is needle.backend_ndarray.interface.";
  module.attr("__device_name__") = "cuda";
  /// SINCE full
  module.attr("__build_id__") = kBuildId;
  /// END SINCE
  if (cuda::kEmulation != nullptr) {
    module.attr("__emulated__") = cuda::kEmulation;
    // The emulated device serves one thread at a time.
    release_gil_from = std::numeric_limits<std::int64_t>::max();
  }
  bind_backend(module, cuda::kernels);
  /// SINCE full
  bind_strided_kernels(module);
  /// END SINCE
  module.def("device_count", cuda::device_count, "Return how many CUDA devices there are.");
  module.def("unavailable", cuda::unavailable, "Return why no kernel can run here, or ''.");
}

}  // namespace
}  // namespace needle

// Each module has the functions of all three and calls its own.
PYBIND11_MODULE(ndarray_backend_cuda, module) { needle::start(module); }
PYBIND11_MODULE(ndarray_backend_cuda_emulated, module) { needle::start(module); }
PYBIND11_MODULE(ndarray_backend_cuda_checked, module) { needle::start(module); }
