// Kernels: the table of functions that a compiled backend offers to bind.h, with what each may
// assume. bind.h has checked every size and layout.
#pragma once

#include <cstdint>

#include "layout.h"

namespace needle {

/// SINCE full
// A strided operand: the buffer and where the view lies in it. The `out` of a strided kernel is
// fresh and compact, and overlaps no operand.
struct View {
  const float* data;
  const Layout& layout;
};

using UnaryKernel = void (*)(View a, float* out);
using BinaryKernel = void (*)(View a, View b, float* out);  // layouts of one shape
using ScalarKernel = void (*)(View a, float value, float* out);
using ReduceKernel = void (*)(View a, int count, float* out);  // over the last `count` axes

/// END SINCE
struct Kernels {
  std::int64_t tile_size;  // the side of matmul_tiled's blocks

  // Between the host's memory and the backend's.
  /// SINCE full
  void (*to_host)(View a, float* host);
  /// END SINCE
  /// UNTIL hw5
  // void (*to_host)(const float* a, float* host, std::int64_t size);
  /// END UNTIL
  void (*from_host)(const float* host, float* out, std::int64_t size);

  // The course's kernels: compact buffers of `size` elements; `out` may be an operand of an ewise
  // or scalar kernel. A layout has at least one axis.
  void (*fill)(float* out, float value, std::int64_t size);
  void (*compact)(const float* a, float* out, const Layout& view);
  void (*ewise_setitem)(const float* a, float* out, const Layout& view);
  void (*scalar_setitem)(float value, float* out, const Layout& view);
  void (*ewise_add)(const float* a, const float* b, float* out, std::int64_t size);
  void (*ewise_mul)(const float* a, const float* b, float* out, std::int64_t size);
  void (*ewise_div)(const float* a, const float* b, float* out, std::int64_t size);
  void (*ewise_maximum)(const float* a, const float* b, float* out, std::int64_t size);
  void (*ewise_eq)(const float* a, const float* b, float* out, std::int64_t size);
  void (*ewise_ge)(const float* a, const float* b, float* out, std::int64_t size);
  void (*scalar_add)(const float* a, float value, float* out, std::int64_t size);
  void (*scalar_mul)(const float* a, float value, float* out, std::int64_t size);
  void (*scalar_div)(const float* a, float value, float* out, std::int64_t size);
  void (*scalar_power)(const float* a, float value, float* out, std::int64_t size);
  void (*scalar_maximum)(const float* a, float value, float* out, std::int64_t size);
  void (*scalar_eq)(const float* a, float value, float* out, std::int64_t size);
  void (*scalar_ge)(const float* a, float value, float* out, std::int64_t size);
  void (*ewise_log)(const float* a, float* out, std::int64_t size);
  void (*ewise_exp)(const float* a, float* out, std::int64_t size);
  void (*ewise_tanh)(const float* a, float* out, std::int64_t size);
  void (*matmul)(const float* a, const float* b, float* out, std::int64_t m, std::int64_t n,
                 std::int64_t p);
  void (*matmul_tiled)(const float* a, const float* b, float* out, std::int64_t m, std::int64_t n,
                       std::int64_t p);
  void (*reduce_sum)(const float* a, float* out, std::int64_t size, std::int64_t reduce_size);
  void (*reduce_max)(const float* a, float* out, std::int64_t size, std::int64_t reduce_size);
  /// SINCE full

  // The strided kernels: two members for a binary row of ops.def, one for a unary row.
#define BINARY(name, expression) \
  BinaryKernel name;             \
  ScalarKernel name##_scalar;
#define UNARY(name, expression) UnaryKernel name;
#include "ops.def"
  UnaryKernel copy;
  void (*where)(View condition, View a, View b, float* out);
  // Of matrices (n, d). `rows` lies in the host's memory and is checked: each is below n, in
  // add_rows below `size`.
  void (*take_rows)(View a, const std::int64_t* rows, std::int64_t count, float* out);
  void (*add_rows)(View a, const std::int64_t* rows, std::int64_t size, float* out);
  ReduceKernel sum, max, min;  // max and min: no empty reduced axis
  BinaryKernel batched_matmul;
  /// END SINCE
};

}  // namespace needle
