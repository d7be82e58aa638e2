// Scratch: memory that a kernel needs for the length of one call, from the backend's pool. The
// functions live in bind_cpu.cc: pool.h must not be compiled into the kernels (see thread_pool.h
// for the reason).
#pragma once

#include <cstdint>

namespace needle::cpu {

// Throws OutOfMemoryError if there is no room.
void* acquire_scratch(std::int64_t bytes);
void release_scratch(void* block, std::int64_t bytes) noexcept;

namespace NEEDLE_ISA {

template <class T>
struct Scratch {
  Scratch() = default;
  ~Scratch() {
    if (data != nullptr) release_scratch(data, bytes);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Once at most.
  void acquire(std::int64_t count) {
    bytes = count * static_cast<std::int64_t>(sizeof(T));
    data = static_cast<T*>(acquire_scratch(bytes));
  }

  std::int64_t bytes = 0;
  T* data = nullptr;
};

}  // namespace NEEDLE_ISA
}  // namespace needle::cpu
