// The rows of ops.def as functors: op::add{}(a, b). The includer defines NEEDLE_OP_NAMESPACE, its
// own namespace, where exp_f32 and its kin are found; NEEDLE_OP_QUALIFIER may mark the functors for
// a device.
#pragma once

#include <math.h>

#ifndef NEEDLE_OP_QUALIFIER
#define NEEDLE_OP_QUALIFIER
#endif

namespace NEEDLE_OP_NAMESPACE::op {

#define BINARY(name, expression)                                                        \
  struct name {                                                                         \
    NEEDLE_OP_QUALIFIER float operator()(float a, float b) const { return expression; } \
  };
#define UNARY(name, expression)                                                \
  struct name {                                                                \
    NEEDLE_OP_QUALIFIER float operator()(float x) const { return expression; } \
  };
#include "ops.def"

}  // namespace NEEDLE_OP_NAMESPACE::op
