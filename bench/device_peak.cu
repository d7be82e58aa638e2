// What this GPU can do at most: prints the bytes a second of its own copies (read and written) and
// the multiplications and additions a second of a kernel that does nothing else. device_check.py
// builds and runs it.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

static void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::exit(1);
}

constexpr int kChains = 8;  // independent of each other, so that no addition waits for another
constexpr int kRounds = 4096;
constexpr int kThreads = 256;

__global__ void multiply_add(float* out, float factor) {
  float chain[kChains];
  for (int k = 0; k < kChains; ++k) chain[k] = threadIdx.x + k;
  for (int i = 0; i < kRounds; ++i) {
#pragma unroll
    for (int k = 0; k < kChains; ++k) chain[k] = chain[k] * factor + factor;
  }
  float sum = 0.0f;
  for (int k = 0; k < kChains; ++k) sum += chain[k];
  out[blockIdx.x * kThreads + threadIdx.x] = sum;  // else nothing would be computed
}

// The shortest of several times of one run, in seconds.
template <class Run>
static double shortest(const Run& run) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  float best = 0.0f;
  for (int i = 0; i < 20; ++i) {
    check(cudaEventRecord(begin));
    run();
    check(cudaEventRecord(end));
    check(cudaEventSynchronize(end));
    float milliseconds;
    check(cudaEventElapsedTime(&milliseconds, begin, end));
    if (i == 0 || milliseconds < best) best = milliseconds;
  }
  return best / 1e3;
}

int main() {
  constexpr std::size_t kBytes = std::size_t{256} << 20;
  cudaDeviceProp device;
  check(cudaGetDeviceProperties(&device, 0));
  float *from, *to;
  check(cudaMalloc(&from, kBytes));
  check(cudaMalloc(&to, kBytes));
  check(cudaMemset(from, 0, kBytes));
  const double copy =
      shortest([&] { check(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice)); });
  const int blocks = device.multiProcessorCount * 8;
  const double compute = shortest([&] {
    multiply_add<<<blocks, kThreads>>>(to, 0.999f);
    check(cudaGetLastError());
  });
  std::printf("%.6g %.6g\n", 2.0 * kBytes / copy,
              2.0 * blocks * kThreads * kChains * kRounds / compute);
}
