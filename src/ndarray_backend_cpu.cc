// The cpu kernels. First the course's, one plain function each: compact buffers, the output given
// by the caller. Then the strided ones, which walk views: made from the rows of common/ops.def by
// the loops of cpu/strided.h and cpu/reduce.h. At the end the table through which common/bind.h
// calls them; README.md tells the life of one call.
//
// This file is compiled once for each instruction set, into the namespace that NEEDLE_ISA names;
// cpu/dispatch.cc picks one. So it may use nothing that the linker merges across object files
// (inline functions of other namespaces, the standard library's templates): code for a newer
// processor could leak into the others.
#include <math.h>
#include <string.h>

#include <cstdint>

#include "common/kernels.h"
#include "cpu/vector_math.h"

#define NEEDLE_OP_NAMESPACE needle::cpu::NEEDLE_ISA
#include "common/ops.h"
#include "cpu/matmul.h"
#include "cpu/reduce.h"
#include "cpu/strided.h"

namespace needle::cpu::NEEDLE_ISA {

constexpr int64_t kTileSize = 8;  // the blocks of matmul_tiled
constexpr int64_t kMatmulGrain = 1
                                 << 20;  // multiplications below which a thread is not worth waking

// numpy's memory is the cpu's own: to_host is `copy`, and this is all the other way.
static void from_host(const float* host, float* out, int64_t size) {
  memcpy(out, host, static_cast<size_t>(size) * sizeof(float));
}

// Every element becomes `value`.
static void fill(float* out, float value, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = value;
}

// The next three go row by row: `index` counts through all axes but the last, the inner loop
// through that one. A view has at least one axis here.

// Moves `index` to the next row of the view; the axis before the last turns fastest.
static void next_row(int64_t* index, const Layout& view) {
  for (int axis = view.ndim - 2; axis >= 0; --axis) {
    if (++index[axis] < view.shape[axis]) return;
    index[axis] = 0;
  }
}

// Where the row at `index` begins in the buffer.
static int64_t row_position(const int64_t* index, const Layout& view) {
  int64_t position = view.offset;
  for (int axis = 0; axis < view.ndim - 1; ++axis) position += index[axis] * view.strides[axis];
  return position;
}

// The view of `a`, in row-major order, into `out`.
static void compact(const float* a, float* out, const Layout& view) {
  const int64_t size = element_count(view);
  const int64_t width = view.shape[view.ndim - 1];
  const int64_t stride = view.strides[view.ndim - 1];
  int64_t index[kMaxDims] = {};
  for (int64_t done = 0; done < size; done += width) {
    const float* row = a + row_position(index, view);
    for (int64_t i = 0; i < width; ++i) out[done + i] = row[i * stride];
    next_row(index, view);
  }
}

// The compact `a` into the view of `out`.
static void ewise_setitem(const float* a, float* out, const Layout& view) {
  const int64_t size = element_count(view);
  const int64_t width = view.shape[view.ndim - 1];
  const int64_t stride = view.strides[view.ndim - 1];
  int64_t index[kMaxDims] = {};
  for (int64_t done = 0; done < size; done += width) {
    float* row = out + row_position(index, view);
    for (int64_t i = 0; i < width; ++i) row[i * stride] = a[done + i];
    next_row(index, view);
  }
}

// `value` into the view of `out`.
static void scalar_setitem(float value, float* out, const Layout& view) {
  const int64_t size = element_count(view);
  const int64_t width = view.shape[view.ndim - 1];
  const int64_t stride = view.strides[view.ndim - 1];
  int64_t index[kMaxDims] = {};
  for (int64_t done = 0; done < size; done += width) {
    float* row = out + row_position(index, view);
    for (int64_t i = 0; i < width; ++i) row[i * stride] = value;
    next_row(index, view);
  }
}

static void ewise_add(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] + b[i];
}

static void ewise_mul(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] * b[i];
}

static void ewise_div(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] / b[i];
}

// A NaN on either side wins: a[i] != a[i] keeps one in a, and a comparison with a NaN in b is
// false.
static void ewise_maximum(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = (a[i] > b[i] || a[i] != a[i]) ? a[i] : b[i];
}

static void ewise_eq(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] == b[i] ? 1.0f : 0.0f;
}

static void ewise_ge(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] >= b[i] ? 1.0f : 0.0f;
}

