// Sums, maxima and minima over the last axes of any view, without making it compact. Two ways
// through memory: along the reduced axes, several vectors at a time; or, where a kept axis is the
// dense one, row by row into a row of accumulators. Float accumulators take only so many values
// before they are emptied into doubles, so the error of a sum does not grow with its length. Work
// is cut by shape, never by the number of threads: results do not depend on it.
#pragma once

#include <cstdint>

#include "scratch.h"
#include "strided.h"

namespace needle::cpu::NEEDLE_ISA {

#if defined(__AVX512F__)
constexpr int64_t kFoldLanes = 16;
#elif defined(__AVX__)
constexpr int64_t kFoldLanes = 8;
#else
constexpr int64_t kFoldLanes = 4;
#endif
using FoldVector = float __attribute__((vector_size(kFoldLanes * sizeof(float))));

static inline FoldVector load_fold(const float* a) {
  FoldVector v;
  __builtin_memcpy(&v, a, sizeof v);
  return v;
}

// How two values join, for vectors and for single numbers, and the value that joins without a
// trace.
struct Sum {
  static constexpr float kIdentity = 0.0f;
  static constexpr bool kKeepsNanByItself = true;
  template <class T>
  static T join(T total, T x) {
    return total + x;
  }
};

// x != x lets a NaN in; a NaN in `total` compares false with everything and stays.
struct Max {
  static constexpr float kIdentity = -__builtin_inff();
  static constexpr bool kKeepsNanByItself = false;
  template <class T>
  static T join_numbers(T total, T x) {
    return x > total ? x : total;
  }
  template <class T>
  static T join(T total, T x) {
    return ((x > total) | (x != x)) ? x : total;
  }
};

struct Min {
  static constexpr float kIdentity = __builtin_inff();
  static constexpr bool kKeepsNanByItself = false;
  template <class T>
  static T join_numbers(T total, T x) {
    return x < total ? x : total;
  }
  template <class T>
  static T join(T total, T x) {
    return ((x < total) | (x != x)) ? x : total;
  }
};

constexpr int64_t kAccumulators = 4;     // vectors: enough to hide the latency of an addition
constexpr int64_t kSegment = 64 * 1024;  // elements of one output that a task reduces
constexpr int64_t kColumns = 256;        // accumulators in a row: with their doubles 3 KiB of L1
constexpr int64_t kRowsPerTotal = 128;   // values that a float accumulator takes in
static_assert(kPiece <= kRowsPerTotal * kFoldLanes * kAccumulators);

constexpr int64_t kStep = kFoldLanes * kAccumulators;

// Joins a[0 .. count), where count is a multiple of kStep and not 0, lane by lane.
template <class Op>
static FoldVector fold_steps(const float* a, int64_t count) {
  FoldVector acc[kAccumulators];
  for (int64_t k = 0; k < kAccumulators; ++k) acc[k] = load_fold(a + k * kFoldLanes);
  for (int64_t i = kStep; i < count; i += kStep) {
    for (int64_t k = 0; k < kAccumulators; ++k) {
      acc[k] = Op::join(acc[k], load_fold(a + i + k * kFoldLanes));
    }
  }
  return Op::join(Op::join(acc[0], acc[1]), Op::join(acc[2], acc[3]));
}

// The same for Max and Min if there are only finite numbers; returns whether that was so. Keeping
// NaN takes twice the instructions of a maximum, and x * 0 tells in one whether x is finite.
template <class Op>
static bool fold_finite_steps(const float* a, int64_t count, FoldVector& joined) {
  FoldVector acc[kAccumulators];
  FoldVector zero[kAccumulators];
  for (int64_t k = 0; k < kAccumulators; ++k) {
    acc[k] = load_fold(a + k * kFoldLanes);
    zero[k] = acc[k] * 0.0f;
  }
  for (int64_t i = kStep; i < count; i += kStep) {
    for (int64_t k = 0; k < kAccumulators; ++k) {
      const FoldVector x = load_fold(a + i + k * kFoldLanes);
      acc[k] = Op::join_numbers(acc[k], x);
      zero[k] += x * 0.0f;
    }
  }
  joined = Op::join_numbers(Op::join_numbers(acc[0], acc[1]), Op::join_numbers(acc[2], acc[3]));
  const FoldVector all = zero[0] + zero[1] + zero[2] + zero[3];
  for (int64_t lane = 0; lane < kFoldLanes; ++lane) {
    if (all[lane] != 0.0f) return false;
  }
  return true;
}

// Joins a[0 .. count) for count <= kPiece.
template <class Op>
static double reduce_row(const float* a, int64_t count) {
  double total = Op::kIdentity;
  const int64_t whole = count - count % kStep;
  if (whole > 0) {
    FoldVector joined;
    bool done = false;
    if constexpr (!Op::kKeepsNanByItself) done = fold_finite_steps<Op>(a, whole, joined);
    if (!done) joined = fold_steps<Op>(a, whole);
    for (int64_t lane = 0; lane < kFoldLanes; ++lane) {
      total = Op::join(total, static_cast<double>(joined[lane]));
    }
  }
  for (int64_t i = whole; i < count; ++i) total = Op::join(total, static_cast<double>(a[i]));
  return total;
}

// Joins the next `count` elements of a cursor.
template <class Op>
static double reduce_run(Cursor& cursor, int64_t count) {
  alignas(64) float buffer[kPiece];
  double total = Op::kIdentity;
  while (count > 0) {
    const int64_t part = cursor.reach(smaller(count, kPiece));
    total = Op::join(total, reduce_row<Op>(cursor.next(part, buffer), part));
    count -= part;
  }
  return total;
}

// out[k] = the join of the k-th `length` elements of the view, for `outputs` outputs.
template <class Op>
static void reduce_along(View a, int64_t outputs, int64_t length, float* out) {
  Layout view;
  coalesce(a.layout, 0, a.layout.ndim, view);
  // Few long outputs are cut into segments, whose totals are joined in order.
  const int64_t segments = outputs < 16 ? (length + kSegment - 1) / kSegment : 1;
  if (segments == 1) {
    parallel_for(outputs, larger(1, kGrain / length), [&](int64_t begin, int64_t end) {
      Cursor cursor;
      cursor.open(a.data, view, begin * length);
      for (int64_t k = begin; k < end; ++k) {
        out[k] = static_cast<float>(reduce_run<Op>(cursor, length));
      }
    });
    return;
  }
  Scratch<double> totals;
  totals.acquire(outputs * segments);
  parallel_for(outputs * segments, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t start = i % segments * kSegment;
      Cursor cursor;
      cursor.open(a.data, view, i / segments * length + start);
      totals.data[i] = reduce_run<Op>(cursor, smaller(kSegment, length - start));
    }
  });
  for (int64_t k = 0; k < outputs; ++k) {
    double total = Op::kIdentity;
    for (int64_t s = 0; s < segments; ++s) total = Op::join(total, totals.data[k * segments + s]);
    out[k] = static_cast<float>(total);
  }
}

