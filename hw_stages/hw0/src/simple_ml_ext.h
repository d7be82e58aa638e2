// What simple_ml_ext_module.cpp knows of simple_ml_ext.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

// Thrown in place of an answer that is not written yet; becomes Python's NotImplementedError.
struct NotImplementedError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void softmax_regression_epoch_cpp(const float* X, const std::uint8_t* y, float* theta,
                                  std::size_t m, std::size_t n, std::size_t k, float lr,
                                  std::size_t batch);