static void scalar_add(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] + value;
}

static void scalar_mul(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] * value;
}

static void scalar_div(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] / value;
}

static void scalar_power(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = powf(a[i], value);
}

static void scalar_maximum(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = (a[i] > value || a[i] != a[i]) ? a[i] : value;
}

static void scalar_eq(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] == value ? 1.0f : 0.0f;
}

static void scalar_ge(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] >= value ? 1.0f : 0.0f;
}

static void ewise_log(const float* a, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = logf(a[i]);
}

static void ewise_exp(const float* a, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = expf(a[i]);
}

static void ewise_tanh(const float* a, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = tanhf(a[i]);
}

// (m, n) @ (n, p) -> (m, p). The output is not zero when it comes.
static void matmul(const float* a, const float* b, float* out, int64_t m, int64_t n, int64_t p) {
  for (int64_t i = 0; i < m * p; ++i) out[i] = 0.0f;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t j = 0; j < p; ++j) out[i * p + j] += a[i * n + k] * b[k * p + j];
    }
  }
}

// out += a @ b on TILE x TILE blocks, each compact and aligned, none overlapping: what the compiler
// needs to know to keep rows of `out` in vector registers.
static void aligned_dot(const float* __restrict a, const float* __restrict b,
                        float* __restrict out) {
  a = static_cast<const float*>(__builtin_assume_aligned(a, kTileSize * sizeof(float)));
  b = static_cast<const float*>(__builtin_assume_aligned(b, kTileSize * sizeof(float)));
  out = static_cast<float*>(__builtin_assume_aligned(out, kTileSize * sizeof(float)));
  for (int64_t i = 0; i < kTileSize; ++i) {
    for (int64_t k = 0; k < kTileSize; ++k) {
      for (int64_t j = 0; j < kTileSize; ++j)
        out[i * kTileSize + j] += a[i * kTileSize + k] * b[k * kTileSize + j];
    }
  }
}

// The same on tiled buffers: (m/T, n/T, T, T) @ (n/T, p/T, T, T) -> (m/T, p/T, T, T); T divides m,
// n and p.
static void matmul_tiled(const float* a, const float* b, float* out, int64_t m, int64_t n,
                         int64_t p) {
  constexpr int64_t kTileArea = kTileSize * kTileSize;
  const int64_t tile_rows = m / kTileSize;
  const int64_t tile_inner = n / kTileSize;
  const int64_t tile_columns = p / kTileSize;
  for (int64_t i = 0; i < m * p; ++i) out[i] = 0.0f;
  for (int64_t i = 0; i < tile_rows; ++i) {
    for (int64_t j = 0; j < tile_columns; ++j) {
      for (int64_t k = 0; k < tile_inner; ++k) {
        aligned_dot(a + (i * tile_inner + k) * kTileArea, b + (k * tile_columns + j) * kTileArea,
                    out + (i * tile_columns + j) * kTileArea);
      }
    }
  }
}

// out[i] = the sum of a[i * reduce_size .. (i + 1) * reduce_size), for `size` outputs.
static void reduce_sum(const float* a, float* out, int64_t size, int64_t reduce_size) {
  for (int64_t i = 0; i < size; ++i) {
    double total = 0.0;  // a float would lose the small terms of a long block
    for (int64_t j = 0; j < reduce_size; ++j) total += a[i * reduce_size + j];
    out[i] = static_cast<float>(total);
  }
}

// The same with the maximum; a NaN in a block is its maximum. No block is empty.
static void reduce_max(const float* a, float* out, int64_t size, int64_t reduce_size) {
  for (int64_t i = 0; i < size; ++i) {
    float largest = a[i * reduce_size];
    for (int64_t j = 1; j < reduce_size; ++j) {
      const float x = a[i * reduce_size + j];
      if (x > largest || x != x) largest = x;
    }
    out[i] = largest;
  }
}

// The strided kernels.

template <class Op>
static void unary_row(const float* const* in, float* __restrict out, int64_t count) {
  const float* __restrict x = in[0];
  for (int64_t i = 0; i < count; ++i) out[i] = Op{}(x[i]);
}

template <class Op>
static void unary(View a, float* out) {
  elementwise<1>(&a, out, unary_row<Op>);
}