static inline void store_fold(float* out, FoldVector v) { __builtin_memcpy(out, &v, sizeof v); }

// acc[c] joins row[c]. Vectors by hand: compilers leave the comparisons of Max and Min as branches.
template <class Op>
static void join_row(float* __restrict acc, const float* row, int64_t count) {
  int64_t c = 0;
  for (; c + kFoldLanes <= count; c += kFoldLanes) {
    store_fold(acc + c, Op::join(load_fold(acc + c), load_fold(row + c)));
  }
  for (; c < count; ++c) acc[c] = Op::join(acc[c], row[c]);
}

// acc[c] joins the rows a, a + stride, ..., of `count` columns each; four at once, to read and
// write acc less often.
template <class Op>
static void join_rows(float* __restrict acc, const float* a, int64_t stride, int64_t rows,
                      int64_t count) {
  int64_t r = 0;
  for (; r + 4 <= rows; r += 4, a += 4 * stride) {
    int64_t c = 0;
    for (; c + kFoldLanes <= count; c += kFoldLanes) {
      const FoldVector first = Op::join(load_fold(a + c), load_fold(a + stride + c));
      const FoldVector second =
          Op::join(load_fold(a + 2 * stride + c), load_fold(a + 3 * stride + c));
      store_fold(acc + c, Op::join(load_fold(acc + c), Op::join(first, second)));
    }
    for (; c < count; ++c) {
      for (int64_t k = 0; k < 4; ++k) acc[c] = Op::join(acc[c], a[k * stride + c]);
    }
  }
  for (; r < rows; ++r, a += stride) join_row<Op>(acc, a, count);
}

