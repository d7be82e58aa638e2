// Matrix products of any size and strides, in batches. Read from top to bottom, each kernel faster
// than the one before:
//
//   matmul_naive      a thread for each element of the result, which reads a row and a column
//   matmul_shared     a block for each square tile: rows and columns are read once a tile
//   matmul_registers  each thread holds several elements: a number read from shared memory serves
//                     four or eight products
//
// batched_matmul, at the end, picks one by shape.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../common/kernels.h"
#include "launch.cuh"
#include "strided.cuh"

namespace needle::cuda {

// out (batches, m, p) = a (batches, m, n) @ b (batches, n, p); out is compact.
struct Product {
  const float* a;  // at the views' offsets
  const float* b;
  float* out;
  Walk<2> batch;  // the leading axes, of a and of b
  int64_t batches, m, n, p;
  int64_t a_row, a_column, b_row, b_column;  // strides
};

// A block's share of the result: a tile of a matrix of the batch.
struct Tile {
  const float* a;  // the batch's matrices
  const float* b;
  float* out;
  int64_t row, column;  // of its first element
};

// Tiles of a batch are numbered row by row, batch after batch.
__device__ static inline Tile tile_of(const Product& of, int64_t task, int size) {
  const int64_t across = (of.p + size - 1) / size;
  const int64_t down = (of.m + size - 1) / size;
  const int64_t batch = task / across / down;
  int64_t start[2];
  find(of.batch, batch, start);
  return {of.a + start[0], of.b + start[1], of.out + batch * of.m * of.p,
          task / across % down * size, task % across * size};
}

static int64_t tile_count(const Product& of, int size) {
  return of.batches * ceil_div(of.m, size) * ceil_div(of.p, size);
}

__global__ void matmul_naive(Product of) {
  for (int64_t i = global_index(); i < of.batches * of.m * of.p; i += thread_count()) {
    int64_t start[2];
    find(of.batch, i / of.p / of.m, start);
    const float* a = of.a + start[0] + i / of.p % of.m * of.a_row;
    const float* b = of.b + start[1] + i % of.p * of.b_column;
    float sum = 0.0f;
    for (int64_t k = 0; k < of.n; ++k) sum += a[k * of.a_column] * b[k * of.b_row];
    of.out[i] = sum;
  }
}

constexpr int kSharedTile = 16;
static_assert(kSharedTile * kSharedTile == kThreads);

__global__ void matmul_shared(Product of) {
  __shared__ float a_tile[kSharedTile][kSharedTile];
  __shared__ float b_tile[kSharedTile][kSharedTile];
  const int x = threadIdx.x % kSharedTile;
  const int y = threadIdx.x / kSharedTile;
  const int64_t tasks = of.batches * ((of.m + kSharedTile - 1) / kSharedTile) *
                        ((of.p + kSharedTile - 1) / kSharedTile);
  for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    const Tile tile = tile_of(of, task, kSharedTile);
    const int64_t row = tile.row + y;
    const int64_t column = tile.column + x;
    float sum = 0.0f;
    for (int64_t k = 0; k < of.n; k += kSharedTile) {
      // What lies outside of a matrix counts as zero.
      a_tile[y][x] =
          row < of.m && k + x < of.n ? tile.a[row * of.a_row + (k + x) * of.a_column] : 0.0f;
      b_tile[y][x] =
          column < of.p && k + y < of.n ? tile.b[(k + y) * of.b_row + column * of.b_column] : 0.0f;
      __syncthreads();
      for (int i = 0; i < kSharedTile; ++i) sum += a_tile[y][i] * b_tile[i][x];
      __syncthreads();
    }
    if (row < of.m && column < of.p) tile.out[row * of.p + column] = sum;
  }
}

constexpr int kDepth = 8;  // of the pieces of a and b that are in shared memory at a time
constexpr int kSide = 16;  // the block's threads are a square of this side
static_assert(kSide * kSide == kThreads);

// How much of `size` a tile or piece that begins at `start` may read.
__device__ static inline int room(int64_t start, int64_t size, int most) {
  return size - start < most ? static_cast<int>(size - start) : most;
}

// Reads kLines x kDepth numbers into shared[k][line], zeros where the matrix has only `lines` or
// `depth` left. `across` is the stride from line to line, `along` the one along k. Neighbouring
// threads read neighbouring numbers, whichever way these lie.
template <int kLines>
__device__ static inline void load_piece(const float* matrix, int64_t across, int64_t along,
                                         int lines, int depth, Four (*shared)[kLines / 4 + 1]) {
  const bool k_is_dense = along == 1;
  const int thread = threadIdx.x;
  int line = k_is_dense ? thread / kDepth : thread % kLines;
  int k = k_is_dense ? thread % kDepth : thread / kLines;
  const int line_step = k_is_dense ? kThreads / kDepth : 0;
  const int k_step = k_is_dense ? 0 : kThreads / kLines;
  const float* number = matrix + line * across + k * along;
  const int64_t step = line_step * across + k_step * along;
#pragma unroll
  for (int part = 0; part < kLines * kDepth / kThreads; ++part) {
    shared[k][line / 4].at[line % 4] = line < lines && k < depth ? *number : 0.0f;
    line += line_step;
    k += k_step;
    number += step;
  }
}

