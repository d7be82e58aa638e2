// The errors that C++ code throws. bind.h raises each as the class of the same name in
// needle.errors, or as Python's own where that says so.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace needle {

struct ShapeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct IndexingError : ShapeError {
  using ShapeError::ShapeError;
};

struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct OutOfMemoryError : DeviceError {
  using DeviceError::DeviceError;
};

// An argument of a type that no kernel takes: Python's TypeError.
struct ArgumentError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A kernel that is not written yet, by the name of its region: Python's NotImplementedError.
struct NotImplementedError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws E with the text "[op] parts...".
template <class E, class... Parts>
[[noreturn]] void fail(const char* op, const Parts&... parts) {
  std::ostringstream text;
  text << '[' << op << "] ";
  (text << ... << parts);
  throw E(text.str());
}

}  // namespace needle