// total[c] = the join of rows [first, last) of the reduced axes, for `count` <= kColumns dense
// columns at `a`.
template <class Op>
static void reduce_columns(const float* a, const Layout& reduced, int64_t first, int64_t last,
                           int64_t count, double* __restrict total) {
  const int axis = reduced.ndim - 1;
  const int64_t run = reduced.shape[axis];
  const int64_t stride = reduced.strides[axis];
  alignas(64) float acc[kColumns];
  for (int64_t c = 0; c < count; ++c) total[c] = Op::kIdentity;
  Odometer outer;
  outer.open(reduced, axis, first / run);
  int64_t done = first % run;
  for (int64_t row = first; row < last;) {
    for (int64_t c = 0; c < count; ++c) acc[c] = Op::kIdentity;
    const int64_t until = smaller(last, row + kRowsPerTotal);
    while (row < until) {
      const int64_t rows = smaller(until - row, run - done);
      join_rows<Op>(acc, a + outer.position + done * stride, stride, rows, count);
      row += rows;
      done += rows;
      if (done == run) {
        done = 0;
        outer.step();
      }
    }
    for (int64_t c = 0; c < count; ++c) total[c] = Op::join(total[c], static_cast<double>(acc[c]));
  }
}

// The kept axes and the reduced axes of a view, each coalesced, where the last kept axis is dense.
template <class Op>
static void reduce_across(const float* a, const Layout& kept, const Layout& reduced, int64_t length,
                          float* out) {
  const int64_t width = kept.shape[kept.ndim - 1];
  const int64_t blocks = (width + kColumns - 1) / kColumns;
  const int64_t bands =
      element_count(kept, 0, kept.ndim - 1) * blocks;  // (outer kept index, block of columns)
  // Few tall bands are cut into segments of rows, whose totals are joined in order.
  const int64_t segment =
      bands < 16 ? larger(kRowsPerTotal, kSegment / smaller(width, kColumns)) : length;
  const int64_t segments = (length + segment - 1) / segment;
  Scratch<double> totals;
  if (segments > 1) totals.acquire(bands * segments * kColumns);
  Layout outer = kept;
  outer.ndim = kept.ndim - 1;
  parallel_for(bands * segments, larger(1, kGrain / (segment * smaller(width, kColumns))),
               [&](int64_t begin, int64_t end) {
                 double local[kColumns];
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t band = i / segments;
                   const int64_t first = i % segments * segment;
                   const int64_t column = band % blocks * kColumns;
                   const int64_t count = smaller(kColumns, width - column);
                   double* total = segments == 1 ? local : totals.data + i * kColumns;
                   reduce_columns<Op>(a + at(outer, band / blocks) + column, reduced, first,
                                      smaller(length, first + segment), count, total);
                   if (segments > 1) continue;
                   float* row = out + band / blocks * width + column;
                   for (int64_t c = 0; c < count; ++c) row[c] = static_cast<float>(total[c]);
                 }
               });
  for (int64_t band = 0; segments > 1 && band < bands; ++band) {
    const int64_t column = band % blocks * kColumns;
    const int64_t count = smaller(kColumns, width - column);
    double* total = totals.data + band * segments * kColumns;
    for (int64_t s = 1; s < segments; ++s) {
      for (int64_t c = 0; c < count; ++c) total[c] = Op::join(total[c], total[s * kColumns + c]);
    }
    float* row = out + band / blocks * width + column;
    for (int64_t c = 0; c < count; ++c) row[c] = static_cast<float>(total[c]);
  }
}

// Over the last `count` axes; an empty reduced axis gives the identity.
template <class Op>
static void reduce(View a, int count, float* out) {
  const int first = a.layout.ndim - count;
  const int64_t outputs = element_count(a.layout, 0, first);
  const int64_t length = element_count(a.layout, first, a.layout.ndim);
  if (outputs == 0) return;
  if (length == 0) {
    for (int64_t i = 0; i < outputs; ++i) out[i] = Op::kIdentity;
    return;
  }
  Layout kept, reduced;
  coalesce(a.layout, 0, first, kept);
  coalesce(a.layout, first, a.layout.ndim, reduced);
  const bool kept_is_dense = kept.strides[kept.ndim - 1] == 1 && kept.shape[kept.ndim - 1] > 1;
  if (kept_is_dense && reduced.strides[reduced.ndim - 1] != 1) {
    reduced.offset = 0;  // counted once, with the kept axes
    reduce_across<Op>(a.data, kept, reduced, length, out);
  } else {
    reduce_along<Op>(a, outputs, length, out);
  }
}

}  // namespace needle::cpu::NEEDLE_ISA
