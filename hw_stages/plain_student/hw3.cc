// The plain student's answers to hw3, written from the handout alone.

/// BEGIN YOUR SOLUTION (hw3.cpu.compact)
static void compact_from(const float* a, float* out, const Layout& view, int axis, int64_t position,
                         int64_t& next) {
  if (axis == view.ndim) {
    out[next] = a[position];
    next = next + 1;
    return;
  }
  for (int64_t i = 0; i < view.shape[axis]; i++) {
    compact_from(a, out, view, axis + 1, position + i * view.strides[axis], next);
  }
}

static void compact(const float* a, float* out, const Layout& view) {
  if (element_count(view) == 0) return;
  int64_t next = 0;
  compact_from(a, out, view, 0, view.offset, next);
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.ewise_setitem)
static void ewise_setitem_from(const float* a, float* out, const Layout& view, int axis,
                               int64_t position, int64_t& next) {
  if (axis == view.ndim) {
    out[position] = a[next];
    next = next + 1;
    return;
  }
  for (int64_t i = 0; i < view.shape[axis]; i++) {
    ewise_setitem_from(a, out, view, axis + 1, position + i * view.strides[axis], next);
  }
}

static void ewise_setitem(const float* a, float* out, const Layout& view) {
  if (element_count(view) == 0) return;
  int64_t next = 0;
  ewise_setitem_from(a, out, view, 0, view.offset, next);
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.scalar_setitem)
static void scalar_setitem_from(float value, float* out, const Layout& view, int axis,
                                int64_t position) {
  if (axis == view.ndim) {
    out[position] = value;
    return;
  }
  for (int64_t i = 0; i < view.shape[axis]; i++) {
    scalar_setitem_from(value, out, view, axis + 1, position + i * view.strides[axis]);
  }
}

static void scalar_setitem(float value, float* out, const Layout& view) {
  if (element_count(view) == 0) return;
  scalar_setitem_from(value, out, view, 0, view.offset);
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.ewise_mul)
static void ewise_mul(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    out[i] = a[i] * b[i];
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.ewise_div)
static void ewise_div(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    out[i] = a[i] / b[i];
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.ewise_maximum)
static void ewise_maximum(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    if (a[i] != a[i]) {
      out[i] = a[i];
    } else if (b[i] != b[i]) {
      out[i] = b[i];
    } else if (a[i] < b[i]) {
      out[i] = b[i];
    } else {
      out[i] = a[i];
    }
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.ewise_eq)
static void ewise_eq(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    if (a[i] == b[i]) {
      out[i] = 1.0f;
    } else {
      out[i] = 0.0f;
    }
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.ewise_ge)
static void ewise_ge(const float* a, const float* b, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    if (a[i] >= b[i]) {
      out[i] = 1.0f;
    } else {
      out[i] = 0.0f;
    }
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.scalar_mul)
static void scalar_mul(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    out[i] = a[i] * value;
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.scalar_div)
static void scalar_div(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    out[i] = a[i] / value;
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.scalar_power)
static void scalar_power(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    out[i] = powf(a[i], value);
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.scalar_maximum)
static void scalar_maximum(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    if (a[i] != a[i]) {
      out[i] = a[i];
    } else if (value != value) {
      out[i] = value;
    } else if (a[i] < value) {
      out[i] = value;
    } else {
      out[i] = a[i];
    }
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.scalar_eq)
static void scalar_eq(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    if (a[i] == value) {
      out[i] = 1.0f;
    } else {
      out[i] = 0.0f;
    }
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.scalar_ge)
static void scalar_ge(const float* a, float value, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    if (a[i] >= value) {
      out[i] = 1.0f;
    } else {
      out[i] = 0.0f;
    }
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.ewise_log)
static void ewise_log(const float* a, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    out[i] = logf(a[i]);
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.ewise_exp)
static void ewise_exp(const float* a, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    out[i] = expf(a[i]);
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.ewise_tanh)
static void ewise_tanh(const float* a, float* out, int64_t size) {
  for (int64_t i = 0; i < size; i++) {
    out[i] = tanhf(a[i]);
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.reduce_sum)
static void reduce_sum(const float* a, float* out, int64_t size, int64_t reduce_size) {
  for (int64_t i = 0; i < size; i++) {
    float sum = 0.0f;
    for (int64_t j = 0; j < reduce_size; j++) {
      sum = sum + a[i * reduce_size + j];
    }
    out[i] = sum;
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.reduce_max)
static void reduce_max(const float* a, float* out, int64_t size, int64_t reduce_size) {
  for (int64_t i = 0; i < size; i++) {
    float largest = a[i * reduce_size];
    for (int64_t j = 1; j < reduce_size; j++) {
      const float x = a[i * reduce_size + j];
      if (x != x || x > largest) largest = x;
    }
    out[i] = largest;
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.matmul)
static void matmul(const float* a, const float* b, float* out, int64_t m, int64_t n, int64_t p) {
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < p; j++) {
      float sum = 0.0f;
      for (int64_t k = 0; k < n; k++) {
        sum = sum + a[i * n + k] * b[k * p + j];
      }
      out[i * p + j] = sum;
    }
  }
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cpu.matmul_tiled)
static int64_t tiled_index(int64_t row, int64_t column, int64_t columns) {
  const int64_t tile = row / kTileSize * (columns / kTileSize) + column / kTileSize;
  return tile * kTileSize * kTileSize + row % kTileSize * kTileSize + column % kTileSize;
}

static void matmul_tiled(const float* a, const float* b, float* out, int64_t m, int64_t n,
                         int64_t p) {
  for (int64_t i = 0; i < m; i++) {
    for (int64_t j = 0; j < p; j++) {
      float sum = 0.0f;
      for (int64_t k = 0; k < n; k++) {
        sum = sum + a[tiled_index(i, k, n)] * b[tiled_index(k, j, p)];
      }
      out[tiled_index(i, j, p)] = sum;
    }
  }
}
/// END YOUR SOLUTION
