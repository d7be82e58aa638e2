// What the emulator's test cases share: their list, which cases.cc shows to Python, arrays on the
// device, and checks that throw.
#pragma once

#include <cuda_runtime.h>

#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace cases {

struct Case {
  const char* group;
  const char* name;
  bool (*run)();  // whether the result was right
};

inline std::vector<Case>& all_cases() {
  static std::vector<Case> cases;
  return cases;
}

struct Registration {
  Registration(const char* group, const char* name, bool (*run)()) {
    all_cases().push_back({group, name, run});
  }
};

// An error that CUDA returned.
class CudaError : public std::runtime_error {
 public:
  CudaError(cudaError_t error) : std::runtime_error(cudaGetErrorString(error)), error_(error) {}
  const char* name() const { return cudaGetErrorName(error_); }

 private:
  cudaError_t error_;
};

inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw CudaError(error);
}

inline void check_launch() { check(cudaGetLastError()); }

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t size) : size_(size) { check(cudaMalloc(&data_, bytes())); }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    check(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice));
  }
  DeviceArray(std::size_t size, T value) : DeviceArray(std::vector<T>(size, value)) {}
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  operator T*() { return data_; }
  T* data() { return data_; }
  std::size_t size() const { return size_; }
  std::size_t bytes() const { return size_ * sizeof(T); }

  std::vector<T> host() const {
    std::vector<T> values(size_);
    check(cudaMemcpy(values.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t size_;
};

// The numbers first, first + 1 ...
template <class T = float>
std::vector<T> count_from(T first, std::size_t size) {
  std::vector<T> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<T>(first + static_cast<T>(i));
  return values;
}

template <class A, class B>
void require_equal(const A& got, const B& expected, int line) {
  if (got == expected) return;
  std::ostringstream text;
  text << "line " << line << ": got " << +got << ", expected " << +expected;
  throw std::runtime_error(text.str());
}

template <class T>
void require_equal(const std::vector<T>& got, const std::vector<T>& expected, int line) {
  require_equal(got.size(), expected.size(), line);
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] == expected[i]) continue;
    std::ostringstream text;
    text << "line " << line << ", element " << i << ": got " << +got[i] << ", expected "
         << +expected[i];
    throw std::runtime_error(text.str());
  }
}

// The KernelError that the work ends with; its kind is "" if there is none.
struct Caught {
  std::string kind;
  std::string text;
};

template <class Work>
Caught caught(const Work& work) {
  try {
    work();
  } catch (const needle::emulator::KernelError& error) {
    return {error.kind(), error.what()};
  }
  return {};
}

}  // namespace cases

// CASE(name) { ... return right; } adds a case to the group of its file, GROUP.
#define CASE(name)                                                                 \
  static bool case_##name();                                                       \
  static const cases::Registration registration_##name{GROUP, #name, case_##name}; \
  static bool case_##name()

#define REQUIRE_EQUAL(got, expected) cases::require_equal(got, expected, __LINE__)
