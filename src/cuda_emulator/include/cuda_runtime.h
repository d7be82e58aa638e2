// The emulator's <cuda_runtime.h>: with it, and after tools/cu2cpp.py, an ordinary C++ compiler
// makes CUDA sources into code that runs on the CPU. The parts lie in cuda_emulator/;
// src/cuda_emulator/README.md tells how it works.
#pragma once

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cuda_emulator/launch.h"
#include "cuda_emulator/runtime_api.h"
#include "cuda_emulator/vector_types.h"

// __shared__ and __noinline__ are the rewriter's; a __constant__ or __device__ variable is an
// ordinary one. Kernels stay functions of their own, so that addresses tell their lines.
#define __global__ __attribute__((noinline))
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
#define __grid_constant__

#include "cuda_emulator/atomics.h"
#include "cuda_emulator/device_math.h"
#include "cuda_emulator/threads.h"
