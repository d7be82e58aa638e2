// Layout: how a view lies in a flat buffer. Plain data and functions of internal linkage, so that
// every translation unit has its own copies. bind.h builds layouts from Python's tuples and checks
// them.
#pragma once

#include <cstdint>

/// SINCE full
// Marks what CUDA kernels call too.
#if defined(__CUDACC__)
#define NEEDLE_HOST_DEVICE __host__ __device__
#else
#define NEEDLE_HOST_DEVICE
#endif

/// END SINCE
namespace needle {

constexpr int kMaxDims = 32;

// Element (i0, i1, ...) of the view is element offset + i0 * strides[0] + i1 * strides[1] + ... of
// the buffer. Counted in elements; strides may be zero (broadcast) or negative (flip). Only the
// first `ndim` entries are set.
struct Layout {
  int ndim;
  std::int64_t offset;
  std::int64_t shape[kMaxDims];
  std::int64_t strides[kMaxDims];
};

// The number of elements of axes [first, last).
static inline std::int64_t element_count(const Layout& view, int first, int last) {
  std::int64_t count = 1;
  for (int axis = first; axis < last; ++axis) count *= view.shape[axis];
  return count;
}

static inline std::int64_t element_count(const Layout& view) {
  return element_count(view, 0, view.ndim);
}

/// SINCE full
// Where element `i` of the view, counted in row-major order, lies in the buffer: the plain meaning
// of a layout, and the oracle of every faster walk.
NEEDLE_HOST_DEVICE static inline std::int64_t at(const Layout& view, std::int64_t i) {
  std::int64_t position = view.offset;
  for (int axis = view.ndim - 1; axis >= 0; --axis) {
    position += (i % view.shape[axis]) * view.strides[axis];
    i /= view.shape[axis];
  }
  return position;
}

// Whether the view's elements lie in row-major order without gaps.
static inline bool is_row_major(const Layout& view) {
  std::int64_t stride = 1;
  for (int axis = view.ndim - 1; axis >= 0; --axis) {
    if (view.shape[axis] != 1 && view.strides[axis] != stride) return false;
    stride *= view.shape[axis];
  }
  return true;
}

// In a batched product (m, n) @ (n, p) with these leading axes: a batch that meets one and the same
// b, its rows following on each other in a, is one taller matrix. Takes such axes off both layouts,
// innermost first, and returns the rows that then are one matrix.
static inline std::int64_t merge_batch_rows(Layout& a_batch, Layout& b_batch, std::int64_t m,
                                            std::int64_t a_row_stride) {
  while (a_batch.ndim > 0) {
    const int last = a_batch.ndim - 1;
    const std::int64_t size = a_batch.shape[last];
    const bool follows = b_batch.strides[last] == 0 && a_batch.strides[last] == m * a_row_stride;
    if (size != 1 && !follows) break;
    m *= size;
    a_batch.ndim = b_batch.ndim = last;
  }
  return m;
}

/// END SINCE
// A whole buffer of `size` elements, in order.
static inline void set_flat(Layout& view, std::int64_t size) {
  view.ndim = 1;
  view.offset = 0;
  view.shape[0] = size;
  view.strides[0] = 1;
}

}  // namespace needle
