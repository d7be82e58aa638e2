// The strided kernels of cuda: they walk views and write a compact result. Elementwise ones come
// from the rows of common/ops.def, the kernels from strided.cuh, reduce.cuh, matmul.cuh and
// gather.cuh. ndarray_backend_cuda.cu puts them into the table.
#include <cuda_runtime.h>
#include <math.h>

#include <cstdint>

#include "math.cuh"
#include "strided_kernels.h"

#define NEEDLE_OP_NAMESPACE needle::cuda
#define NEEDLE_OP_QUALIFIER __device__
#include "../common/ops.h"
#include "gather.cuh"
#include "matmul.cuh"
#include "reduce.cuh"
#include "scratch.cuh"
#include "strided.cuh"
#include "transfer.h"

namespace needle::cuda {

// A binary function with its second operand given.
template <class Op>
struct WithScalar {
  float value;
  __device__ float operator()(float x) const { return Op{}(x, value); }
};

template <class Op>
static void scalar(const char* name, View a, float value, float* out) {
  elementwise(name, WithScalar<Op>{value}, {a}, out);
}

// x ** 0.5, whose value at minus zero and minus infinity is not the square root's.
struct PowerHalf {
  __device__ float operator()(float x) const { return x == -INFINITY ? INFINITY : sqrtf(x + 0.0f); }
};

struct Square {
  __device__ float operator()(float x) const { return x * x; }
};

// Squares and square roots, which training asks for all the time, have kernels of their own.
template <>
void scalar<op::power>(const char* name, View a, float value, float* out) {
  if (value == 2.0f) {
    elementwise(name, Square{}, {a}, out);
  } else if (value == 0.5f) {
    elementwise(name, PowerHalf{}, {a}, out);
  } else {
    elementwise(name, WithScalar<op::power>{value}, {a}, out);
  }
}

struct Where {
  __device__ float operator()(float condition, float a, float b) const {
    return condition != 0.0f ? a : b;
  }
};

void where(View condition, View a, View b, float* out) {
  elementwise("where", Where{}, {condition, a, b}, out);
}

void copy(View a, float* out) { copy_view("copy", a, out); }

// Only what the view shows travels, and in one piece.
void to_host(View a, float* host) {
  constexpr const char* kName = "to_numpy";
  const std::int64_t size = element_count(a.layout);
  const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(float);
  if (size == 0) return;
  if (is_row_major(a.layout)) {
    copy_to_host(kName, a.data + a.layout.offset, host, bytes);
    return;
  }
  const Scratch<float> compact(kName, size);
  copy_view(kName, a, compact.data);
  copy_to_host(kName, compact.data, host, bytes);
}

void take_rows(View a, const std::int64_t* rows, std::int64_t count, float* out) {
  gather_rows("take_rows", a, rows, count, out);
}

void add_rows(View a, const std::int64_t* rows, std::int64_t size, float* out) {
  scatter_rows("add_rows", a, rows, size, out);
}

void sum(View a, int count, float* out) { reduce<Sum>("sum", a, count, out); }
void max(View a, int count, float* out) { reduce<Max>("max", a, count, out); }
void min(View a, int count, float* out) { reduce<Min>("min", a, count, out); }

void batched_matmul(View a, View b, float* out) { multiply("batched_matmul", a, b, out); }

#define BINARY(name, expression)                                                         \
  void name(View a, View b, float* out) { elementwise(#name, op::name{}, {a, b}, out); } \
  void name##_scalar(View a, float value, float* out) {                                  \
    scalar<op::name>(#name "_scalar", a, value, out);                                    \
  }
#define UNARY(name, expression) \
  void name(View a, float* out) { elementwise(#name, op::name{}, {a}, out); }
#include "../common/ops.def"

}  // namespace needle::cuda
