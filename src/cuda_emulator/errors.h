// The error that cudaGetLastError returns, with what was wrong in words.
#pragma once

#include <string>

#include "cuda_emulator/runtime_api.h"

namespace needle::emulator {

// Returns the error, for the caller to return.
cudaError_t set_error(cudaError_t error, std::string detail);

}  // namespace needle::emulator
