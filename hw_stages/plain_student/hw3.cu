// The plain student's answers to hw3, written from the handout alone.

/// BEGIN YOUR SOLUTION (hw3.cuda.compact)
__device__ static int64_t position_of(const Layout& view, int64_t i) {
  int64_t position = view.offset;
  for (int axis = 0; axis < view.ndim; axis++) {
    int64_t behind = 1;
    for (int later = axis + 1; later < view.ndim; later++) {
      behind = behind * view.shape[later];
    }
    position = position + i / behind % view.shape[axis] * view.strides[axis];
  }
  return position;
}

__global__ void compact_kernel(const float* a, float* out, Layout view, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
    out[i] = a[position_of(view, i)];
  }
}

static void compact(const float* a, float* out, const Layout& view) {
  const int64_t size = element_count(view);
  if (size == 0) return;
  compact_kernel<<<blocks_for("compact", size), kThreads>>>(a, out, view, size);
  check_launch("compact");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.ewise_setitem)
__global__ void ewise_setitem_kernel(const float* a, float* out, Layout view, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
    out[position_of(view, i)] = a[i];
  }
}

static void ewise_setitem(const float* a, float* out, const Layout& view) {
  const int64_t size = element_count(view);
  if (size == 0) return;
  ewise_setitem_kernel<<<blocks_for("ewise_setitem", size), kThreads>>>(a, out, view, size);
  check_launch("ewise_setitem");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.scalar_setitem)
__global__ void scalar_setitem_kernel(float value, float* out, Layout view, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
    out[position_of(view, i)] = value;
  }
}

static void scalar_setitem(float value, float* out, const Layout& view) {
  const int64_t size = element_count(view);
  if (size == 0) return;
  scalar_setitem_kernel<<<blocks_for("scalar_setitem", size), kThreads>>>(value, out, view, size);
  check_launch("scalar_setitem");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.ewise_mul)
__global__ void ewise_mul_kernel(const float* a, const float* b, float* out, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
    out[i] = a[i] * b[i];
  }
}

static void ewise_mul(const float* a, const float* b, float* out, int64_t size) {
  if (size == 0) return;
  ewise_mul_kernel<<<blocks_for("ewise_mul", size), kThreads>>>(a, b, out, size);
  check_launch("ewise_mul");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.ewise_div)
__global__ void ewise_div_kernel(const float* a, const float* b, float* out, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
    out[i] = a[i] / b[i];
  }
}

static void ewise_div(const float* a, const float* b, float* out, int64_t size) {
  if (size == 0) return;
  ewise_div_kernel<<<blocks_for("ewise_div", size), kThreads>>>(a, b, out, size);
  check_launch("ewise_div");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.ewise_maximum)
__global__ void ewise_maximum_kernel(const float* a, const float* b, float* out, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
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

static void ewise_maximum(const float* a, const float* b, float* out, int64_t size) {
  if (size == 0) return;
  ewise_maximum_kernel<<<blocks_for("ewise_maximum", size), kThreads>>>(a, b, out, size);
  check_launch("ewise_maximum");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.ewise_eq)
__global__ void ewise_eq_kernel(const float* a, const float* b, float* out, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
    if (a[i] == b[i]) {
      out[i] = 1.0f;
    } else {
      out[i] = 0.0f;
    }
  }
}

static void ewise_eq(const float* a, const float* b, float* out, int64_t size) {
  if (size == 0) return;
  ewise_eq_kernel<<<blocks_for("ewise_eq", size), kThreads>>>(a, b, out, size);
  check_launch("ewise_eq");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.ewise_ge)
__global__ void ewise_ge_kernel(const float* a, const float* b, float* out, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
    if (a[i] >= b[i]) {
      out[i] = 1.0f;
    } else {
      out[i] = 0.0f;
    }
  }
}

