// Stage hw0: one epoch of softmax regression in C++, as the Python module simple_ml_ext.
// The binding at the bottom checks the arrays; the loops above it may rely on what it promises.
// The same update in NumPy is softmax_regression_epoch in simple_ml.py.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace py = pybind11;

// Thrown in place of an answer that is not written yet; becomes Python's NotImplementedError.
struct NotImplementedError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

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

namespace {

// Refuses an array that is not a C-contiguous T of `ndim` axes. A conversion would copy it, and an
// update of the copy would be lost.
template <typename T>
void check_array(const char* name, const py::array& array, py::ssize_t ndim, const char* dtype) {
  const std::string where = std::string("[softmax_regression_epoch_cpp] ") + name;
  if (!py::isinstance<py::array_t<T>>(array)) {
    throw py::type_error(where + " has dtype " + py::str(array.dtype()).cast<std::string>() +
                         "; it must be " + dtype + ", e.g. " + name + ".astype(np." + dtype + ")");
  }
  if (array.ndim() != ndim) {
    throw py::value_error(where + " has " + std::to_string(array.ndim()) + " axes; it must have " +
                          std::to_string(ndim));
  }
  if (!(array.flags() & py::array::c_style)) {
    throw py::value_error(where + " is not C-contiguous; use np.ascontiguousarray(" + name + ")");
  }
}

void checked_epoch(const py::array& X, const py::array& y, py::array theta, float lr,
                   py::ssize_t batch) {
  check_array<float>("X", X, 2, "float32");
  check_array<std::uint8_t>("y", y, 1, "uint8");
  check_array<float>("theta", theta, 2, "float32");
  if (X.shape(0) != y.shape(0) || X.shape(1) != theta.shape(0)) {
    const auto shape = [](const py::array& array) {
      return py::str(array.attr("shape")).cast<std::string>();
    };
    throw py::value_error("[softmax_regression_epoch_cpp] X " + shape(X) + ", y " + shape(y) +
                          " and theta " + shape(theta) +
                          " do not fit; they must be (m, n), (m,) and (n, k)");
  }
  if (batch < 1) {
    throw py::value_error("[softmax_regression_epoch_cpp] batch is " + std::to_string(batch) +
                          "; it must be at least 1");
  }
  const auto* labels = static_cast<const std::uint8_t*>(y.data());
  for (py::ssize_t i = 0; i < y.shape(0); ++i) {
    if (labels[i] >= theta.shape(1)) {
      throw py::value_error("[softmax_regression_epoch_cpp] y[" + std::to_string(i) + "] is " +
                            std::to_string(labels[i]) + "; theta has " +
                            std::to_string(theta.shape(1)) + " classes");
    }
  }
  auto* weights = static_cast<float*>(theta.mutable_data());  // ValueError if it is read-only
  softmax_regression_epoch_cpp(
      static_cast<const float*>(X.data()), labels, weights, static_cast<std::size_t>(X.shape(0)),
      static_cast<std::size_t>(X.shape(1)), static_cast<std::size_t>(theta.shape(1)), lr,
      static_cast<std::size_t>(batch));
}

}  // namespace

PYBIND11_MODULE(simple_ml_ext, m) {
  m.doc() = "Softmax regression in C++.";
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const NotImplementedError& missing) {
      PyErr_SetString(PyExc_NotImplementedError, missing.what());
    }
  });
  m.def("softmax_regression_epoch_cpp", &checked_epoch, py::arg("X"), py::arg("y"),
        py::arg("theta"), py::arg("lr"), py::arg("batch"),
        "Run one epoch of SGD for softmax regression; change theta in place.\n\n"
        "X float32 (m, n), y uint8 (m,), theta float32 (n, k), all C-contiguous. Raises TypeError "
        "for another dtype, ValueError for shapes or labels that do not fit.");
}
