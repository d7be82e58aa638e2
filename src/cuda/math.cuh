// The functions that rows of common/ops.def call, on the device: CUDA's own, whose largest errors
// its programming guide lists (2 units in the last place or less for these). power works in double,
// as on the cpu: powf may be off by 4.
#pragma once

#include <math.h>

namespace needle::cuda {

__device__ static inline float exp_f32(float x) { return expf(x); }
__device__ static inline float log_f32(float x) { return logf(x); }
__device__ static inline float sin_f32(float x) { return sinf(x); }
__device__ static inline float cos_f32(float x) { return cosf(x); }
__device__ static inline float tanh_f32(float x) { return tanhf(x); }
__device__ static inline float sigmoid_f32(float x) { return 1.0f / (1.0f + expf(-x)); }
__device__ static inline float power_f32(float a, float b) {
  return static_cast<float>(pow(static_cast<double>(a), static_cast<double>(b)));
}

}  // namespace needle::cuda
