// Copies between the host's memory and the device's, in order with the kernels.
#pragma once

#include <cstddef>

namespace needle::cuda {

// Returns when `host` may be changed; the copy may still be on its way.
void copy_to_device(const char* op, const void* host, void* device, std::size_t bytes);

// Returns when the numbers are there; what failed in earlier kernels shows here.
void copy_to_host(const char* op, const void* device, void* host, std::size_t bytes);

}  // namespace needle::cuda
