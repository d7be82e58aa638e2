// Fibers: stacks of their own between which one system thread switches. A switch saves the
// registers that a called function must keep, and takes a few nanoseconds; processors other than
// x86-64 and aarch64 take ucontext's, which is slower (NEEDLE_EMULATOR_UCONTEXT asks for it).
#pragma once

#include <cstddef>

#if defined(NEEDLE_EMULATOR_UCONTEXT) || !(defined(__x86_64__) || defined(__aarch64__))
#undef NEEDLE_EMULATOR_UCONTEXT
#define NEEDLE_EMULATOR_UCONTEXT
#include <ucontext.h>
#endif

namespace needle::emulator {

// A point of execution that switch_context comes back to.
struct Context {
#ifdef NEEDLE_EMULATOR_UCONTEXT
  ucontext_t state;
#else
  void* stack_pointer;
#endif
};

// Makes `context` begin with `entry`, which never returns, on an empty stack.
void prepare_context(Context& context, void* stack, std::size_t bytes, void (*entry)());

// Goes on at `to`; returns when somebody switches to `from`.
void switch_context(Context& from, Context& to);

// Memory for one fiber's stack, with a guard page below: what grows beyond it faults.
class Stack {
 public:
  static constexpr std::size_t kBytes = 256 * 1024;

  // `number` staggers the tops, so that the innermost frames of many fibers share no cache lines'
  // sets. Throws std::bad_alloc.
  explicit Stack(std::size_t number);
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  void* bottom() const { return bottom_; }
  std::size_t usable_bytes() const { return usable_bytes_; }

  // Whether an access to this address means that the stack is used up.
  bool guards(const void* address) const;
  bool contains(const void* address) const;

 private:
  char* bottom_;  // lowest usable byte; the guard lies below
  std::size_t usable_bytes_;
};

}  // namespace needle::emulator
