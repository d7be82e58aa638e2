// What the emulated device can do: launches, shared memory, barriers, memory and its copies,
// errors. Each case computes something with a kernel and checks it on the host. device_functions.cu
// has shuffles, votes, atomics and mathematics.
#include <cassert>
#include <cstring>

#include "cases.h"

#define GROUP "feature"

using cases::check;
using cases::check_launch;
using cases::count_from;
using cases::DeviceArray;

// --- launches ---

__global__ void write_indices(int* out) {
  const int block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const int thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const int threads = blockDim.x * blockDim.y * blockDim.z;
  out[block * threads + thread] = block * 1000 + thread;
}

CASE(indices_in_three_dimensions) {
  const dim3 grid(3, 2, 4), block(5, 3, 2);
  DeviceArray<int> out(24 * 30, -1);
  write_indices<<<grid, block>>>(out.data());
  check_launch();
  std::vector<int> expected;
  for (int b = 0; b < 24; ++b)
    for (int t = 0; t < 30; ++t) expected.push_back(b * 1000 + t);
  REQUIRE_EQUAL(out.host(), expected);
  return true;
}

// An error that is expected, and taken away.
#define REQUIRE_ERROR(call, error) \
  REQUIRE_EQUAL(call, error);      \
  REQUIRE_EQUAL(cudaGetLastError(), error)

template <class T>
__global__ void scale(const T* in, T* out, T factor, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * factor;
}

namespace kernels {
template <class T, int kFactor>
__global__ void scale_by(const T* in, T* out) {
  out[threadIdx.x] = in[threadIdx.x] * kFactor;
}
}  // namespace kernels

template <class T>
std::vector<T> scaled(const std::vector<T>& in, T factor) {
  DeviceArray<T> device_in(in), out(in.size());
  const int n = static_cast<int>(in.size());
  scale<<<(n + 31) / 32, 32>>>(device_in.data(), out.data(), factor, n);  // T is deduced
  check_launch();
  return out.host();
}

CASE(templates_deduced_and_given) {
  REQUIRE_EQUAL(scaled(count_from<float>(1, 100), 3.0f), [] {
    auto expected = count_from<float>(1, 100);
    for (float& v : expected) v *= 3;
    return expected;
  }());
  REQUIRE_EQUAL(scaled(count_from<long long>(0, 3), 2LL), (std::vector<long long>{0, 2, 4}));
  DeviceArray<int> in(count_from<int>(0, 4)), out(4);
  kernels::scale_by<int, 5><<<1, 4>>>(in.data(), out.data());
  check_launch();
  REQUIRE_EQUAL(out.host(), (std::vector<int>{0, 5, 10, 15}));
  return true;
}

CASE(launch_through_a_pointer) {
  void (*kernel)(const float*, float*, float, int) = scale<float>;
  DeviceArray<float> in(2, 4.0f), out(2);
  kernel<<<1, 2>>>(in.data(), out.data(), 0.5f, 2);
  check_launch();
  (*kernel)<<<1, 2>>>(out.data(), in.data(), 0.5f, 2);
  check_launch();
  REQUIRE_EQUAL(in.host(), (std::vector<float>{1, 1}));
  return true;
}

struct Pair {
  float* out;
  int values[3];
};

__global__ void take_struct(Pair pair) {
  pair.values[1] += threadIdx.x;  // each thread has its own copy
  pair.out[threadIdx.x] = pair.values[0] + pair.values[1] + pair.values[2];
}

CASE(struct_as_argument) {
  DeviceArray<float> out(3);
  take_struct<<<1, 3>>>(Pair{out.data(), {1, 10, 100}});
  check_launch();
  REQUIRE_EQUAL(out.host(), (std::vector<float>{111, 112, 113}));
  return true;
}

__global__ void sets_nothing(const float* unused, int n) { (void)unused, (void)n; }

CASE(null_pointer_as_argument) {
  sets_nothing<<<2, 3>>>(nullptr, 4);
  check_launch();
  return true;
}

// --- shared memory and barriers ---

template <class T, int kTile>
__global__ void transpose(const T* in, T* out, int n) {
  __shared__ T tile[kTile][kTile + 1], unused[2];
  (void)unused;
  tile[threadIdx.y][threadIdx.x] = in[(blockIdx.y * kTile + threadIdx.y) * n +  //
                                      blockIdx.x * kTile + threadIdx.x];
  __syncthreads();
  out[(blockIdx.x * kTile + threadIdx.y) * n + blockIdx.y * kTile + threadIdx.x] =
      tile[threadIdx.x][threadIdx.y];
}

