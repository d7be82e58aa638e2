// What a kernel knows of its thread, and how threads wait for each other: indices, barriers,
// fences, shuffles and votes. Part of the emulator's cuda_runtime.h; the runtime's threads.cc is
// behind it.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "vector_types.h"

// The runtime changes these between threads, under other names: to the compiler they are constants,
// kept in registers. So the runtime is compiled on its own, without link-time optimisation.
extern const uint3 threadIdx __asm__("needle_emulator_thread_index")
    __attribute__((visibility("hidden")));
extern const uint3 blockIdx __asm__("needle_emulator_block_index")
    __attribute__((visibility("hidden")));
extern const dim3 blockDim __asm__("needle_emulator_block_dim")
    __attribute__((visibility("hidden")));
extern const dim3 gridDim __asm__("needle_emulator_grid_dim") __attribute__((visibility("hidden")));
constexpr int warpSize = 32;

namespace needle::emulator {

// Where a thread waits. As a default argument it is the place of the call.
struct Place {
  static constexpr Place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }

  const char* file;
  int line;
};

enum class WarpOperation {
  kShuffle,
  kShuffleUp,
  kShuffleDown,
  kShuffleXor,
  kBallot,
  kAny,
  kAll,
  kSyncwarp,
  kActivemask,
};

// Waits for the block's other threads; returns for how many of them `predicate` holds.
int barrier(bool predicate, Place place);

// Waits for the lanes of `mask`; `value` and the result are the operation's own. `lane` is a
// shuffle's second argument.
std::uint64_t warp_operation(WarpOperation operation, std::uint32_t mask, std::uint64_t value,
                             int lane, int width, Place place);

[[noreturn]] void trap(Place place);

template <class T>
T shuffle(WarpOperation operation, unsigned mask, T value, int lane, int width, Place place) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8,
                "a shuffle carries up to 8 bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = warp_operation(operation, mask, bits, lane, width, place);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace needle::emulator

inline void __syncthreads(needle::emulator::Place place = needle::emulator::Place::here()) {
  needle::emulator::barrier(false, place);
}

inline int __syncthreads_count(int predicate,
                               needle::emulator::Place place = needle::emulator::Place::here()) {
  return needle::emulator::barrier(predicate != 0, place);
}

inline int __syncthreads_or(int predicate,
                            needle::emulator::Place place = needle::emulator::Place::here()) {
  return needle::emulator::barrier(predicate != 0, place) != 0;
}

inline int __syncthreads_and(int predicate,
                             needle::emulator::Place place = needle::emulator::Place::here()) {
  return needle::emulator::barrier(predicate == 0, place) == 0;
}

inline void __syncwarp(unsigned mask = 0xffffffff,
                       needle::emulator::Place place = needle::emulator::Place::here()) {
  needle::emulator::warp_operation(needle::emulator::WarpOperation::kSyncwarp, mask, 0, 0, 32,
                                   place);
}

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
              needle::emulator::Place place = needle::emulator::Place::here()) {
  return needle::emulator::shuffle(needle::emulator::WarpOperation::kShuffle, mask, value, lane,
                                   width, place);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 needle::emulator::Place place = needle::emulator::Place::here()) {
  return needle::emulator::shuffle(needle::emulator::WarpOperation::kShuffleUp, mask, value,
                                   static_cast<int>(delta), width, place);
}

template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   needle::emulator::Place place = needle::emulator::Place::here()) {
  return needle::emulator::shuffle(needle::emulator::WarpOperation::kShuffleDown, mask, value,
                                   static_cast<int>(delta), width, place);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32,
                  needle::emulator::Place place = needle::emulator::Place::here()) {
  return needle::emulator::shuffle(needle::emulator::WarpOperation::kShuffleXor, mask, value,
                                   lane_mask, width, place);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              needle::emulator::Place place = needle::emulator::Place::here()) {
  return static_cast<unsigned>(needle::emulator::warp_operation(
      needle::emulator::WarpOperation::kBallot, mask, predicate != 0, 0, 32, place));
}

inline int __any_sync(unsigned mask, int predicate,
                      needle::emulator::Place place = needle::emulator::Place::here()) {
  return static_cast<int>(needle::emulator::warp_operation(needle::emulator::WarpOperation::kAny,
                                                           mask, predicate != 0, 0, 32, place));
}

inline int __all_sync(unsigned mask, int predicate,
                      needle::emulator::Place place = needle::emulator::Place::here()) {
  return static_cast<int>(needle::emulator::warp_operation(needle::emulator::WarpOperation::kAll,
                                                           mask, predicate != 0, 0, 32, place));
}

// The lanes that have come to this line when no lane of the warp can go on without it.
inline unsigned __activemask(needle::emulator::Place place = needle::emulator::Place::here()) {
  return static_cast<unsigned>(needle::emulator::warp_operation(
      needle::emulator::WarpOperation::kActivemask, 0xffffffff, 0, 0, 32, place));
}

// Memory is one, and threads take turns: a fence has nothing to do.
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}

inline void __trap(needle::emulator::Place place = needle::emulator::Place::here()) {
  needle::emulator::trap(place);
}
