// How the cpu reads views: a cursor that yields any view piece by piece as plain rows, the
// elementwise loop over cursors, and the copy that transposes in blocks. The plain meaning of a
// view is `at(view, i)` of layout.h; the tests compare `copy` with the taught `compact`.
// Included by strided_kernels.cc, once per instruction set.
#pragma once

#include <stdlib.h>
#include <string.h>

#include <cstdint>

#include "../common/kernels.h"
#include "scratch.h"
#include "thread_pool.h"

namespace needle::cpu::NEEDLE_ISA {

using std::int64_t;

// All counted in elements.
// An elementwise loop takes this many at once: 4 KiB, so that two operands and a result fit L1.
constexpr int64_t kPiece = 1024;
// Shorter runs are gathered: a call for each would cost more than the copy.
constexpr int64_t kDirectRun = 256;
// Less work than this, some 25 microseconds, is not worth waking a thread.
constexpr int64_t kGrain = 64 * 1024;
// From here on (64 KiB, beyond L1) strided reads are avoided.
constexpr int64_t kTransposeFrom = 16 * 1024;

static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

// ThreadPool::parallel_for for a callable body(begin, end).
template <class Body>
static void parallel_for(int64_t count, int64_t grain, const Body& body) {
  ThreadPool::instance().parallel_for(
      count, grain,
      [](void* context, int64_t begin, int64_t end) {
        (*static_cast<const Body*>(context))(begin, end);
      },
      const_cast<Body*>(&body));
}

// Writes into `out` the same view of [first, last) axes of `view` with as few axes as possible:
// axes of size 1 go, and neighbours merge where one step of the outer equals a walk along the whole
// inner one. Keeps row-major order. The view is not empty. At least one axis remains.
static void coalesce(const Layout& view, int first, int last, Layout& out) {
  out.ndim = 0;
  out.offset = view.offset;
  for (int axis = first; axis < last; ++axis) {
    const int64_t size = view.shape[axis];
    const int64_t stride = view.strides[axis];
    if (size == 1) continue;
    if (out.ndim > 0 && out.strides[out.ndim - 1] == size * stride) {
      out.shape[out.ndim - 1] *= size;
      out.strides[out.ndim - 1] = stride;
    } else {
      out.shape[out.ndim] = size;
      out.strides[out.ndim] = stride;
      ++out.ndim;
    }
  }
  if (out.ndim == 0) {
    out.ndim = 1;
    out.shape[0] = 1;
    out.strides[0] = 1;
  }
}

// Steps along the axes of a layout in row-major order, the last axis fastest, like the digits of an
// odometer.
struct Odometer {
  const Layout* view;
  int ndim;  // only the first `ndim` axes turn
  int64_t position;
  int64_t index[kMaxDims];

  void open(const Layout& layout, int axes, int64_t start) {
    view = &layout;
    ndim = axes;
    position = layout.offset;
    for (int axis = axes - 1; axis >= 0; --axis) {
      index[axis] = start % layout.shape[axis];
      start /= layout.shape[axis];
      position += index[axis] * layout.strides[axis];
    }
  }

  void step() {
    for (int axis = ndim - 1; axis >= 0; --axis) {
      position += view->strides[axis];
      if (++index[axis] < view->shape[axis]) return;
      index[axis] = 0;
      position -= view->shape[axis] * view->strides[axis];
    }
  }
};

// out[i] = a[i * stride]
static void gather(const float* a, int64_t stride, float* __restrict out, int64_t count) {
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] = a[i];
  } else if (stride == 0) {
    const float value = *a;
    for (int64_t i = 0; i < count; ++i) out[i] = value;
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = a[i * stride];
  }
}

// Reads a coalesced view in row-major order from element `start` on, in pieces.
class Cursor {
 public:
  // Both stay with the caller.
  void open(const float* data, const Layout& coalesced, int64_t start) {
    const int last = coalesced.ndim - 1;
    data_ = data;
    run_ = coalesced.shape[last];
    stride_ = coalesced.strides[last];
    gathered_ = 0;
    done_ = last == 0 ? start : start % run_;
    rows_.open(coalesced, last, last == 0 ? 0 : start / run_);
  }

  // Whether rows are read where they lie, without a buffer.
  bool in_place() const { return stride_ == 1 && (rows_.ndim == 0 || run_ >= kDirectRun); }

  // The elements that lie in a row from here on if they can be read in place, else `most`.
  int64_t reach(int64_t most) const { return in_place() ? smaller(most, run_ - done_) : most; }