CASE(static_shared_memory_in_a_template) {
  constexpr int n = 24;
  DeviceArray<float> in(count_from<float>(0, n * n)), out(n * n);
  transpose<float, 8><<<dim3(3, 3), dim3(8, 8)>>>(in.data(), out.data(), n);
  check_launch();
  std::vector<float> expected(n * n);
  for (int i = 0; i < n * n; ++i) expected[i % n * n + i / n] = static_cast<float>(i);
  REQUIRE_EQUAL(out.host(), expected);
  return true;
}

__global__ void reverse_with_dynamic(float* values) {
  extern __shared__ float copy[];
  __shared__ int size;
  if (threadIdx.x == 0) size = blockDim.x;
  copy[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = copy[size - 1 - threadIdx.x];
}

CASE(dynamic_shared_memory) {
  DeviceArray<float> values(count_from<float>(0, 100));
  reverse_with_dynamic<<<1, 100, 100 * sizeof(float)>>>(values.data());
  check_launch();
  std::vector<float> expected;
  for (int i = 99; i >= 0; --i) expected.push_back(static_cast<float>(i));
  REQUIRE_EQUAL(values.host(), expected);
  return true;
}

__global__ void fill_dynamic(float* out, int n) {
  extern __shared__ __align__(16) unsigned char bytes[];
  float* values = reinterpret_cast<float*>(bytes);
  for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = static_cast<float>(i);
  __syncthreads();
  if (threadIdx.x == 0) out[0] = values[n - 1];
}

CASE(much_dynamic_shared_memory_when_asked_for) {
  constexpr int n = 15000;
  DeviceArray<float> out(1, 0.0f);
  constexpr auto kAttribute = cudaFuncAttributeMaxDynamicSharedMemorySize;
  check(cudaFuncSetAttribute(fill_dynamic, kAttribute, 48 * 1024));
  fill_dynamic<<<1, 64, n * sizeof(float)>>>(out.data(), n);
  REQUIRE_EQUAL(cudaGetLastError(), cudaErrorInvalidValue);
  REQUIRE_EQUAL(out.host()[0], 0.0f);
  check(cudaFuncSetAttribute(fill_dynamic, kAttribute, n * sizeof(float)));
  fill_dynamic<<<1, 64, n * sizeof(float)>>>(out.data(), n);
  check_launch();
  REQUIRE_EQUAL(out.host()[0], n - 1.0f);
  return true;
}

__global__ void block_sum(const float* in, float* out) {
  __shared__ float sums[256];
  const int t = threadIdx.x;
  sums[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) sums[t] += sums[t + half];
    __syncthreads();
  }
  if (t == 0) out[blockIdx.x] = sums[0];
}

CASE(block_reduction) {
  DeviceArray<float> in(count_from<float>(0, 1024)), out(4);
  block_sum<<<4, 256>>>(in.data(), out.data());
  check_launch();
  REQUIRE_EQUAL(out.host(), (std::vector<float>{32640, 98176, 163712, 229248}));
  return true;
}

__global__ void barrier_votes(int* out) {
  const int t = threadIdx.x;
  const int count = __syncthreads_count(t % 3 == 0);
  const int any = __syncthreads_or(t == 7);
  const int all = __syncthreads_and(t < 100);
  const int none = __syncthreads_or(t == 100) + 10 * __syncthreads_and(t < 99);
  if (t == 99) out[0] = count, out[1] = any, out[2] = all, out[3] = none;
}

CASE(barriers_that_vote) {
  DeviceArray<int> out(4);
  barrier_votes<<<1, 100>>>(out.data());
  check_launch();
  REQUIRE_EQUAL(out.host(), (std::vector<int>{34, 1, 1, 0}));
  return true;
}

__global__ void returns_early(int* out, int n) {
  if (threadIdx.x >= static_cast<unsigned>(n)) return;
  __syncthreads();
  out[threadIdx.x] = 1;
}

CASE(early_return_is_an_error_unless_allowed) {
  DeviceArray<int> out(64, 0);
  const auto error = cases::caught([&] { returns_early<<<1, 64>>>(out.data(), 50); });
  REQUIRE_EQUAL(error.kind == "divergent barrier", true);
  setenv("NEEDLE_EMULATOR_RETURNED", "allow", 1);
  returns_early<<<1, 64>>>(out.data(), 50);
  unsetenv("NEEDLE_EMULATOR_RETURNED");
  check_launch();
  REQUIRE_EQUAL(out.host()[49], 1);
  REQUIRE_EQUAL(out.host()[50], 0);
  return true;
}

// Neighbouring bytes belong to different threads: no race.
__global__ void write_bytes(unsigned char* out, bool* flags) {
  __shared__ char shared[64];
  const int t = threadIdx.x;
  shared[t] = static_cast<char>(t);
  __syncthreads();
  out[t] = static_cast<unsigned char>(shared[63 - t]);
  flags[t] = t % 2 == 0;
}

