// What code rewritten by tools/cu2cpp.py calls: launches, and the memory of __shared__ variables.
// Part of the emulator's cuda_runtime.h; src/cuda_emulator/README.md tells how it works.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>

#include "vector_types.h"

#define NEEDLE_EMULATOR_TEXT(...) #__VA_ARGS__

struct needle_emulator_stream;
typedef needle_emulator_stream* cudaStream_t;

namespace needle::emulator {

// What a kernel did wrong: thrown from its launch, or from the first call after it. The device can
// be used again at once.
class KernelError : public std::runtime_error {
 public:
  KernelError(const char* kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}

  // "out of bounds", "data race" ...: a constant for each kind of mistake.
  const char* kind() const { return kind_; }

 private:
  const char* kind_;
};

struct LaunchSite {
  const char* kernel;
  const char* file;
  int line;
};

// What stands between <<< and >>>.
struct LaunchShape {
  LaunchShape(dim3 grid, dim3 block, std::size_t shared_bytes = 0, cudaStream_t = nullptr)
      : grid(grid), block(block), shared_bytes(shared_bytes) {}

  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
};

struct Launch {
  LaunchSite site;
  LaunchShape shape;
  void (*run)(const void* frame);  // runs the kernel for the current thread
  const void* frame;               // holds the kernel's arguments
  std::size_t frame_bytes;
  const void* const* pointers;  // one for each argument, null for those that are no pointers
  int argument_count;
  const void* kernel;  // its address; null where only a call can tell which function is meant
};

// Runs all threads of all blocks, or leaves an error for cudaGetLastError as CUDA would. Throws
// KernelError.
void run(const Launch& launch);

struct KernelAddress {
  template <class Result, class... Parameters>
  const void* operator()(Result (*kernel)(Parameters...)) const {
    static_assert(!(std::is_reference_v<Parameters> || ...),
                  "a kernel takes its parameters by value: a reference is an address of the host");
    return reinterpret_cast<const void*>(kernel);
  }
};

template <class T>
const void* device_pointer(const T& argument) {
  if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>) {
    return const_cast<const void*>(static_cast<const volatile void*>(argument));
  } else {
    return nullptr;
  }
}

// The arguments are copied once, as a launch copies them to the device; each thread gets its own
// copies from there.
template <class Call, class Address, class... Arguments>
void launch(const LaunchSite& site, const LaunchShape& shape, const Call& call,
            const Address& address, const Arguments&... arguments) {
  struct Frame {
    Call call;
    std::tuple<std::decay_t<const Arguments&>...> arguments;

    static void run(const void* frame) {
      const auto& self = *static_cast<const Frame*>(frame);
      std::apply(self.call, self.arguments);
    }
  };
  const Frame frame{call, {arguments...}};
  const void* const pointers[] = {device_pointer<std::decay_t<const Arguments&>>(arguments)...,
                                  nullptr};
  const void* kernel = nullptr;
  if constexpr (std::is_invocable_v<const Address&, KernelAddress>)
    kernel = address(KernelAddress{});
  run({site, shape, Frame::run, &frame, sizeof frame, pointers, sizeof...(Arguments), kernel});
}

// A __shared__ variable of known size: one static object for each declaration. Its memory stays at
// one place, ends at a guard page, and is filled with NaN at its first use in each block.
class SharedVariable {
 public:
  constexpr SharedVariable(const char* name, std::size_t bytes, std::size_t alignment)
      : name_(name), bytes_(bytes), alignment_(alignment) {}

  // Throws KernelError if the block has used up its shared memory.
  void* address();

  const char* name() const { return name_; }
  std::size_t bytes() const { return bytes_; }

 private:
  const char* name_;
  std::size_t bytes_;
  std::size_t alignment_;
  void* place_ = nullptr;
  unsigned long long launch_ = 0;  // the latest that counted it
  unsigned long long block_ = 0;   // the latest that used it
};

// The memory that a launch asks for in its third parameter.
void* dynamic_shared();

}  // namespace needle::emulator
