// cudaGetLastError and its kin; see errors.h.
#include "errors.h"

namespace needle::emulator {
namespace {

// Each system thread has its own latest error, as in CUDA.
struct LatestError {
  cudaError_t error = cudaSuccess;
  cudaError_t described = cudaSuccess;  // what the detail belongs to, also when it was fetched
  std::string detail;
  std::string text;  // what cudaGetErrorString returned last
};

thread_local LatestError latest;

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

constexpr ErrorText kTexts[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText& find_text(cudaError_t error) {
  static constexpr ErrorText kUnrecognized = {cudaErrorUnknown, "unrecognized error code",
                                              "unrecognized error code"};
  for (const ErrorText& text : kTexts)
    if (text.error == error) return text;
  return kUnrecognized;
}

}  // namespace

cudaError_t set_error(cudaError_t error, std::string detail) {
  latest.error = error;
  latest.described = error;
  latest.detail = std::move(detail);
  return error;
}

}  // namespace needle::emulator

using needle::emulator::find_text;
using needle::emulator::latest;

cudaError_t cudaPeekAtLastError() { return latest.error; }

cudaError_t cudaGetLastError() {
  const cudaError_t error = latest.error;
  latest.error = cudaSuccess;
  return error;
}

const char* cudaGetErrorName(cudaError_t error) { return find_text(error).name; }

const char* cudaGetErrorString(cudaError_t error) {
  const char* text = find_text(error).text;
  if (error == cudaSuccess || latest.described != error || latest.detail.empty()) return text;
  latest.text = std::string(text) + ": " + latest.detail;
  return latest.text.c_str();
}
