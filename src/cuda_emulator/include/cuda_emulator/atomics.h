// Atomic functions. Threads take turns, so an atomic update is an ordinary one; in the checked mode
// the runtime is told that it was meant as atomic. Part of the emulator's cuda_runtime.h.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace needle::emulator {

#ifdef NEEDLE_EMULATOR_CHECKED
// Checks an atomic access of the calling kernel; `caller` is the address of its code.
void check_atomic(const void* address, std::size_t bytes, const void* caller);

// Not inlined, so that the compiler's instrumentation does not take it for an ordinary access.
#define NEEDLE_ATOMIC __attribute__((noinline, no_sanitize("thread", "undefined")))
#define NEEDLE_CHECK_ATOMIC(address) \
  ::needle::emulator::check_atomic(address, sizeof *(address), __builtin_return_address(0))
#else
#define NEEDLE_ATOMIC inline
#define NEEDLE_CHECK_ATOMIC(address) static_cast<void>(0)
#endif

template <class T, class... Types>
constexpr bool is_one_of = (std::is_same_v<T, Types> || ...);

// Keeps a parameter out of template argument deduction: atomicAdd(&f, 1) adds 1.0f.
template <class T>
struct Same {
  using Type = T;
};
template <class T>
using same = typename Same<T>::Type;

using unsigned_long_long = unsigned long long;

template <class T>
constexpr bool has_sum = is_one_of<T, int, unsigned, unsigned_long_long, float, double>;
template <class T>
constexpr bool has_difference = is_one_of<T, int, unsigned>;
template <class T>
constexpr bool has_wrap = is_one_of<T, unsigned>;
template <class T>
constexpr bool has_exchange = is_one_of<T, int, unsigned, unsigned_long_long, float>;
template <class T>
constexpr bool has_order = is_one_of<T, int, unsigned, long long, unsigned_long_long>;
template <class T>
constexpr bool has_compare = is_one_of<T, int, unsigned, unsigned_long_long, unsigned short>;
template <class T>
constexpr bool has_bits = is_one_of<T, int, unsigned, unsigned_long_long>;

}  // namespace needle::emulator

// Each returns the value that was there before, as CUDA's do, and exists for CUDA's types.
#define NEEDLE_ATOMIC_FUNCTION(name, types, expression)                                           \
  template <class T, class = std::enable_if_t<needle::emulator::types<T>>>                        \
  NEEDLE_ATOMIC T name(T* address, needle::emulator::same<T> value) {                             \
    NEEDLE_CHECK_ATOMIC(address);                                                                 \
    const T old = *address;                                                                       \
    *address = expression;                                                                        \
    return old;                                                                                   \
  }                                                                                               \
  template <class T, class = std::enable_if_t<needle::emulator::types<T>>>                        \
  __attribute__((always_inline)) inline T name##_block(T* address, needle::emulator::same<T> v) { \
    return name(address, v);                                                                      \
  }

NEEDLE_ATOMIC_FUNCTION(atomicAdd, has_sum, old + value)
NEEDLE_ATOMIC_FUNCTION(atomicSub, has_difference, old - value)
NEEDLE_ATOMIC_FUNCTION(atomicExch, has_exchange, value)
NEEDLE_ATOMIC_FUNCTION(atomicMin, has_order, old < value ? old : value)
NEEDLE_ATOMIC_FUNCTION(atomicMax, has_order, old < value ? value : old)
NEEDLE_ATOMIC_FUNCTION(atomicAnd, has_bits, old& value)
NEEDLE_ATOMIC_FUNCTION(atomicOr, has_bits, old | value)
NEEDLE_ATOMIC_FUNCTION(atomicXor, has_bits, old ^ value)

// Wrap around at a limit.
inline unsigned needle_increment(unsigned old, unsigned limit) {
  return old >= limit ? 0 : old + 1;
}
inline unsigned needle_decrement(unsigned old, unsigned limit) {
  return old == 0 || old > limit ? limit : old - 1;
}
NEEDLE_ATOMIC_FUNCTION(atomicInc, has_wrap, needle_increment(old, value))
NEEDLE_ATOMIC_FUNCTION(atomicDec, has_wrap, needle_decrement(old, value))

#undef NEEDLE_ATOMIC_FUNCTION

// Stores `value` where `expected` stands.
template <class T, class = std::enable_if_t<needle::emulator::has_compare<T>>>
NEEDLE_ATOMIC T atomicCAS(T* address, needle::emulator::same<T> expected,
                          needle::emulator::same<T> value) {
  NEEDLE_CHECK_ATOMIC(address);
  const T old = *address;
  if (old == expected) *address = value;
  return old;
}

#undef NEEDLE_ATOMIC
#undef NEEDLE_CHECK_ATOMIC
