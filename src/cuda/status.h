// What the CUDA runtime answers, as needle's errors. Every call and every launch is checked here.
#pragma once

#include <cuda_runtime.h>

namespace needle::cuda {

// Throws OutOfMemoryError or DeviceError with CUDA's own text if a call made for `op` failed.
void check(const char* op, cudaError_t status);

// After each launch. A kernel runs on while the host goes on, so what it does wrong is told by a
// later call, which names another op; with NEEDLE_SYNC=1 in the environment each launch waits for
// its kernel.
void check_launch(const char* op);

}  // namespace needle::cuda
