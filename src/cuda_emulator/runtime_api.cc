// CUDA's runtime API on the emulated device; errors.cc has its errors, device_memory.cc its memory.
#include "cuda_emulator/runtime_api.h"

#include <chrono>
#include <cstring>
#include <string>

#include "checked.h"
#include "device_memory.h"
#include "errors.h"
#include "machine.h"
#include "shared_memory.h"
#include "source_location.h"

struct needle_emulator_stream {};

struct needle_emulator_event {
  bool recorded = false;
  std::chrono::steady_clock::time_point time;
};

namespace needle::emulator {
namespace {

constexpr int kVersion = CUDART_VERSION;
constexpr int kMultiprocessors = 4;

cudaError_t invalid(const char* function, const std::string& what) {
  return set_error(cudaErrorInvalidValue, std::string(function) + ": " + what);
}

// One end of a copy is the device's where the direction says so, and only there.
bool check_end(const void* pointer, std::size_t bytes, bool device, const char* end,
               std::string& why) {
  if (device) {
    if (check_range(pointer, bytes, why)) return true;
    why = std::string("the ") + end + " is " + why;
    return false;
  }
  if (!arena().contains(pointer)) return true;
  why = std::string("the ") + end + " is device memory, which the direction says it is not";
  return false;
}

// Copies what is checked already, and lets the checked mode know.
void copy_bytes(void* to, const void* from, std::size_t bytes) {
  std::memmove(to, from, bytes);
  if (arena().contains(from)) {
    checked::copied(to, from, bytes);
  } else {
    checked::written(to, bytes);
  }
}

cudaError_t copy(const char* function, void* to, const void* from, std::size_t bytes,
                 cudaMemcpyKind kind) {
  if (bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return invalid(function, "a null pointer");
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) {
    return set_error(cudaErrorInvalidMemcpyDirection,
                     std::string(function) + ": no direction is " + std::to_string(kind));
  }
  const bool any = kind == cudaMemcpyDefault;
  const bool to_device = any ? arena().contains(to)
                             : kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = any ? arena().contains(from)
                               : kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  std::string why;
  if (!check_end(to, bytes, to_device, "destination", why) ||
      !check_end(from, bytes, from_device, "source", why))
    return invalid(function, why);
  copy_bytes(to, from, bytes);
  return cudaSuccess;
}

cudaError_t copy_rows(const char* function, void* to, std::size_t to_pitch, const void* from,
                      std::size_t from_pitch, std::size_t width, std::size_t height,
                      cudaMemcpyKind kind) {
  if (width > to_pitch || width > from_pitch)
    return invalid(function, "a row is wider than its pitch");
  for (std::size_t row = 0; row < height; ++row) {
    const cudaError_t error = copy(function, static_cast<char*>(to) + row * to_pitch,
                                   static_cast<const char*>(from) + row * from_pitch, width, kind);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

bool outside(std::size_t symbol_bytes, std::size_t bytes, std::size_t offset) {
  return offset > symbol_bytes || bytes > symbol_bytes - offset;
}

std::string outside_text(std::size_t symbol_bytes, std::size_t bytes, std::size_t offset) {
  return std::to_string(bytes) + " bytes from byte " + std::to_string(offset) + " of a symbol of " +
         std::to_string(symbol_bytes);
}

}  // namespace

cudaError_t copy_to_symbol(void* symbol, std::size_t symbol_bytes, const void* from,
                           std::size_t bytes, std::size_t offset, cudaMemcpyKind) {
  if (outside(symbol_bytes, bytes, offset))
    return invalid("cudaMemcpyToSymbol", outside_text(symbol_bytes, bytes, offset));
  copy_bytes(static_cast<char*>(symbol) + offset, from, bytes);
  return cudaSuccess;
}

cudaError_t copy_from_symbol(void* to, const void* symbol, std::size_t symbol_bytes,
                             std::size_t bytes, std::size_t offset, cudaMemcpyKind) {
  if (outside(symbol_bytes, bytes, offset))
    return invalid("cudaMemcpyFromSymbol", outside_text(symbol_bytes, bytes, offset));
  copy_bytes(to, static_cast<const char*>(symbol) + offset, bytes);
  return cudaSuccess;
}

cudaError_t set_function_attribute(const void* function, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || !raise_dynamic_shared_limit(function, static_cast<std::size_t>(value))) {
    return invalid("cudaFuncSetAttribute", std::to_string(value) +
                                               " bytes of shared memory; a block has at most " +
                                               std::to_string(kMostSharedBytes));
  }
  return cudaSuccess;
}

}  // namespace needle::emulator

using namespace needle::emulator;  // in this file only: what follows is CUDA's and has no namespace

// --- the device ---

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (device == 0) return cudaSuccess;
  return set_error(cudaErrorInvalidDevice, "there is only device 0");
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device != 0) return cudaSetDevice(device);
  *properties = {};
  std::strcpy(properties->name, "needle's CUDA emulator");
  properties->totalGlobalMem = arena().capacity_bytes;
  properties->sharedMemPerBlock = kSharedBytesOfBlock;
  properties->sharedMemPerBlockOptin = kMostSharedBytes;
  properties->sharedMemPerMultiprocessor = kMostSharedBytes;
  properties->totalConstMem = 64 * 1024;
  properties->regsPerBlock = 64 * 1024;
  properties->warpSize = kWarp;
  properties->maxThreadsPerBlock = kMaxThreads;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = kMaxThreads;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 0x7fffffff;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->maxThreadsPerMultiProcessor = kMaxThreads;
  properties->multiProcessorCount = kMultiprocessors;
  properties->major = 7;  // 7.5 is the oldest that CUDA 13 knows
  properties->minor = 5;
  properties->l2CacheSize = 4 * 1024 * 1024;
  properties->memoryBusWidth = 256;
  properties->unifiedAddressing = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  cudaDeviceProp properties;
  const cudaError_t error = cudaGetDeviceProperties(&properties, device);
  if (error != cudaSuccess) return error;
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      *value = properties.maxThreadsPerBlock;
      break;
    case cudaDevAttrMaxGridDimX:
      *value = properties.maxGridSize[0];
      break;
    case cudaDevAttrMaxGridDimY:
      *value = properties.maxGridSize[1];
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *value = static_cast<int>(properties.sharedMemPerBlock);
      break;
    case cudaDevAttrWarpSize:
      *value = properties.warpSize;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = properties.multiProcessorCount;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *value = properties.major;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = properties.minor;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(properties.sharedMemPerBlockOptin);
      break;
    default:
      return invalid("cudaDeviceGetAttribute", "the emulator does not know the attribute");
  }
  return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize() {
  checked::throw_host_access();
  return cudaSuccess;
}

