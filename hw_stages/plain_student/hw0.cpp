// The plain student's answers to hw0, written from the handout alone.

  /// BEGIN YOUR SOLUTION (hw0.cpp.softmax_gradient)
  for (std::size_t i = 0; i < rows; i++) {
    float sum = 0;
    for (std::size_t c = 0; c < k; c++) {
      float z = 0;
      for (std::size_t j = 0; j < n; j++) {
        z = z + X[i * n + j] * theta[j * k + c];
      }
      gradient[i * k + c] = std::exp(z);
      sum = sum + gradient[i * k + c];
    }
    for (std::size_t c = 0; c < k; c++) {
      gradient[i * k + c] = gradient[i * k + c] / sum;
      if (c == y[i]) {
        gradient[i * k + c] = gradient[i * k + c] - 1;
      }
    }
  }
  /// END YOUR SOLUTION

  /// BEGIN YOUR SOLUTION (hw0.cpp.softmax_regression_epoch)
  std::size_t start = 0;
  while (start < m) {
    std::size_t b = m - start;
    if (b > batch) {
      b = batch;
    }
    std::vector<float> gradient(b * k);
    softmax_gradient(X + start * n, y + start, theta, gradient.data(), b, n, k);
    for (std::size_t j = 0; j < n; j++) {
      for (std::size_t c = 0; c < k; c++) {
        float sum = 0;
        for (std::size_t i = 0; i < b; i++) {
          sum = sum + X[(start + i) * n + j] * gradient[i * k + c];
        }
        theta[j * k + c] = theta[j * k + c] - lr / b * sum;
      }
    }
    start = start + b;
  }
  /// END YOUR SOLUTION
