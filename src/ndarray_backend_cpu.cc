// The course's kernels on the cpu, one plain function each: compact buffers, the output given by
// the caller. At the end stands the table through which common/bind.h calls them; it has checked
// every size before.
/// SINCE full
// The strided kernels, which NDArray calls, are in cpu/strided_kernels.cc; README.md tells the life
// of one call.
//
// Compiled once for each instruction set, into the namespace that NEEDLE_ISA names; cpu/dispatch.cc
// picks one. So this file may use nothing that the linker merges across object files (inline
// functions of other namespaces, the standard library's templates): code for a newer processor
// could leak into the others.
/// END SINCE
#include <math.h>
#include <string.h>

#include <cstdint>

/// UNTIL hw5
// #include "common/error.h"
/// END UNTIL
#include "common/kernels.h"
/// SINCE full
#include "cpu/strided_kernels.h"
/// END SINCE

/// SINCE full
namespace needle::cpu::NEEDLE_ISA {
/// END SINCE
/// UNTIL hw5
// namespace needle::cpu {
/// END UNTIL

using std::int64_t;

constexpr int64_t kTileSize = 8;  // the blocks of matmul_tiled

// numpy's memory is the cpu's own, so numbers are just copied.
/// UNTIL hw5
// static void to_host(const float* a, float* host, int64_t size) {
//   memcpy(host, a, static_cast<size_t>(size) * sizeof(float));
// }
//
/// END UNTIL
/// SINCE full
// The other way is `copy`, which reads views.
/// END SINCE
static void from_host(const float* host, float* out, int64_t size) {
  memcpy(out, host, static_cast<size_t>(size) * sizeof(float));
}

// Every element becomes `value`.
static void fill(float* out, float value, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = value;
}

// The next three kernels walk a view in row-major order. It has at least one axis here.

// The view of `a`, in row-major order, into the compact `out`.
/// BEGIN SOLUTION hw3.cpu.compact
// Row by row: `index` counts through all axes but the last, the inner loop through that one.

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
/// STUB
// static void compact(const float* a, float* out, const Layout& view) {
//   throw NotImplementedError("hw3.cpu.compact");
// }
/// END SOLUTION

// The compact `a` into the view of `out`.
/// BEGIN SOLUTION hw3.cpu.ewise_setitem
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
/// STUB
// static void ewise_setitem(const float* a, float* out, const Layout& view) {
//   throw NotImplementedError("hw3.cpu.ewise_setitem");
// }
/// END SOLUTION

// `value` into the view of `out`.
/// BEGIN SOLUTION hw3.cpu.scalar_setitem
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
/// STUB
// static void scalar_setitem(float value, float* out, const Layout& view) {
//   throw NotImplementedError("hw3.cpu.scalar_setitem");
// }
/// END SOLUTION

static void ewise_add(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] + b[i];
}

/// BEGIN SOLUTION hw3.cpu.ewise_mul
static void ewise_mul(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] * b[i];
}
/// STUB
// static void ewise_mul(const float* a, const float* b, float* out, int64_t size) {
//   throw NotImplementedError("hw3.cpu.ewise_mul");
// }
/// END SOLUTION

/// BEGIN SOLUTION hw3.cpu.ewise_div
static void ewise_div(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] / b[i];
}
/// STUB
// static void ewise_div(const float* a, const float* b, float* out, int64_t size) {
//   throw NotImplementedError("hw3.cpu.ewise_div");
// }
/// END SOLUTION

// A NaN on either side wins: a[i] != a[i] keeps one in a, and a comparison with a NaN in b is
// false.
/// BEGIN SOLUTION hw3.cpu.ewise_maximum
static void ewise_maximum(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = (a[i] > b[i] || a[i] != a[i]) ? a[i] : b[i];
}
/// STUB
// static void ewise_maximum(const float* a, const float* b, float* out, int64_t size) {
//   throw NotImplementedError("hw3.cpu.ewise_maximum");
// }
/// END SOLUTION