// Each thread holds kQuads x kQuads squares of 4 x 4 elements, which lie kSide squares apart: so
// the threads of a warp read shared memory side by side, four numbers at a time.
template <int kQuads>
__global__ void __launch_bounds__(kThreads, 2) matmul_registers(Product of) {
  constexpr int kLines = kQuads * kSide * 4;  // the side of the block's tile
  // One more than needed: writes along k then meet different memory banks.
  __shared__ Four a_piece[kDepth][kLines / 4 + 1];
  __shared__ Four b_piece[kDepth][kLines / 4 + 1];
  const int x = threadIdx.x % kSide;
  const int y = threadIdx.x / kSide;
  const int64_t tasks =
      of.batches * ((of.m + kLines - 1) / kLines) * ((of.p + kLines - 1) / kLines);
  for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    const Tile tile = tile_of(of, task, kLines);
    float sums[kQuads * 4][kQuads * 4] = {};
    const float* a_next = tile.a + tile.row * of.a_row;
    const float* b_next = tile.b + tile.column * of.b_column;
    const int rows = room(tile.row, of.m, kLines);
    const int columns = room(tile.column, of.p, kLines);
    for (int64_t k = 0; k < of.n; k += kDepth) {
      const int depth = room(k, of.n, kDepth);
      load_piece<kLines>(a_next, of.a_row, of.a_column, rows, depth, a_piece);
      load_piece<kLines>(b_next, of.b_column, of.b_row, columns, depth, b_piece);
      a_next += kDepth * of.a_column;
      b_next += kDepth * of.b_row;
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kDepth; ++i) {
        Four a[kQuads], b[kQuads];
#pragma unroll
        for (int q = 0; q < kQuads; ++q) {
          a[q] = a_piece[i][q * kSide + y];
          b[q] = b_piece[i][q * kSide + x];
        }
#pragma unroll
        for (int r = 0; r < kQuads * 4; ++r) {
#pragma unroll
          for (int c = 0; c < kQuads * 4; ++c) {
            sums[r][c] += a[r / 4].at[r % 4] * b[c / 4].at[c % 4];
          }
        }
      }
      __syncthreads();
    }
    float* out = tile.out + tile.row * of.p + tile.column;
#pragma unroll
    for (int r = 0; r < kQuads * 4; ++r) {
      const int row = (r / 4 * kSide + y) * 4 + r % 4;
#pragma unroll
      for (int c = 0; c < kQuads * 4; ++c) {
        const int column = (c / 4 * kSide + x) * 4 + c % 4;
        if (row < rows && column < columns) out[row * of.p + column] = sums[r][c];
      }
    }
  }
}

// Sides of a result below which the larger tiles would be mostly empty.
constexpr int64_t kNaiveBelow = 16;
constexpr int64_t kSharedBelow = 48;
// Tiles of 128 x 128 that keep a device busy; with fewer, those of 64 x 64 give it four times more.
constexpr int64_t kEnoughTiles = 128;

static void launch_product(const Product& of) {
  const int64_t side = of.m < of.p ? of.m : of.p;
  if (side < kNaiveBelow) {
    const int64_t blocks = ceil_div(of.batches * of.m * of.p, kThreads);
    matmul_naive<<<blocks_for_tasks(blocks), kThreads>>>(of);
  } else if (side < kSharedBelow) {
    matmul_shared<<<blocks_for_tasks(tile_count(of, kSharedTile)), kThreads>>>(of);
  } else if (tile_count(of, 128) < kEnoughTiles) {
    matmul_registers<1><<<blocks_for_tasks(tile_count(of, 64)), kThreads>>>(of);
  } else {
    matmul_registers<2><<<blocks_for_tasks(tile_count(of, 128)), kThreads>>>(of);
  }
}

// (..., m, n) @ (..., n, p) -> (..., m, p), compact.
static void multiply(const char* name, View a, View b, float* out) {
  const int axes = a.layout.ndim - 2;  // the leading ones
  Layout a_batch = a.layout;
  Layout b_batch = b.layout;
  a_batch.ndim = b_batch.ndim = axes;
  Product of;
  of.a_row = a.layout.strides[axes];
  of.a_column = a.layout.strides[axes + 1];
  of.b_row = b.layout.strides[axes];
  of.b_column = b.layout.strides[axes + 1];
  of.m = merge_batch_rows(a_batch, b_batch, a.layout.shape[axes], of.a_row);
  of.n = a.layout.shape[axes + 1];
  of.p = b.layout.shape[axes + 1];
  of.batches = element_count(a_batch);
  if (of.batches == 0 || of.m == 0 || of.p == 0) return;
  if (of.n == 0) {
    const auto numbers = static_cast<size_t>(of.batches * of.m * of.p);
    check(name, cudaMemsetAsync(out, 0, numbers * sizeof(float)));
    return;
  }
  of.a = a.data + a.layout.offset;
  of.b = b.data + b.layout.offset;
  of.out = out;
  collapse_or_fail(name, {&a_batch, &b_batch}, 0, a_batch.ndim, of.batch);
  launch_product(of);
  check_launch(name);
}

}  // namespace needle::cuda
