// The strided kernels, as ndarray_backend_cpu.cc puts them into the table; kernels.h says what each
// may assume, strided_kernels.cc defines them.
#pragma once

#include "../common/kernels.h"

namespace needle::cpu::NEEDLE_ISA {

#define BINARY(name, expression)         \
  void name(View a, View b, float* out); \
  void name##_scalar(View a, float value, float* out);
#define UNARY(name, expression) void name(View a, float* out);
#include "../common/ops.def"

void copy(View a, float* out);
void where(View condition, View a, View b, float* out);
void take_rows(View a, const std::int64_t* rows, std::int64_t count, float* out);
void add_rows(View a, const std::int64_t* rows, std::int64_t size, float* out);
void sum(View a, int count, float* out);  // over the last `count` axes
void max(View a, int count, float* out);
void min(View a, int count, float* out);
void batched_matmul(View a, View b, float* out);

}  // namespace needle::cpu::NEEDLE_ISA