/// BEGIN SOLUTION hw3.cpu.ewise_eq
static void ewise_eq(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] == b[i] ? 1.0f : 0.0f;
}
/// STUB
// static void ewise_eq(const float* a, const float* b, float* out, int64_t size) {
//   throw NotImplementedError("hw3.cpu.ewise_eq");
// }
/// END SOLUTION

/// BEGIN SOLUTION hw3.cpu.ewise_ge
static void ewise_ge(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] >= b[i] ? 1.0f : 0.0f;
}
/// STUB
// static void ewise_ge(const float* a, const float* b, float* out, int64_t size) {
//   throw NotImplementedError("hw3.cpu.ewise_ge");
// }
/// END SOLUTION

static void scalar_add(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] + value;
}

/// BEGIN SOLUTION hw3.cpu.scalar_mul
static void scalar_mul(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] * value;
}
/// STUB
// static void scalar_mul(const float* a, float value, float* out, int64_t size) {
//   throw NotImplementedError("hw3.cpu.scalar_mul");
// }
/// END SOLUTION

/// BEGIN SOLUTION hw3.cpu.scalar_div
static void scalar_div(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] / value;
}
/// STUB
// static void scalar_div(const float* a, float value, float* out, int64_t size) {
//   throw NotImplementedError("hw3.cpu.scalar_div");
// }
/// END SOLUTION

/// BEGIN SOLUTION hw3.cpu.scalar_power
static void scalar_power(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = powf(a[i], value);
}
/// STUB
// static void scalar_power(const float* a, float value, float* out, int64_t size) {
//   throw NotImplementedError("hw3.cpu.scalar_power");
// }
/// END SOLUTION

/// BEGIN SOLUTION hw3.cpu.scalar_maximum
static void scalar_maximum(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = (a[i] > value || a[i] != a[i]) ? a[i] : value;
}
/// STUB
// static void scalar_maximum(const float* a, float value, float* out, int64_t size) {
//   throw NotImplementedError("hw3.cpu.scalar_maximum");
// }
/// END SOLUTION

/// BEGIN SOLUTION hw3.cpu.scalar_eq
static void scalar_eq(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] == value ? 1.0f : 0.0f;
}
/// STUB
// static void scalar_eq(const float* a, float value, float* out, int64_t size) {
//   throw NotImplementedError("hw3.cpu.scalar_eq");
// }
/// END SOLUTION

/// BEGIN SOLUTION hw3.cpu.scalar_ge
static void scalar_ge(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = a[i] >= value ? 1.0f : 0.0f;
}
/// STUB
// static void scalar_ge(const float* a, float value, float* out, int64_t size) {
//   throw NotImplementedError("hw3.cpu.scalar_ge");
// }
/// END SOLUTION

/// BEGIN SOLUTION hw3.cpu.ewise_log
static void ewise_log(const float* a, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = logf(a[i]);
}
/// STUB
// static void ewise_log(const float* a, float* out, int64_t size) {
//   throw NotImplementedError("hw3.cpu.ewise_log");
// }
/// END SOLUTION

/// BEGIN SOLUTION hw3.cpu.ewise_exp
static void ewise_exp(const float* a, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = expf(a[i]);
}
/// STUB
// static void ewise_exp(const float* a, float* out, int64_t size) {
//   throw NotImplementedError("hw3.cpu.ewise_exp");
// }
/// END SOLUTION

/// BEGIN SOLUTION hw3.cpu.ewise_tanh
static void ewise_tanh(const float* a, float* out, int64_t size) {
  for (int64_t i = 0; i < size; ++i) out[i] = tanhf(a[i]);
}
/// STUB
// static void ewise_tanh(const float* a, float* out, int64_t size) {
//   throw NotImplementedError("hw3.cpu.ewise_tanh");
// }
/// END SOLUTION

// (m, n) @ (n, p) -> (m, p). The output is not zero when it comes.
/// BEGIN SOLUTION hw3.cpu.matmul
static void matmul(const float* a, const float* b, float* out, int64_t m, int64_t n, int64_t p) {
  for (int64_t i = 0; i < m * p; ++i) out[i] = 0.0f;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t j = 0; j < p; ++j) out[i * p + j] += a[i * n + k] * b[k * p + j];
    }
  }
}
/// STUB
// static void matmul(const float* a, const float* b, float* out, int64_t m, int64_t n, int64_t p) {
//   throw NotImplementedError("hw3.cpu.matmul");
// }
/// END SOLUTION