  // Returns a pointer to the next `count` elements: in place if `reach` allows, else gathered into
  // `buffer`.
  const float* next(int64_t count, float* buffer) {
    if (in_place() && count <= run_ - done_) {
      const float* piece = data_ + rows_.position + done_;
      advance(count);
      return piece;
    }
    if (is_constant() && count <= gathered_) return buffer;
    for (int64_t filled = 0; filled < count;) {
      const int64_t part = smaller(count - filled, run_ - done_);
      gather(data_ + rows_.position + done_ * stride_, stride_, buffer + filled, part);
      advance(part);
      filled += part;
    }
    gathered_ = count;
    return buffer;
  }

 private:
  // One number all over: once gathered, the buffer stays right.
  bool is_constant() const { return stride_ == 0 && rows_.ndim == 0; }

  void advance(int64_t count) {
    done_ += count;
    if (done_ == run_) {
      done_ = 0;
      rows_.step();
    }
  }

  const float* data_;
  int64_t run_;       // length of the last axis
  int64_t stride_;    // and its stride
  int64_t done_;      // elements of the current run that have been read
  int64_t gathered_;  // elements that the last call of `next` put into its buffer
  Odometer rows_;
};

// One elementwise function on rows: out[i] from in[0][i], in[1][i], ....
using RowFunction = void (*)(const float* const* in, float* out, int64_t count);

// out = function(operands), all coalesced from one shape of `total` elements, each read through a
// cursor of its own.
template <int kOperands>
static void for_rows(const float* const* data, const Layout* layouts, int64_t total, float* out,
                     RowFunction function) {
  parallel_for(total, kGrain, [&](int64_t begin, int64_t end) {
    alignas(64) float buffers[kOperands][kPiece];
    Cursor cursors[kOperands];
    const float* rows[kOperands];
    bool needs_buffer = false;
    for (int k = 0; k < kOperands; ++k) {
      cursors[k].open(data[k], layouts[k], begin);
      needs_buffer |= !cursors[k].in_place();
    }
    for (int64_t i = begin; i < end;) {
      int64_t count = needs_buffer ? smaller(kPiece, end - i) : end - i;
      for (const Cursor& cursor : cursors) count = cursor.reach(count);
      for (int k = 0; k < kOperands; ++k) rows[k] = cursors[k].next(count, buffers[k]);
      function(rows, out + i, count);
      i += count;
    }
  });
}

static void copy_row(const float* const* in, float* out, int64_t count) {
  memcpy(out, in[0], count * sizeof(float));
}

constexpr int64_t kTile = 16;  // floats in a cache line: a tile reads and writes whole lines

// The axis, other than the last, along which a coalesced view lies densest in memory, if reading
// along it beats reading along the last one; else -1.
static int denser_axis(const Layout& view) {
  const int last = view.ndim - 1;
  if (view.shape[last] < kTile / 2) return -1;
  int best = -1;
  int64_t densest = llabs(view.strides[last]);
  for (int axis = 0; axis < last; ++axis) {
    const int64_t distance = llabs(view.strides[axis]);
    if (distance == 0 || distance >= densest || view.shape[axis] < kTile / 2) continue;
    densest = distance;
    best = axis;
  }
  return best;
}

using Quad = float __attribute__((vector_size(16)));

// out[r * kTile + c] = a[r + c * column_stride] for r < 4 and c < 4.
static inline void transpose_quads(const float* a, int64_t column_stride, float* out) {
  Quad c0, c1, c2, c3;
  __builtin_memcpy(&c0, a, sizeof c0);
  __builtin_memcpy(&c1, a + column_stride, sizeof c1);
  __builtin_memcpy(&c2, a + 2 * column_stride, sizeof c2);
  __builtin_memcpy(&c3, a + 3 * column_stride, sizeof c3);
  const Quad low01 = __builtin_shufflevector(c0, c1, 0, 4, 1, 5);
  const Quad low23 = __builtin_shufflevector(c2, c3, 0, 4, 1, 5);
  const Quad high01 = __builtin_shufflevector(c0, c1, 2, 6, 3, 7);
  const Quad high23 = __builtin_shufflevector(c2, c3, 2, 6, 3, 7);
  const Quad rows[4] = {__builtin_shufflevector(low01, low23, 0, 1, 4, 5),
                        __builtin_shufflevector(low01, low23, 2, 3, 6, 7),
                        __builtin_shufflevector(high01, high23, 0, 1, 4, 5),
                        __builtin_shufflevector(high01, high23, 2, 3, 6, 7)};
  for (int64_t r = 0; r < 4; ++r) __builtin_memcpy(out + r * kTile, &rows[r], sizeof rows[r]);
}