CASE(neighbouring_bytes) {
  DeviceArray<unsigned char> out(64);
  DeviceArray<bool> flags(64);
  write_bytes<<<1, 64>>>(out.data(), flags.data());
  check_launch();
  REQUIRE_EQUAL(out.host()[0], 63);
  REQUIRE_EQUAL(out.host()[63], 0);
  return true;
}

__device__ int sum_below(int n) { return n == 0 ? 0 : n + sum_below(n - 1); }

__global__ void local_memory(int* out) {
  int values[32];
  for (int i = 0; i < 32; ++i) values[i] = i * threadIdx.x;
  __syncthreads();
  int sum = sum_below(10);
  for (int value : values) sum += value;
  out[threadIdx.x] = sum;
}

CASE(local_arrays_and_recursion) {
  DeviceArray<int> out(3);
  local_memory<<<1, 3>>>(out.data());
  check_launch();
  REQUIRE_EQUAL(out.host(), (std::vector<int>{55, 551, 1047}));
  return true;
}

// --- variables of the device ---

__constant__ float coefficients[4];
__device__ int counter = 5;

__global__ void use_symbols(float* out) {
  out[threadIdx.x] = coefficients[threadIdx.x];
  if (threadIdx.x == 0) counter += 2;
}

CASE(constant_and_device_variables) {
  const float values[] = {1, 2, 3, 4};
  check(cudaMemcpyToSymbol(coefficients, values, sizeof values));
  check(cudaMemcpyToSymbol(coefficients, values, sizeof(float), 3 * sizeof(float)));
  const int start = 5;
  check(cudaMemcpyToSymbol(counter, &start, sizeof start));
  DeviceArray<float> out(4);
  use_symbols<<<1, 4>>>(out.data());
  check_launch();
  REQUIRE_EQUAL(out.host(), (std::vector<float>{1, 2, 3, 1}));
  int count = 0;
  check(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  REQUIRE_EQUAL(count, 7);
  REQUIRE_ERROR(cudaMemcpyToSymbol(coefficients, values, sizeof values, 4), cudaErrorInvalidValue);
  return true;
}

// --- memory and copies ---

CASE(memset_and_copies) {
  DeviceArray<int> a(count_from<int>(0, 6)), b(6);
  check(cudaMemset(b.data(), 0, b.bytes()));
  check(cudaMemcpyAsync(b.data() + 2, a.data(), 3 * sizeof(int), cudaMemcpyDeviceToDevice));
  REQUIRE_EQUAL(b.host(), (std::vector<int>{0, 0, 0, 1, 2, 0}));
  int rows[4];  // columns 1 and 2 of a as rows of 3
  check(cudaMemcpy2D(rows, 2 * sizeof(int), a.data() + 1, 3 * sizeof(int), 2 * sizeof(int), 2,
                     cudaMemcpyDefault));
  REQUIRE_EQUAL(std::vector<int>(rows, rows + 4), (std::vector<int>{1, 2, 4, 5}));
  return true;
}

CASE(pinned_memory_in_a_kernel) {
  float* pinned = nullptr;
  check(cudaHostAlloc(&pinned, 4 * sizeof(float), cudaHostAllocDefault));
  for (int i = 0; i < 4; ++i) pinned[i] = static_cast<float>(i);
  DeviceArray<float> out(4);
  scale<<<1, 4>>>(static_cast<const float*>(pinned), out.data(), 2.0f, 4);
  check_launch();
  REQUIRE_EQUAL(out.host(), (std::vector<float>{0, 2, 4, 6}));
  check(cudaFreeHost(pinned));
  REQUIRE_ERROR(cudaFreeHost(pinned), cudaErrorInvalidValue);
  return true;
}

CASE(new_memory_is_not_a_number) {
  DeviceArray<float> fresh(3);
  for (const float value : fresh.host()) REQUIRE_EQUAL(value != value, true);
  return true;
}

CASE(sizes_of_nothing_and_too_much) {
  void* pointer = &pointer;
  check(cudaMalloc(&pointer, 0));
  REQUIRE_EQUAL(pointer == nullptr, true);
  check(cudaFree(nullptr));
  REQUIRE_ERROR(cudaMalloc(&pointer, std::size_t{1} << 50), cudaErrorMemoryAllocation);
  std::size_t free_before, free_after, total;
  check(cudaMemGetInfo(&free_before, &total));
  DeviceArray<float> values(1000);
  check(cudaMemGetInfo(&free_after, &total));
  REQUIRE_EQUAL(free_before - free_after, values.bytes());
  return true;
}

CASE(memory_is_used_again) {
  std::size_t free_bytes, total;
  check(cudaMemGetInfo(&free_bytes, &total));
  const std::size_t half = total / 2;  // address space alone would not do for so many
  for (int i = 0; i < 12; ++i) {
    void* pointer = nullptr;
    check(cudaMalloc(&pointer, half / 64));
    check(cudaFree(pointer));
  }
  return true;
}

// --- errors ---

__global__ void write_beyond(float* out) { out[1 << 20] = 1; }

CASE(device_is_usable_after_an_error) {
  DeviceArray<float> out(2, 1.0f);
  for (int i = 0; i < 3; ++i) {
    const auto error = cases::caught([&] { write_beyond<<<1, 32>>>(out.data()); });
    REQUIRE_EQUAL(error.kind == "out of bounds", true);
    REQUIRE_EQUAL(cudaGetLastError(), cudaSuccess);
    DeviceArray<float> doubled(2);
    scale<<<1, 2>>>(out.data(), doubled.data(), 2.0f, 2);
    check_launch();
    REQUIRE_EQUAL(doubled.host(), (std::vector<float>{2, 2}));
  }
  return true;
}

CASE(latest_error_is_kept_until_it_is_asked_for) {
  DeviceArray<int> out(1);
  write_indices<<<0, 1>>>(out.data());
  REQUIRE_EQUAL(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
  REQUIRE_EQUAL(cudaGetLastError(), cudaErrorInvalidConfiguration);
  REQUIRE_EQUAL(cudaGetLastError(), cudaSuccess);
  REQUIRE_EQUAL(std::strcmp(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue"), 0);
  REQUIRE_EQUAL(
      std::strcmp(cudaGetErrorString(cudaErrorNoDevice), "no CUDA-capable device is detected"), 0);
  return true;
}

CASE(launch_limits) {
  DeviceArray<int> out(1);
  const auto error_of = [&](dim3 grid, dim3 block) {
    write_indices<<<grid, block>>>(out.data());
    return cudaGetLastError();
  };
  for (const dim3& grid : {dim3(0), dim3(1, 0), dim3(1, 65536), dim3(1, 1, 65536), dim3(1u << 31)})
    REQUIRE_EQUAL(error_of(grid, 1), cudaErrorInvalidConfiguration);
  for (const dim3& block : {dim3(0), dim3(1025), dim3(32, 33), dim3(1, 1, 65), dim3(1, 0)})
    REQUIRE_EQUAL(error_of(1, block), cudaErrorInvalidConfiguration);
  return true;
}

__global__ void asserts(int n) { assert(n > 3); }

CASE(assertion_that_holds) {
  asserts<<<1, 4>>>(4);
  check_launch();
  return true;
}

__global__ void many_blocks(unsigned* out) { atomicAdd(out, 1u); }

CASE(more_than_65535_blocks) {
  DeviceArray<unsigned> out(1, 0u);
  many_blocks<<<70000, 1>>>(out.data());
  check_launch();
  REQUIRE_EQUAL(out.host()[0], 70000u);
  return true;
}

// --- the device, streams and events ---

CASE(properties) {
  int count = 0, device = -1, value = 0;
  check(cudaGetDeviceCount(&count));
  check(cudaGetDevice(&device));
  check(cudaSetDevice(0));
  REQUIRE_EQUAL(count, 1);
  REQUIRE_EQUAL(device, 0);
  REQUIRE_ERROR(cudaSetDevice(1), cudaErrorInvalidDevice);
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0));
  REQUIRE_EQUAL(properties.warpSize, warpSize);
  REQUIRE_EQUAL(properties.sharedMemPerBlock, std::size_t{48 * 1024});
  check(cudaDeviceGetAttribute(&value, cudaDevAttrMaxGridDimY, 0));
  REQUIRE_EQUAL(value, 65535);
  check(cudaRuntimeGetVersion(&value));
  REQUIRE_EQUAL(value, CUDART_VERSION);
  return true;
}

CASE(streams_and_events) {
  cudaStream_t stream;
  cudaEvent_t start, end;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaEventCreate(&start));
  check(cudaEventCreateWithFlags(&end, cudaEventDefault));
  float milliseconds = -1;
  REQUIRE_ERROR(cudaEventElapsedTime(&milliseconds, start, end), cudaErrorInvalidResourceHandle);
  check(cudaEventRecord(start, stream));
  DeviceArray<float> in(2, 1.0f), out(2);
  scale<<<1, 2, 0, stream>>>(in.data(), out.data(), 2.0f, 2);
  check_launch();
  check(cudaEventRecord(end, stream));
  check(cudaStreamWaitEvent(stream, end));
  check(cudaEventSynchronize(end));
  check(cudaStreamSynchronize(stream));
  check(cudaEventElapsedTime(&milliseconds, start, end));
  REQUIRE_EQUAL(milliseconds >= 0, true);
  check(cudaEventDestroy(start));
  check(cudaEventDestroy(end));
  check(cudaStreamDestroy(stream));
  return true;
}