static void ewise_ge(const float* a, const float* b, float* out, int64_t size) {
  if (size == 0) return;
  ewise_ge_kernel<<<blocks_for("ewise_ge", size), kThreads>>>(a, b, out, size);
  check_launch("ewise_ge");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.scalar_mul)
__global__ void scalar_mul_kernel(const float* a, float value, float* out, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
    out[i] = a[i] * value;
  }
}

static void scalar_mul(const float* a, float value, float* out, int64_t size) {
  if (size == 0) return;
  scalar_mul_kernel<<<blocks_for("scalar_mul", size), kThreads>>>(a, value, out, size);
  check_launch("scalar_mul");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.scalar_div)
__global__ void scalar_div_kernel(const float* a, float value, float* out, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
    out[i] = a[i] / value;
  }
}

static void scalar_div(const float* a, float value, float* out, int64_t size) {
  if (size == 0) return;
  scalar_div_kernel<<<blocks_for("scalar_div", size), kThreads>>>(a, value, out, size);
  check_launch("scalar_div");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.scalar_power)
__global__ void scalar_power_kernel(const float* a, float value, float* out, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
    out[i] = powf(a[i], value);
  }
}

static void scalar_power(const float* a, float value, float* out, int64_t size) {
  if (size == 0) return;
  scalar_power_kernel<<<blocks_for("scalar_power", size), kThreads>>>(a, value, out, size);
  check_launch("scalar_power");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.scalar_maximum)
__global__ void scalar_maximum_kernel(const float* a, float value, float* out, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
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

static void scalar_maximum(const float* a, float value, float* out, int64_t size) {
  if (size == 0) return;
  scalar_maximum_kernel<<<blocks_for("scalar_maximum", size), kThreads>>>(a, value, out, size);
  check_launch("scalar_maximum");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.scalar_eq)
__global__ void scalar_eq_kernel(const float* a, float value, float* out, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
    if (a[i] == value) {
      out[i] = 1.0f;
    } else {
      out[i] = 0.0f;
    }
  }
}

static void scalar_eq(const float* a, float value, float* out, int64_t size) {
  if (size == 0) return;
  scalar_eq_kernel<<<blocks_for("scalar_eq", size), kThreads>>>(a, value, out, size);
  check_launch("scalar_eq");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.scalar_ge)
__global__ void scalar_ge_kernel(const float* a, float value, float* out, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
    if (a[i] >= value) {
      out[i] = 1.0f;
    } else {
      out[i] = 0.0f;
    }
  }
}

static void scalar_ge(const float* a, float value, float* out, int64_t size) {
  if (size == 0) return;
  scalar_ge_kernel<<<blocks_for("scalar_ge", size), kThreads>>>(a, value, out, size);
  check_launch("scalar_ge");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.ewise_log)
__global__ void ewise_log_kernel(const float* a, float* out, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
    out[i] = logf(a[i]);
  }
}

static void ewise_log(const float* a, float* out, int64_t size) {
  if (size == 0) return;
  ewise_log_kernel<<<blocks_for("ewise_log", size), kThreads>>>(a, out, size);
  check_launch("ewise_log");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.ewise_exp)
__global__ void ewise_exp_kernel(const float* a, float* out, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
    out[i] = expf(a[i]);
  }
}

static void ewise_exp(const float* a, float* out, int64_t size) {
  if (size == 0) return;
  ewise_exp_kernel<<<blocks_for("ewise_exp", size), kThreads>>>(a, out, size);
  check_launch("ewise_exp");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.ewise_tanh)
__global__ void ewise_tanh_kernel(const float* a, float* out, int64_t size) {
  const int64_t i = global_index();
  if (i < size) {
    out[i] = tanhf(a[i]);
  }
}

static void ewise_tanh(const float* a, float* out, int64_t size) {
  if (size == 0) return;
  ewise_tanh_kernel<<<blocks_for("ewise_tanh", size), kThreads>>>(a, out, size);
  check_launch("ewise_tanh");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.reduce_sum)
