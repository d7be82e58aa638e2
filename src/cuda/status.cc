// See status.h.
#include "status.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "../common/error.h"

namespace needle::cuda {

namespace {

bool waits_for_each_kernel() {
  static const bool waits = [] {
    const char* setting = std::getenv("NEEDLE_SYNC");
    return setting != nullptr && *setting != '\0' && std::strcmp(setting, "0") != 0;
  }();
  return waits;
}

// What to do about an error, where there is something to do. CUDA numbers those of running kernels
// from cudaErrorIllegalAddress on; after one, it answers every call of the process with it.
const char* advice(cudaError_t status) {
  if (status < cudaErrorIllegalAddress) return "";
  return waits_for_each_kernel()
             ? "; start Python anew to use the device again"
             : "; an earlier kernel may be at fault, NEEDLE_SYNC=1 tells which; start Python anew "
               "to use the device again";
}

}  // namespace

void check(const char* op, cudaError_t status) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // takes the error away, so that the next launch is not blamed for it
  if (status == cudaErrorMemoryAllocation) {
    fail<OutOfMemoryError>(op, "CUDA: ", cudaGetErrorString(status));
  }
  fail<DeviceError>(op, "CUDA: ", cudaGetErrorString(status), " (", cudaGetErrorName(status), ")",
                    advice(status));
}

void check_launch(const char* op) {
  check(op, cudaGetLastError());
  if (waits_for_each_kernel()) check(op, cudaDeviceSynchronize());
}

}  // namespace needle::cuda
