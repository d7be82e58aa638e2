// How kernels are launched: blocks for a number of elements, and which element is a thread's.
// Sizes and indices have 64 bits. A launch of no blocks is an error in CUDA: hosts return before.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../common/error.h"
#include "status.h"

namespace needle::cuda {

using std::int64_t;

constexpr int kWarp = 32;
constexpr int kThreads = 256;  // in a block: several warps to switch between, room for more blocks
constexpr int64_t kMostBlocks = (int64_t{1} << 31) - 1;  // along x; y and z take 65,535

static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The blocks that give each of `count` > 0 elements a thread of its own.
static inline unsigned blocks_for(const char* op, int64_t count) {
  const int64_t blocks = ceil_div(count, kThreads);
  if (blocks > kMostBlocks)
    fail<ShapeError>(op, count, " elements are more than one launch has threads");
  return static_cast<unsigned>(blocks);
}

// At most as many blocks as a launch takes, for kernels whose blocks go on to further `tasks`.
static inline unsigned blocks_for_tasks(int64_t tasks) {
  return static_cast<unsigned>(tasks < kMostBlocks ? tasks : kMostBlocks);
}

// The number of this thread among all of the launch.
__device__ static inline int64_t global_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

// All threads of the launch.
__device__ static inline int64_t thread_count() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

}  // namespace needle::cuda