// out[r * out_stride + c] = a[r * row_stride + c * column_stride], where rows lie dense in `a`:
// through a small buffer, so that both memories are met in whole cache lines.
static void transpose_tile(const float* a, int64_t row_stride, int64_t column_stride, int64_t rows,
                           int64_t columns, float* out, int64_t out_stride) {
  alignas(64) float buffer[kTile * kTile];  // [row][column]
  if (rows == kTile && columns == kTile && row_stride == 1) {
    for (int64_t c = 0; c < kTile; c += 4) {
      for (int64_t r = 0; r < kTile; r += 4) {
        transpose_quads(a + r + c * column_stride, column_stride, buffer + r * kTile + c);
      }
    }
    for (int64_t r = 0; r < kTile; ++r) {
      memcpy(out + r * out_stride, buffer + r * kTile, kTile * sizeof(float));
    }
    return;
  }
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) {
      buffer[r * kTile + c] = a[r * row_stride + c * column_stride];
    }
  }
  for (int64_t r = 0; r < rows; ++r) {
    memcpy(out + r * out_stride, buffer + r * kTile, columns * sizeof(float));
  }
}

// The copy of a view whose axis `dense` lies denser in memory than its last one, which are the rows
// and columns here.
static void copy_transposed(const float* a, const Layout& view, int dense, float* out) {
  const int last = view.ndim - 1;
  const int64_t rows = view.shape[dense];
  const int64_t columns = view.shape[last];
  const int64_t out_stride = element_count(view, dense + 1, view.ndim);
  Layout outer_in, outer_out;  // the other axes, in `a` and in `out`
  outer_in.ndim = outer_out.ndim = 0;
  outer_in.offset = view.offset;
  outer_out.offset = 0;
  for (int axis = 0; axis < last; ++axis) {
    if (axis == dense) continue;
    const int k = outer_in.ndim++;
    outer_out.ndim = outer_in.ndim;
    outer_in.shape[k] = outer_out.shape[k] = view.shape[axis];
    outer_in.strides[k] = view.strides[axis];
    outer_out.strides[k] = element_count(view, axis + 1, view.ndim);
  }
  const int64_t bands = (rows + kTile - 1) / kTile;  // of kTile rows each
  parallel_for(element_count(outer_in) * bands, larger(1, kGrain / (kTile * columns)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t row = i % bands * kTile;
                   const int64_t band_rows = smaller(kTile, rows - row);
                   const float* band = a + at(outer_in, i / bands) + row * view.strides[dense];
                   float* band_out = out + at(outer_out, i / bands) + row * out_stride;
                   for (int64_t column = 0; column < columns; column += kTile) {
                     transpose_tile(band + column * view.strides[last], view.strides[dense],
                                    view.strides[last], band_rows, smaller(kTile, columns - column),
                                    band_out + column, out_stride);
                   }
                 }
               });
}

// The view, compact.
static void copy_view(View a, float* out) {
  const int64_t total = element_count(a.layout);
  if (total == 0) return;
  Layout view;
  coalesce(a.layout, 0, a.layout.ndim, view);
  const int dense = denser_axis(view);
  if (dense >= 0) {
    copy_transposed(a.data, view, dense, out);
  } else {
    for_rows<1>(&a.data, &view, total, out, copy_row);
  }
}

// out = function(operands), all of one shape. A large operand that lies across memory is transposed
// into scratch first: its strided reads would take a cache line for each number.
template <int kOperands>
static void elementwise(const View* operands, float* out, RowFunction function) {
  const int64_t total = element_count(operands[0].layout);
  if (total == 0) return;
  Layout layouts[kOperands];
  const float* data[kOperands];
  Scratch<float> scratch[kOperands];
  for (int k = 0; k < kOperands; ++k) {
    data[k] = operands[k].data;
    coalesce(operands[k].layout, 0, operands[k].layout.ndim, layouts[k]);
    const int dense = total < kTransposeFrom ? -1 : denser_axis(layouts[k]);
    if (dense < 0) continue;
    scratch[k].acquire(total);
    copy_transposed(data[k], layouts[k], dense, scratch[k].data);
    data[k] = scratch[k].data;
    set_flat(layouts[k], total);
  }
  for_rows<kOperands>(data, layouts, total, out, function);
}

}  // namespace needle::cpu::NEEDLE_ISA
