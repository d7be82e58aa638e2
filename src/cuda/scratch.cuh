// Scratch: device memory that an op needs for the length of one call, from the backend's pool.
// Freed when the host is done with it: all kernels run one after another on one stream, so whoever
// gets the block next comes later. The functions live in bind_cuda.cc.
#pragma once

#include <cstdint>

namespace needle::cuda {

// Throws OutOfMemoryError if there is no room.
void* acquire_scratch(const char* op, std::int64_t bytes);
void release_scratch(void* block, std::int64_t bytes) noexcept;

template <class T>
struct Scratch {
  Scratch(const char* op, std::int64_t count)
      : bytes(count * static_cast<std::int64_t>(sizeof(T))),
        data(static_cast<T*>(acquire_scratch(op, bytes))) {}
  ~Scratch() { release_scratch(data, bytes); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::int64_t bytes;
  T* const data;
};

}  // namespace needle::cuda
