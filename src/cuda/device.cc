// See device.h.
#include "device.h"

#include <cuda_runtime.h>

#include <string>

#include "status.h"

namespace needle::cuda {

#if defined(NEEDLE_CUDA_EMULATED)
const char* const kEmulation = NEEDLE_CUDA_EMULATED;
#else
const char* const kEmulation = nullptr;
#endif

int device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();
  return 0;
}

const char* unavailable() {
  static const std::string reason = []() -> std::string {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaSuccess && count > 0) return "";
    cudaGetLastError();
    const std::string text = cudaGetErrorString(status == cudaSuccess ? cudaErrorNoDevice : status);
    if (status == cudaErrorInsufficientDriver) return "no CUDA driver: " + text;
    if (status == cudaSuccess || status == cudaErrorNoDevice) return "no CUDA device: " + text;
    return "CUDA does not start: " + text;
  }();
  return reason.c_str();
}

void* allocate_memory(std::size_t bytes) {
  void* block = nullptr;
  const cudaError_t status = cudaMalloc(&block, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // forgotten: the pool tries again or says so itself
    return nullptr;
  }
  check("cudaMalloc", status);
  return block;
}

// An error here belongs to a kernel before, and is told by the next launch.
void release_memory(void* block, std::size_t) { cudaFree(block); }

}  // namespace needle::cuda
