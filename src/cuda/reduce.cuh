// Sums, maxima and minima over the last axes of any view. Two ways through memory: a group of
// threads for each output, side by side along the reduced axes; or, where a kept axis is the dense
// one, a column of threads for each output, side by side along the kept ones. A long reduction is
// cut into segments whose results are reduced again: by shape only, never by the device, so results
// are the same everywhere and every time.
#pragma once

#include <cuda_runtime.h>
#include <math.h>

#include <cstdint>

#include "../common/kernels.h"
#include "launch.cuh"
#include "scratch.cuh"
#include "strided.cuh"

namespace needle::cuda {

// How two values join, and the value that joins without a trace. Sums grow in double: a float would
// lose the small terms, and the memory is slower than the additions.
struct Sum {
  using Total = double;
  __device__ static Total identity() { return 0.0; }
  __device__ static Total join(Total total, Total x) { return total + x; }
};

// x != x lets a NaN in; a NaN in `total` compares false with everything and stays.
struct Max {
  using Total = float;
  __device__ static Total identity() { return -INFINITY; }
  __device__ static Total join(Total total, Total x) { return x > total || x != x ? x : total; }
};

struct Min {
  using Total = float;
  __device__ static Total identity() { return INFINITY; }
  __device__ static Total join(Total total, Total x) { return x < total || x != x ? x : total; }
};

struct Reduction {
  const float* data;  // at the view's offset
  Walk<1> kept, reduced;
  int64_t outputs, length;           // elements of either
  int64_t segments, segment_length;  // of one output
};

// Joins the values of a warp's lanes, each lane with the one `offset` above it; lane 0 has them
// all.
template <class Op>
__device__ static typename Op::Total reduce_warp(typename Op::Total total) {
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    total = Op::join(total, __shfl_down_sync(0xffffffffu, total, offset));
  }
  return total;
}

// Joins the values of all threads of the block, warp by warp; thread 0 has them all.
template <class Op>
__device__ static typename Op::Total reduce_block(typename Op::Total total) {
  constexpr int kWarps = kThreads / kWarp;
  __shared__ typename Op::Total totals[kWarps];
  const int lane = threadIdx.x % kWarp;
  total = reduce_warp<Op>(total);
  __syncthreads();  // the last reduction's totals have been read
  if (lane == 0) totals[threadIdx.x / kWarp] = total;
  __syncthreads();
  if (threadIdx.x < kWarp) {
    total = reduce_warp<Op>(lane < kWarps ? totals[lane] : Op::identity());
  }
  return total;
}

// What one thread joins: elements first, first + step ... of a segment.
template <class Op>
__device__ static typename Op::Total reduce_thread(const Reduction& of, int64_t output,
                                                   int64_t segment, int first, int step) {
  int64_t start[1];
  find(of.kept, output, start);
  const int64_t begin = segment * of.segment_length;
  const int64_t rest = of.length - begin;
  const int64_t end = begin + (rest < of.segment_length ? rest : of.segment_length);
  typename Op::Total total = Op::identity();
  for (int64_t i = begin + first; i < end; i += step) {
    int64_t position[1];
    find(of.reduced, i, position);
    total = Op::join(total, of.data[start[0] + position[0]]);
  }
  return total;
}

// out[output, segment]: a thread, a warp or a block for each.
template <class Op, int kGroup>
__global__ void reduce_rows_kernel(Reduction of, float* out) {
  constexpr int kGroups = kThreads / kGroup;
  const int64_t tasks = of.outputs * of.segments;
  const int lane = threadIdx.x % kGroup;
  int64_t task = static_cast<int64_t>(blockIdx.x) * kGroups + threadIdx.x / kGroup;
  for (; task < tasks; task += static_cast<int64_t>(gridDim.x) * kGroups) {
    typename Op::Total total =
        reduce_thread<Op>(of, task / of.segments, task % of.segments, lane, kGroup);
    if constexpr (kGroup == kWarp) total = reduce_warp<Op>(total);
    if constexpr (kGroup == kThreads) total = reduce_block<Op>(total);
    if (lane == 0) out[task] = static_cast<float>(total);
  }
}

