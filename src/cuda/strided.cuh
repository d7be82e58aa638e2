// How the device walks views: an elementwise function of operands of one shape, and the copy that
// transposes. `Walk` is a layout made ready for a kernel. The plain meaning of a view is
// `at(view, i)` of common/layout.h, which copy_any_kernel uses.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "../common/kernels.h"
#include "launch.cuh"

namespace needle::cuda {

constexpr int kMaxAxes = 8;

// Axes that several operands walk together, the innermost first, as few as possible. Small and of
// fixed size: it travels with the launch and is read from constant memory.
template <int kOperands>
struct Walk {
  int ndim;  // at least 1
  int64_t shape[kMaxAxes];
  int64_t strides[kOperands][kMaxAxes];
};

// Makes a walk of axes [first, last) of layouts of one shape: axes of size 1 go, and neighbours
// merge where for every operand one step of the outer equals a walk along the whole inner one.
// Returns whether what remains fits.
template <int kOperands>
static bool collapse(const Layout* const (&layouts)[kOperands], int first, int last,
                     Walk<kOperands>& walk) {
  const auto follows = [&](int axis) {
    if (walk.ndim == 0) return false;
    const int inner = walk.ndim - 1;
    for (int k = 0; k < kOperands; ++k) {
      if (layouts[k]->strides[axis] != walk.shape[inner] * walk.strides[k][inner]) return false;
    }
    return true;
  };
  walk.ndim = 0;
  for (int axis = last - 1; axis >= first; --axis) {
    const int64_t size = layouts[0]->shape[axis];
    if (size == 1) continue;
    if (follows(axis)) {
      walk.shape[walk.ndim - 1] *= size;
      continue;
    }
    if (walk.ndim == kMaxAxes) return false;
    walk.shape[walk.ndim] = size;
    for (int k = 0; k < kOperands; ++k) walk.strides[k][walk.ndim] = layouts[k]->strides[axis];
    ++walk.ndim;
  }
  if (walk.ndim == 0) {
    walk.ndim = 1;
    walk.shape[0] = 1;
    for (int k = 0; k < kOperands; ++k) walk.strides[k][0] = 0;
  }
  return true;
}

// The same where too many axes are the caller's mistake.
template <int kOperands>
static void collapse_or_fail(const char* op, const Layout* const (&layouts)[kOperands], int first,
                             int last, Walk<kOperands>& walk) {
  if (collapse(layouts, first, last, walk)) return;
  fail<ShapeError>(op, "more than ", kMaxAxes, " of the views' ", layouts[0]->ndim,
                   " axes do not merge with their neighbours; make one compact() first");
}

// Where element i, in row-major order, lies for each operand, from its own offset on. The loop is
// unrolled: what it indexes are registers and constants. Only inner axes cost a division.
template <int kOperands>
__device__ static inline void find(const Walk<kOperands>& walk, int64_t i,
                                   int64_t (&position)[kOperands]) {
  for (int k = 0; k < kOperands; ++k) position[k] = 0;
#pragma unroll
  for (int axis = 0; axis < kMaxAxes; ++axis) {
    const bool outermost = axis + 1 == walk.ndim;
    const int64_t outer = outermost ? 0 : i / walk.shape[axis];
    const int64_t index = i - outer * walk.shape[axis];
    for (int k = 0; k < kOperands; ++k) position[k] += index * walk.strides[k][axis];
    if (outermost) break;
    i = outer;
  }
}

template <int kOperands>
struct Pointers {
  const float* at[kOperands];
};

template <class Op, int kOperands>
__device__ static inline float apply(const Op& op, const float (&x)[kOperands]) {
  if constexpr (kOperands == 1) {
    return op(x[0]);
  } else if constexpr (kOperands == 2) {
    return op(x[0], x[1]);
  } else {
    return op(x[0], x[1], x[2]);
  }
}

// Four neighbours, which one instruction reads or writes.
struct alignas(16) Four {
  float at[4];
};

// out[i] = op(in[0][i], ...) on compact operands at 16-byte borders; the first threads also take
// the up to three elements behind the last four.
template <class Op, int kOperands>
__global__ void contiguous_kernel(Op op, Pointers<kOperands> in, int64_t size, float* out) {
  const int64_t fours = size / 4;
  for (int64_t i = global_index(); i < fours; i += thread_count()) {
    Four x[kOperands];
    for (int k = 0; k < kOperands; ++k) x[k] = reinterpret_cast<const Four*>(in.at[k])[i];
    Four y;
    for (int j = 0; j < 4; ++j) {
      float numbers[kOperands];
      for (int k = 0; k < kOperands; ++k) numbers[k] = x[k].at[j];
      y.at[j] = apply(op, numbers);
    }
    reinterpret_cast<Four*>(out)[i] = y;
  }
  const int64_t i = fours * 4 + global_index();
  if (i < size) {
    float numbers[kOperands];
    for (int k = 0; k < kOperands; ++k) numbers[k] = in.at[k][i];
    out[i] = apply(op, numbers);
  }
}

// out[i] = op(element i of each operand), whatever their strides.
template <class Op, int kOperands>
__global__ void strided_kernel(Op op, Pointers<kOperands> in, Walk<kOperands> walk, int64_t size,
                               float* out) {
  for (int64_t i = global_index(); i < size; i += thread_count()) {
    int64_t position[kOperands];
    find(walk, i, position);
    float numbers[kOperands];
    for (int k = 0; k < kOperands; ++k) numbers[k] = in.at[k][position[k]];
    out[i] = apply(op, numbers);
  }
}

// Whether all operands can be read in fours.
template <int kOperands>
static bool is_contiguous(const Pointers<kOperands>& in, const Walk<kOperands>& walk) {
  if (walk.ndim > 1) return false;
  for (int k = 0; k < kOperands; ++k) {
    if (walk.strides[k][0] != 1) return false;
    if (reinterpret_cast<std::uintptr_t>(in.at[k]) % sizeof(Four) != 0) return false;
  }
  return true;
}

// out = op(operands), all of one shape; `out` is compact.
template <class Op, int kOperands>
static void elementwise(const char* name, const Op& op, const View (&operands)[kOperands],
                        float* out) {
  const int64_t size = element_count(operands[0].layout);
  if (size == 0) return;
  const Layout* layouts[kOperands];
  Pointers<kOperands> in;
  for (int k = 0; k < kOperands; ++k) {
    layouts[k] = &operands[k].layout;
    in.at[k] = operands[k].data + operands[k].layout.offset;
  }
  Walk<kOperands> walk;
  collapse_or_fail(name, layouts, 0, layouts[0]->ndim, walk);
  if (is_contiguous(in, walk)) {
    const int64_t blocks = ceil_div(size / 4 + 1, kThreads);
    contiguous_kernel<<<blocks_for_tasks(blocks), kThreads>>>(op, in, size, out);
  } else {
    const int64_t blocks = ceil_div(size, kThreads);
    strided_kernel<<<blocks_for_tasks(blocks), kThreads>>>(op, in, walk, size, out);
  }
  check_launch(name);
}

// --- the copy of a view ---

constexpr int kTile = 32;     // floats: a warp reads and writes whole lines of memory
constexpr int kTileRows = 8;  // rows of a tile at once: kTile * kTileRows == kThreads
static_assert(kTile * kTileRows == kThreads);

// A view that lies denser in memory along its rows' axis than along its columns': batches of
// (rows, columns), where `batch` walks the other axes in the view and in the copy.
struct Transposed {
  Walk<2> batch;
  int64_t batches, rows, columns;
  int64_t row_stride, column_stride;  // in the view
  int64_t out_stride;                 // from row to row of the copy
};

// Through a tile in shared memory: the warp reads along rows and writes along columns. The tile's
// rows are one float longer than they need to be, so that a column of it meets all memory banks.
__global__ void transpose_kernel(const float* a, Transposed view, float* out) {
  __shared__ float tile[kTile][kTile + 1];  // [column][row]
  const int x = threadIdx.x % kTile;
  const int y = threadIdx.x / kTile;
  const int64_t across = (view.columns + kTile - 1) / kTile;
  const int64_t down = (view.rows + kTile - 1) / kTile;
  for (int64_t task = blockIdx.x; task < view.batches * down * across; task += gridDim.x) {
    int64_t start[2];  // in the view, in the copy
    find(view.batch, task / across / down, start);
    const int64_t row = task / across % down * kTile;
    const int64_t column = task % across * kTile;
    for (int k = y; k < kTile; k += kTileRows) {
      if (row + x < view.rows && column + k < view.columns) {
        tile[k][x] = a[start[0] + (row + x) * view.row_stride + (column + k) * view.column_stride];
      }
    }
    __syncthreads();
    for (int k = y; k < kTile; k += kTileRows) {
      if (row + k < view.rows && column + x < view.columns) {
        out[start[1] + (row + k) * view.out_stride + column + x] = tile[x][k];
      }
    }
    __syncthreads();
  }
}

// The plain copy, for views of any number of axes.
__global__ void copy_any_kernel(const float* a, Layout view, int64_t size, float* out) {
  for (int64_t i = global_index(); i < size; i += thread_count()) out[i] = a[at(view, i)];
}

// The axis of a walk along which it lies denser in memory than along its innermost one, if tiles of
// the two are worth it; else 0.
static int denser_axis(const Walk<1>& walk) {
  constexpr int64_t kWorthwhile = kTile / 4;
  const auto distance = [&](int axis) {
    const int64_t stride = walk.strides[0][axis];
    return stride < 0 ? -stride : stride;
  };
  int best = 0;
  for (int axis = 1; axis < walk.ndim; ++axis) {
    if (distance(axis) == 0 || walk.shape[axis] < kWorthwhile) continue;
    if (distance(axis) < distance(best)) best = axis;
  }
  return walk.shape[0] < kWorthwhile ? 0 : best;
}

static void copy_transposed(const char* name, const float* a, const Walk<1>& walk, int dense,
                            float* out) {
  Transposed view;
  view.rows = walk.shape[dense];
  view.columns = walk.shape[0];
  view.row_stride = walk.strides[0][dense];
  view.column_stride = walk.strides[0][0];
  view.batches = 1;
  view.batch = {1, {1}, {{0}, {0}}};
  int others = 0;
  int64_t out_stride = view.columns;
  for (int axis = 1; axis < walk.ndim; ++axis) {
    if (axis == dense) {
      view.out_stride = out_stride;
    } else {
      view.batch.shape[others] = walk.shape[axis];
      view.batch.strides[0][others] = walk.strides[0][axis];
      view.batch.strides[1][others] = out_stride;
      view.batch.ndim = ++others;
      view.batches *= walk.shape[axis];
    }
    out_stride *= walk.shape[axis];
  }
  const int64_t tiles = view.batches * ceil_div(view.rows, kTile) * ceil_div(view.columns, kTile);
  transpose_kernel<<<blocks_for_tasks(tiles), kThreads>>>(a, view, out);
  check_launch(name);
}

struct Same {
  __device__ float operator()(float x) const { return x; }
};

// The view, compact.
static void copy_view(const char* name, View a, float* out) {
  const int64_t size = element_count(a.layout);
  if (size == 0) return;
  Walk<1> walk;
  if (!collapse({&a.layout}, 0, a.layout.ndim, walk)) {
    copy_any_kernel<<<blocks_for_tasks(ceil_div(size, kThreads)), kThreads>>>(a.data, a.layout,
                                                                              size, out);
    check_launch(name);
  } else if (const int dense = denser_axis(walk); dense > 0) {
    copy_transposed(name, a.data + a.layout.offset, walk, dense, out);
  } else {
    elementwise(name, Same{}, {a}, out);
  }
}

}  // namespace needle::cuda
