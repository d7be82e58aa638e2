// The device behind the kernels, for bind_cuda.cc, which knows no CUDA: it is compiled once for the
// GPU and for the emulated devices.
#pragma once

#include <cstddef>

namespace needle::cuda {

// "fast" or "checked", if the kernels run on the processor; null on a GPU.
extern const char* const kEmulation;

int device_count();

// Why no kernel can run here, or "".
const char* unavailable();

// Device memory; null if there is no room. Throws DeviceError if there is no device.
void* allocate_memory(std::size_t bytes);
void release_memory(void* block, std::size_t bytes);

}  // namespace needle::cuda
