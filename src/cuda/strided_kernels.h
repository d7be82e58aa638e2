// The strided kernels of cuda, defined in strided_kernels.cu; kernels.h says what each means.
#pragma once

#include <cstdint>

#include "../common/kernels.h"

namespace needle::cuda {

void to_host(View a, float* host);
void copy(View a, float* out);
void where(View condition, View a, View b, float* out);
void take_rows(View a, const std::int64_t* rows, std::int64_t count, float* out);
void add_rows(View a, const std::int64_t* rows, std::int64_t size, float* out);
void sum(View a, int count, float* out);
void max(View a, int count, float* out);
void min(View a, int count, float* out);
void batched_matmul(View a, View b, float* out);

#define BINARY(name, expression)         \
  void name(View a, View b, float* out); \
  void name##_scalar(View a, float value, float* out);
#define UNARY(name, expression) void name(View a, float* out);
#include "../common/ops.def"

}  // namespace needle::cuda