template <class Op>
static void binary_row(const float* const* in, float* __restrict out, int64_t count) {
  const float* __restrict a = in[0];
  const float* __restrict b = in[1];
  for (int64_t i = 0; i < count; ++i) out[i] = Op{}(a[i], b[i]);
}

template <class Op>
static void binary(View a, View b, float* out) {
  const View operands[] = {a, b};
  elementwise<2>(operands, out, binary_row<Op>);
}

// A scalar is a view of one number whose strides are all zero.
static void broadcast_scalar(const Layout& like, Layout& layout) {
  layout.ndim = like.ndim;
  layout.offset = 0;
  for (int axis = 0; axis < like.ndim; ++axis) {
    layout.shape[axis] = like.shape[axis];
    layout.strides[axis] = 0;
  }
}

template <class Op>
static void binary_scalar(View a, float value, float* out) {
  Layout layout;
  broadcast_scalar(a.layout, layout);
  binary<Op>(a, View{&value, layout}, out);
}

template <class Op>
static void scalar(View a, float value, float* out) {
  binary_scalar<Op>(a, value, out);
}

// The square, which training asks for all the time, is a product.
template <>
void scalar<op::power>(View a, float value, float* out) {
  if (value == 2.0f) {
    binary<op::mul>(a, a, out);
  } else {
    binary_scalar<op::power>(a, value, out);
  }
}

static void where_row(const float* const* in, float* __restrict out, int64_t count) {
  const float* __restrict condition = in[0];
  const float* __restrict a = in[1];
  const float* __restrict b = in[2];
  for (int64_t i = 0; i < count; ++i) out[i] = condition[i] != 0.0f ? a[i] : b[i];
}

static void where(View condition, View a, View b, float* out) {
  const View operands[] = {condition, a, b};
  elementwise<3>(operands, out, where_row);
}

// (..., m, n) @ (..., n, p) -> (..., m, p), compact.
static void batched_matmul(View a, View b, float* out) {
  const int axes = a.layout.ndim - 2;  // the leading ones
  Layout a_batch = a.layout;
  Layout b_batch = b.layout;
  a_batch.ndim = b_batch.ndim = axes;
  int64_t m = a.layout.shape[axes];
  const int64_t n = a.layout.shape[axes + 1];
  const int64_t p = b.layout.shape[axes + 1];
  const int64_t* a_strides = a.layout.strides + axes;
  const int64_t* b_strides = b.layout.strides + axes;
  // A batch that meets one and the same b, its rows following on each other, is one taller matrix.
  while (a_batch.ndim > 0) {
    const int last = a_batch.ndim - 1;
    const int64_t size = a_batch.shape[last];
    if (size != 1 && (b_batch.strides[last] != 0 || a_batch.strides[last] != m * a_strides[0]))
      break;
    m *= size;
    a_batch.ndim = b_batch.ndim = last;
  }
  const int64_t batches = element_count(a_batch);
  if (batches == 0 || m == 0 || p == 0) return;
  if (n == 0) return fill(out, 0.0f, batches * m * p);
  ThreadPool& pool = ThreadPool::instance();
  // Many small matrices are shared out whole; a large one is shared out inside matmul_packed.
  const int64_t grain = larger(1, kMatmulGrain / (m * n * p));
  parallel_for(batches, batches < 2 * pool.size() ? batches : grain,
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   matmul_packed(a.data + at(a_batch, i), a_strides[0], a_strides[1],
                                 b.data + at(b_batch, i), b_strides[0], b_strides[1],
                                 out + i * m * p, m, n, p, pool);
                 }
               });
}

extern const Kernels kernels;
const Kernels kernels = {
    kTileSize,      copy,       from_host,   fill,        compact,       ewise_setitem,
    scalar_setitem, ewise_add,  ewise_mul,   ewise_div,   ewise_maximum, ewise_eq,
    ewise_ge,       scalar_add, scalar_mul,  scalar_div,  scalar_power,  scalar_maximum,
    scalar_eq,      scalar_ge,  ewise_log,   ewise_exp,   ewise_tanh,    matmul,
    matmul_tiled,   reduce_sum, reduce_max,
#define BINARY(name, expression) binary<op::name>, scalar<op::name>,
#define UNARY(name, expression) unary<op::name>,
#include "common/ops.def"
    copy,           where,      reduce<Sum>, reduce<Max>, reduce<Min>,   batched_matmul,
};

}  // namespace needle::cpu::NEEDLE_ISA
