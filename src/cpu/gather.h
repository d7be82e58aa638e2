// Rows of a matrix taken by their numbers, and added at them. bind.h has checked each number.
// Included by strided_kernels.cc, once per instruction set.
#pragma once

#include <string.h>

#include <cstdint>

#include "strided.h"

namespace needle::cpu::NEEDLE_ISA {

// out[i] = a[rows[i]] for i < count: (n, d) -> (count, d)
static void gather_rows(View a, const int64_t* rows, int64_t count, float* out) {
  const int64_t columns = a.layout.shape[1];
  if (columns == 0) return;
  const float* first = a.data + a.layout.offset;
  const int64_t row_stride = a.layout.strides[0];
  const int64_t column_stride = a.layout.strides[1];
  parallel_for(count, larger(1, kGrain / columns), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      gather(first + rows[i] * row_stride, column_stride, out + i * columns, columns);
    }
  });
}

// out[i] += a[i * stride]
static void add_strided(const float* a, int64_t stride, float* __restrict out, int64_t count) {
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) out[i] += a[i];
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] += a[i * stride];
  }
}

// out[rows[i]] += a[i], from zero, in the order of i: (count, d) -> (size, d). Threads share out
// the columns: rows may meet, and each element's sum keeps its order.
static void scatter_rows(View a, const int64_t* rows, int64_t size, float* out) {
  const int64_t count = a.layout.shape[0];
  const int64_t columns = a.layout.shape[1];
  parallel_for(size * columns, kGrain, [&](int64_t begin, int64_t end) {
    memset(out + begin, 0, static_cast<size_t>(end - begin) * sizeof(float));
  });
  if (count == 0) return;
  const float* first = a.data + a.layout.offset;
  const int64_t row_stride = a.layout.strides[0];
  const int64_t column_stride = a.layout.strides[1];
  parallel_for(columns, larger(kTile, kGrain / count), [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < count; ++i) {
      add_strided(first + i * row_stride + begin * column_stride, column_stride,
                  out + rows[i] * columns + begin, end - begin);
    }
  });
}

}  // namespace needle::cpu::NEEDLE_ISA
