// Stage hw0: one epoch of softmax regression in C++, as plain loops.
// simple_ml_ext_module.cpp makes the Python module simple_ml_ext of it. It checks the arrays before
// it calls; the loops may rely on that.
// The same update in NumPy is softmax_regression_epoch in simple_ml.py.

#include "simple_ml_ext.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

// Writes softmax(X theta) - onehot(y) of `rows` samples into gradient.
// X (rows, n), y (rows), theta (n, k), gradient (rows, k); all row-major.
void softmax_gradient(const float* X, const std::uint8_t* y, const float* theta, float* gradient,
                      std::size_t rows, std::size_t n, std::size_t k) {
  /// BEGIN SOLUTION hw0.cpp.softmax_gradient
  for (std::size_t i = 0; i < rows; ++i) {
    float* row = gradient + i * k;
    std::fill(row, row + k, 0.0f);
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t c = 0; c < k; ++c) row[c] += X[i * n + j] * theta[j * k + c];
    }
    float sum = 0.0f;
    for (std::size_t c = 0; c < k; ++c) {
      row[c] = std::exp(row[c]);
      sum += row[c];
    }
    for (std::size_t c = 0; c < k; ++c) row[c] /= sum;
    row[y[i]] -= 1.0f;
  }
  /// END SOLUTION
}

// One pass over the m samples, in order, `batch` at a time; theta changes in place.
// X (m, n), y (m) with labels below k, theta (n, k), batch > 0. A short last batch is averaged over
// its own rows.
void softmax_regression_epoch_cpp(const float* X, const std::uint8_t* y, float* theta,
                                  std::size_t m, std::size_t n, std::size_t k, float lr,
                                  std::size_t batch) {
  /// BEGIN SOLUTION hw0.cpp.softmax_regression_epoch
  std::vector<float> gradient(std::min(batch, m) * k);
  for (std::size_t start = 0; start < m; start += batch) {
    const std::size_t rows = std::min(batch, m - start);
    const float* X_batch = X + start * n;
    softmax_gradient(X_batch, y + start, theta, gradient.data(), rows, n, k);
    const float step = lr / static_cast<float>(rows);
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t c = 0; c < k; ++c) {
          theta[j * k + c] -= step * X_batch[i * n + j] * gradient[i * k + c];
        }
      }
    }
  }
  /// END SOLUTION
}
