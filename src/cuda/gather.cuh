// Rows of a matrix taken by their numbers, and added at them. bind.h has read the numbers to the
// host and checked each. Sums are in the order of the rows, so results are the same every time: no
// atomics; instead the host lists, for each row of the result, what it is the sum of.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "../common/kernels.h"
#include "launch.cuh"
#include "scratch.cuh"
#include "transfer.h"

namespace needle::cuda {

// A matrix (n, columns) where it lies.
struct Rows {
  const float* data;
  int64_t columns, row_stride, column_stride;
};

static Rows rows_of(View a) {
  return {a.data + a.layout.offset, a.layout.shape[1], a.layout.strides[0], a.layout.strides[1]};
}

// out (count, columns): out[i] = a[rows[i]]
__global__ void take_rows_kernel(Rows a, const int64_t* rows, int64_t count, float* out) {
  for (int64_t i = global_index(); i < count * a.columns; i += thread_count()) {
    const int64_t row = rows[i / a.columns];
    out[i] = a.data[row * a.row_stride + i % a.columns * a.column_stride];
  }
}

// out (size, columns): out[r] = the sum of the rows order[starts[r]], order[starts[r] + 1], ... up
// to starts[r + 1]. A row that is named often keeps its threads long.
__global__ void add_rows_kernel(Rows a, const int64_t* starts, const int64_t* order, int64_t size,
                                float* out) {
  for (int64_t i = global_index(); i < size * a.columns; i += thread_count()) {
    const int64_t row = i / a.columns;
    const float* column = a.data + i % a.columns * a.column_stride;
    float sum = 0.0f;
    for (int64_t k = starts[row]; k < starts[row + 1]; ++k) sum += column[order[k] * a.row_stride];
    out[i] = sum;
  }
}

static unsigned blocks_for_matrix(int64_t rows, int64_t columns) {
  return blocks_for_tasks(ceil_div(rows * columns, kThreads));
}

static void gather_rows(const char* name, View a, const int64_t* rows, int64_t count, float* out) {
  const Rows matrix = rows_of(a);
  if (count == 0 || matrix.columns == 0) return;
  const Scratch<int64_t> numbers(name, count);
  copy_to_device(name, rows, numbers.data, static_cast<size_t>(numbers.bytes));
  take_rows_kernel<<<blocks_for_matrix(count, matrix.columns), kThreads>>>(matrix, numbers.data,
                                                                           count, out);
  check_launch(name);
}

static void scatter_rows(const char* name, View a, const int64_t* rows, int64_t size, float* out) {
  const Rows matrix = rows_of(a);
  if (size == 0 || matrix.columns == 0) return;
  const int64_t count = a.layout.shape[0];
  // One buffer, so that one copy brings both: `starts`, then `order`.
  std::vector<int64_t> lists(static_cast<size_t>(size + 1 + count), 0);
  int64_t* starts = lists.data();
  int64_t* order = starts + size + 1;
  for (int64_t i = 0; i < count; ++i) ++starts[rows[i] + 1];
  for (int64_t r = 0; r < size; ++r) starts[r + 1] += starts[r];
  std::vector<int64_t> next(starts, starts + size);
  for (int64_t i = 0; i < count; ++i) order[next[static_cast<size_t>(rows[i])]++] = i;

  const Scratch<int64_t> numbers(name, size + 1 + count);
  copy_to_device(name, lists.data(), numbers.data, static_cast<size_t>(numbers.bytes));
  add_rows_kernel<<<blocks_for_matrix(size, matrix.columns), kThreads>>>(
      matrix, numbers.data, numbers.data + size + 1, size, out);
  check_launch(name);
}

}  // namespace needle::cuda