// The same for kWarp neighbouring outputs a block: each warp takes rows of its own, whose results
// the first warp joins.
template <class Op>
__global__ void reduce_columns_kernel(Reduction of, float* out) {
  constexpr int kRows = kThreads / kWarp;
  __shared__ typename Op::Total totals[kRows][kWarp];
  const int column = threadIdx.x % kWarp;
  const int row = threadIdx.x / kWarp;
  const int64_t tasks = (of.outputs + kWarp - 1) / kWarp * of.segments;
  for (int64_t task = blockIdx.x; task < tasks; task += gridDim.x) {
    const int64_t output = task / of.segments * kWarp + column;
    const int64_t segment = task % of.segments;
    if (output < of.outputs) {
      totals[row][column] = reduce_thread<Op>(of, output, segment, row, kRows);
    }
    __syncthreads();
    if (row == 0 && output < of.outputs) {
      typename Op::Total total = totals[0][column];
      for (int i = 1; i < kRows; ++i) total = Op::join(total, totals[i][column]);
      out[output * of.segments + segment] = static_cast<float>(total);
    }
    __syncthreads();
  }
}

constexpr int64_t kEnoughTasks = 2048;      // blocks that keep any device busy: no need to cut
constexpr int64_t kRowSegment = 8192;       // elements that a block joins: 32 a thread
constexpr int64_t kColumnSegment = 512;     // rows that a block joins: 64 a thread
constexpr int64_t kShortRow = kWarp / 2;    // below, a row is one thread's: a warp would idle
constexpr int64_t kLongRow = 1024;          // from here on it is a block's, not a warp's
constexpr int64_t kSideBySide = kWarp / 4;  // dense outputs from which columns are worth it

static void cut(Reduction& of, int64_t tasks, int64_t segment_length) {
  const bool whole = tasks >= kEnoughTasks || of.length <= segment_length;
  of.segment_length = whole ? of.length : segment_length;
  of.segments = ceil_div(of.length, of.segment_length);
}

// Whether neighbouring outputs lie denser in memory than what one output reduces.
static bool is_by_columns(const Reduction& of) {
  const int64_t kept = of.kept.strides[0][0];
  const int64_t reduced = of.reduced.strides[0][0];
  const auto distance = [](int64_t stride) { return stride < 0 ? -stride : stride; };
  return of.kept.shape[0] >= kSideBySide && kept != 0 && distance(kept) < distance(reduced);
}

template <class Op>
static void launch_reduction(const Reduction& of, bool by_columns, float* out) {
  const int64_t tasks = of.outputs * of.segments;
  if (by_columns) {
    const int64_t blocks = ceil_div(of.outputs, kWarp) * of.segments;
    reduce_columns_kernel<Op><<<blocks_for_tasks(blocks), kThreads>>>(of, out);
  } else if (of.segment_length < kShortRow) {
    const int64_t blocks = ceil_div(tasks, kThreads);
    reduce_rows_kernel<Op, 1><<<blocks_for_tasks(blocks), kThreads>>>(of, out);
  } else if (of.segment_length < kLongRow) {
    const int64_t blocks = ceil_div(tasks, kThreads / kWarp);
    reduce_rows_kernel<Op, kWarp><<<blocks_for_tasks(blocks), kThreads>>>(of, out);
  } else {
    reduce_rows_kernel<Op, kThreads><<<blocks_for_tasks(tasks), kThreads>>>(of, out);
  }
}

// out = the reduction of the last `count` axes; over no elements (sums only) it is 0.
template <class Op>
static void reduce(const char* name, View a, int count, float* out) {
  const int first = a.layout.ndim - count;
  Reduction of;
  of.outputs = element_count(a.layout, 0, first);
  of.length = element_count(a.layout, first, a.layout.ndim);
  if (of.outputs == 0) return;
  if (of.length == 0) {
    check(name, cudaMemsetAsync(out, 0, static_cast<size_t>(of.outputs) * sizeof(float)));
    return;
  }
  of.data = a.data + a.layout.offset;
  collapse_or_fail(name, {&a.layout}, 0, first, of.kept);
  collapse_or_fail(name, {&a.layout}, first, a.layout.ndim, of.reduced);
  const bool by_columns = is_by_columns(of);
  if (by_columns) {
    cut(of, ceil_div(of.outputs, kWarp), kColumnSegment);
  } else {
    cut(of, of.outputs, kRowSegment);
  }
  if (of.segments == 1) {
    launch_reduction<Op>(of, by_columns, out);
    check_launch(name);
    return;
  }
  const Scratch<float> partial(name, of.outputs * of.segments);
  launch_reduction<Op>(of, by_columns, partial.data);
  check_launch(name);
  const Layout rows = {2, 0, {of.outputs, of.segments}, {of.segments, 1}};
  reduce<Op>(name, {partial.data, rows}, 1, out);
}

}  // namespace needle::cuda
