// The strided kernels of the cpu: they walk views, share large work out to threads and write a
// compact result. Elementwise ones come from the rows of common/ops.def, the loops from strided.h,
// reduce.h and matmul.h. Compiled once for each instruction set, under the same rule as
// ndarray_backend_cpu.cc, which puts them into the table.
#include "strided_kernels.h"

#include <math.h>
#include <string.h>

#include <cstdint>

#include "vector_math.h"

#define NEEDLE_OP_NAMESPACE needle::cpu::NEEDLE_ISA
#include "../common/ops.h"
#include "gather.h"
#include "matmul.h"
#include "reduce.h"
#include "strided.h"

namespace needle::cpu::NEEDLE_ISA {

// Multiplications below which a thread is not worth waking.
constexpr int64_t kMatmulGrain = 1 << 20;

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

// x ** 0.5, whose value at minus zero and minus infinity is not the square root's.
struct PowerHalf {
  float operator()(float x) const { return x == -INFINITY ? INFINITY : sqrtf(x + 0.0f); }
};

// Squares and square roots, which training asks for all the time, have loops of their own.
template <>
void scalar<op::power>(View a, float value, float* out) {
  if (value == 2.0f) {
    binary<op::mul>(a, a, out);
  } else if (value == 0.5f) {
    unary<PowerHalf>(a, out);
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

void where(View condition, View a, View b, float* out) {
  const View operands[] = {condition, a, b};
  elementwise<3>(operands, out, where_row);
}

// (..., m, n) @ (..., n, p) -> (..., m, p), compact.
void batched_matmul(View a, View b, float* out) {
  const int axes = a.layout.ndim - 2;  // the leading ones
  Layout a_batch = a.layout;
  Layout b_batch = b.layout;
  a_batch.ndim = b_batch.ndim = axes;
  const int64_t n = a.layout.shape[axes + 1];
  const int64_t p = b.layout.shape[axes + 1];
  const int64_t* a_strides = a.layout.strides + axes;
  const int64_t* b_strides = b.layout.strides + axes;
  const int64_t m = merge_batch_rows(a_batch, b_batch, a.layout.shape[axes], a_strides[0]);
  const int64_t batches = element_count(a_batch);
  if (batches == 0 || m == 0 || p == 0) return;
  if (n == 0) {
    memset(out, 0, static_cast<size_t>(batches * m * p) * sizeof(float));
    return;
  }
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

void copy(View a, float* out) { copy_view(a, out); }

void take_rows(View a, const int64_t* rows, int64_t count, float* out) {
  gather_rows(a, rows, count, out);
}

void add_rows(View a, const int64_t* rows, int64_t size, float* out) {
  scatter_rows(a, rows, size, out);
}

void sum(View a, int count, float* out) { reduce<Sum>(a, count, out); }
void max(View a, int count, float* out) { reduce<Max>(a, count, out); }
void min(View a, int count, float* out) { reduce<Min>(a, count, out); }

#define BINARY(name, expression)                                         \
  void name(View a, View b, float* out) { binary<op::name>(a, b, out); } \
  void name##_scalar(View a, float value, float* out) { scalar<op::name>(a, value, out); }
#define UNARY(name, expression) \
  void name(View a, float* out) { unary<op::name>(a, out); }
#include "../common/ops.def"

}  // namespace needle::cpu::NEEDLE_ISA