__global__ void reduce_sum_kernel(const float* a, float* out, int64_t size, int64_t reduce_size) {
  const int64_t i = global_index();
  if (i < size) {
    float sum = 0.0f;
    for (int64_t j = 0; j < reduce_size; j++) {
      sum = sum + a[i * reduce_size + j];
    }
    out[i] = sum;
  }
}

static void reduce_sum(const float* a, float* out, int64_t size, int64_t reduce_size) {
  if (size == 0) return;
  reduce_sum_kernel<<<blocks_for("reduce_sum", size), kThreads>>>(a, out, size, reduce_size);
  check_launch("reduce_sum");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.reduce_max)
__global__ void reduce_max_kernel(const float* a, float* out, int64_t size, int64_t reduce_size) {
  const int64_t i = global_index();
  if (i < size) {
    float largest = a[i * reduce_size];
    for (int64_t j = 1; j < reduce_size; j++) {
      const float x = a[i * reduce_size + j];
      if (x != x || x > largest) largest = x;
    }
    out[i] = largest;
  }
}

static void reduce_max(const float* a, float* out, int64_t size, int64_t reduce_size) {
  if (size == 0) return;
  reduce_max_kernel<<<blocks_for("reduce_max", size), kThreads>>>(a, out, size, reduce_size);
  check_launch("reduce_max");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.matmul)
__global__ void matmul_kernel(const float* a, const float* b, float* out, int64_t m, int64_t n,
                              int64_t p) {
  const int64_t i = global_index();
  if (i < m * p) {
    const int64_t row = i / p;
    const int64_t column = i % p;
    float sum = 0.0f;
    for (int64_t k = 0; k < n; k++) {
      sum = sum + a[row * n + k] * b[k * p + column];
    }
    out[i] = sum;
  }
}

static void matmul(const float* a, const float* b, float* out, int64_t m, int64_t n, int64_t p) {
  if (m * p == 0) return;
  matmul_kernel<<<blocks_for("matmul", m * p), kThreads>>>(a, b, out, m, n, p);
  check_launch("matmul");
}
/// END YOUR SOLUTION

/// BEGIN YOUR SOLUTION (hw3.cuda.matmul_tiled)
__global__ void matmul_tiled_kernel(const float* a, const float* b, float* out, int64_t n,
                                    int64_t p) {
  __shared__ float a_tile[kTileSize][kTileSize];
  __shared__ float b_tile[kTileSize][kTileSize];
  const int64_t x = threadIdx.x;
  const int64_t y = threadIdx.y;
  const int64_t i = blockIdx.x / (p / kTileSize);
  const int64_t j = blockIdx.x % (p / kTileSize);
  float sum = 0.0f;
  for (int64_t k = 0; k < n / kTileSize; k++) {
    const int64_t a_start = (i * (n / kTileSize) + k) * kTileSize * kTileSize;
    const int64_t b_start = (k * (p / kTileSize) + j) * kTileSize * kTileSize;
    a_tile[y][x] = a[a_start + y * kTileSize + x];
    b_tile[y][x] = b[b_start + y * kTileSize + x];
    __syncthreads();
    for (int64_t z = 0; z < kTileSize; z++) {
      sum = sum + a_tile[y][z] * b_tile[z][x];
    }
    __syncthreads();
  }
  out[blockIdx.x * kTileSize * kTileSize + y * kTileSize + x] = sum;
}

static void matmul_tiled(const float* a, const float* b, float* out, int64_t m, int64_t n,
                         int64_t p) {
  const int64_t blocks = m / kTileSize * (p / kTileSize);
  if (blocks == 0) return;
  const dim3 threads(kTileSize, kTileSize);
  matmul_tiled_kernel<<<static_cast<unsigned>(blocks), threads>>>(a, b, out, n, p);
  check_launch("matmul_tiled");
}
/// END YOUR SOLUTION