cudaError_t cudaDeviceReset() {
  free_all();
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = kVersion;
  return cudaSuccess;
}

// --- memory ---

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  *pointer = nullptr;
  if (bytes == 0) return cudaSuccess;
  *pointer = allocate_device(bytes);
  if (*pointer != nullptr) return cudaSuccess;
  return set_error(cudaErrorMemoryAllocation, "cudaMalloc of " + std::to_string(bytes) +
                                                  " bytes; " + std::to_string(live_bytes()) +
                                                  " of " + std::to_string(arena().capacity_bytes) +
                                                  " are in use");
}

cudaError_t cudaFree(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  switch (free_device(pointer)) {
    case Freed::kYes:
      return cudaSuccess;
    case Freed::kTwice:
      return invalid("cudaFree", "this memory was freed before (a double free)");
    case Freed::kNeverAllocated:
      break;
  }
  return invalid("cudaFree",
                 "cudaMalloc never returned this pointer (" + describe_address(pointer) + ")");
}

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  *total_bytes = arena().capacity_bytes;
  *free_bytes = *total_bytes - live_bytes();
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  *pointer = bytes == 0 ? nullptr : allocate_pinned(bytes);
  if (*pointer != nullptr || bytes == 0) return cudaSuccess;
  return set_error(cudaErrorMemoryAllocation,
                   "cudaHostAlloc of " + std::to_string(bytes) + " bytes");
}

cudaError_t cudaMallocHost(void** pointer, std::size_t bytes) {
  return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* pointer) {
  if (pointer == nullptr || free_pinned(pointer)) return cudaSuccess;
  return invalid("cudaFreeHost", "cudaHostAlloc never returned this pointer, or it was freed");
}

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  checked::throw_host_access();
  return copy("cudaMemcpy", to, from, bytes, kind);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  checked::throw_host_access();
  return copy("cudaMemcpyAsync", to, from, bytes, kind);
}

cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind) {
  checked::throw_host_access();
  return copy_rows("cudaMemcpy2D", to, to_pitch, from, from_pitch, width, height, kind);
}

cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from,
                              std::size_t from_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t) {
  checked::throw_host_access();
  return copy_rows("cudaMemcpy2DAsync", to, to_pitch, from, from_pitch, width, height, kind);
}

cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  std::string why;
  if (bytes == 0) return cudaSuccess;
  if (!check_range(to, bytes, why)) return invalid("cudaMemset", "the destination is " + why);
  std::memset(to, value, bytes);
  checked::written(to, bytes);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  return cudaMemset(to, value, bytes);
}

// --- streams and events: every call has ended when it returns ---

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  *stream = new needle_emulator_stream;
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return cudaStreamCreate(stream);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaDeviceSynchronize(); }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = new needle_emulator_event;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  event->recorded = true;
  event->time = std::chrono::steady_clock::now();
  return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaDeviceSynchronize(); }
cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (!start->recorded || !end->recorded) {
    return set_error(cudaErrorInvalidResourceHandle,
                     "cudaEventElapsedTime: an event that was never recorded");
  }
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - start->time).count();
  return cudaSuccess;
}
