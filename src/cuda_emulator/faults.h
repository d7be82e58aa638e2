// Signals while a kernel runs: an access of forbidden memory, a division by zero, the end of its
// time. Each becomes a KernelError of the launch.
#pragma once

#include <string>

namespace needle::emulator {

// Handles signals of this system thread while it lives, and gives the kernel `seconds` of processor
// time; then all is as before, for Python's faulthandler and whoever else wants these signals.
class FaultGuard {
 public:
  explicit FaultGuard(double seconds);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;
};

// Ends the launch of a kernel that has used up its time and is at `place`.
[[noreturn]] void fail_overtime(const std::string& place);

}  // namespace needle::emulator
