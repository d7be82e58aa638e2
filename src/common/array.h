// Array: a flat buffer of float32, from the backend's pool and uninitialised, or over memory of
// somebody else. Shapes live in Python. Owned by the Python objects of python_array.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "error.h"
#include "pool.h"

namespace needle {

// The pool of the backend; defined once by its binding, never destroyed, so that arrays alive at
// exit are safe.
Pool& pool();

class Array {
 public:
  // Throws ShapeError for a negative size, OutOfMemoryError if there is no room; `op` names who
  // asks.
  Array(const char* op, std::int64_t size) : size_(size), bytes_(checked_bytes(op, size)) {
    data_ = static_cast<float*>(pool().allocate(bytes_));
    if (data_ == nullptr) {
      fail<OutOfMemoryError>(op, "no room for ", size, " elements (", bytes_, " bytes); ",
                             pool().stats().live_bytes, " bytes are in use");
    }
  }

  // Over memory that outlives this. The pool never sees it: its next owner is not ours to choose.
  Array(float* data, std::int64_t size) : size_(size), bytes_(0), data_(data), pooled_(false) {}

  ~Array() {
    if (pooled_) pool().release(data_, bytes_);
  }

  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  std::int64_t size() const { return size_; }
  float* data() { return data_; }
  const float* data() const { return data_; }

 private:
  static std::size_t checked_bytes(const char* op, std::int64_t size) {
    constexpr std::int64_t kLargest =
        (std::numeric_limits<std::int64_t>::max() - Pool::kGranularity) / sizeof(float);
    if (size < 0) fail<ShapeError>(op, "size ", size, " is negative");
    if (size > kLargest)
      fail<OutOfMemoryError>(op, size, " elements are more than any memory holds");
    return static_cast<std::size_t>(size) * sizeof(float);
  }

  std::int64_t size_;
  std::size_t bytes_;
  float* data_;
  bool pooled_ = true;
};

}  // namespace needle