/// BEGIN SOLUTION hw3.cpu.matmul_tiled
// A row of a tile: one vector register on most processors. may_alias: it is a view of floats, which
// lie where their owner put them.
using TileRow = float
    __attribute__((vector_size(kTileSize * sizeof(float)), aligned(alignof(float)), may_alias));

// out += a @ b on TILE x TILE blocks, each compact, none overlapping. A row of
// `out` stays in a register while the rows of `b` are added to it.
static void aligned_dot(const float* a, const TileRow* b, TileRow* out) {
  for (int64_t i = 0; i < kTileSize; ++i) {
    TileRow row = out[i];
    for (int64_t k = 0; k < kTileSize; ++k) row += a[i * kTileSize + k] * b[k];
    out[i] = row;
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
        const float* b_tile = b + (k * tile_columns + j) * kTileArea;
        float* out_tile = out + (i * tile_columns + j) * kTileArea;
        aligned_dot(a + (i * tile_inner + k) * kTileArea, reinterpret_cast<const TileRow*>(b_tile),
                    reinterpret_cast<TileRow*>(out_tile));
      }
    }
  }
}
/// STUB
// static void matmul_tiled(const float* a, const float* b, float* out, int64_t m, int64_t n,
//                          int64_t p) {
//   throw NotImplementedError("hw3.cpu.matmul_tiled");
// }
/// END SOLUTION

// out[i] = the sum of a[i * reduce_size .. (i + 1) * reduce_size), for `size` outputs.
/// BEGIN SOLUTION hw3.cpu.reduce_sum
static void reduce_sum(const float* a, float* out, int64_t size, int64_t reduce_size) {
  for (int64_t i = 0; i < size; ++i) {
    double total = 0.0;  // a float would lose the small terms of a long block
    for (int64_t j = 0; j < reduce_size; ++j) total += a[i * reduce_size + j];
    out[i] = static_cast<float>(total);
  }
}
/// STUB
// static void reduce_sum(const float* a, float* out, int64_t size, int64_t reduce_size) {
//   throw NotImplementedError("hw3.cpu.reduce_sum");
// }
/// END SOLUTION

// The same with the maximum; a NaN in a block is its maximum. No block is empty.
/// BEGIN SOLUTION hw3.cpu.reduce_max
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
/// STUB
// static void reduce_max(const float* a, float* out, int64_t size, int64_t reduce_size) {
//   throw NotImplementedError("hw3.cpu.reduce_max");
// }
/// END SOLUTION

// One a line, in the order of common/kernels.h.
// clang-format off
extern const Kernels kernels;
const Kernels kernels = {
    kTileSize,
    /// SINCE full
    copy,
    /// END SINCE
    /// UNTIL hw5
    // to_host,
    /// END UNTIL
    from_host,
    fill,
    compact,
    ewise_setitem,
    scalar_setitem,
    ewise_add,
    ewise_mul,
    ewise_div,
    ewise_maximum,
    ewise_eq,
    ewise_ge,
    scalar_add,
    scalar_mul,
    scalar_div,
    scalar_power,
    scalar_maximum,
    scalar_eq,
    scalar_ge,
    ewise_log,
    ewise_exp,
    ewise_tanh,
    matmul,
    matmul_tiled,
    reduce_sum,
    reduce_max,
/// SINCE full
#define BINARY(name, expression) name, name##_scalar,
#define UNARY(name, expression) name,
#include "common/ops.def"
    copy,
    where,
    take_rows,
    add_rows,
    sum,
    max,
    min,
    batched_matmul,
    /// END SINCE
};
// clang-format on

/// SINCE full
}  // namespace needle::cpu::NEEDLE_ISA
/// END SINCE
/// UNTIL hw5
// }  // namespace needle::cpu
/// END UNTIL
