// The Python module simple_ml_ext: checks the arrays and calls the loops of simple_ml_ext.cpp.
// A file of its own, since pybind11 takes seconds to compile and the loops change often.

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>

#include "simple_ml_ext.h"

namespace py = pybind11;

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
