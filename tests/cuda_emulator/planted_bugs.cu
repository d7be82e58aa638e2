// Kernels and host code with one mistake each, as students make them. A case returns whether the
// result was right in spite of it; test_planted_bugs.py says what the emulator must find, and that
// it names the lines marked with "bug:" and the case's name.
#include <cassert>

#include "cases.h"

#define GROUP "bug"

using cases::check;
using cases::check_launch;
using cases::count_from;
using cases::DeviceArray;

// --- barriers and races ---

__global__ void missing_barrier(const float* in, float* out) {
  __shared__ float s[64];
  s[threadIdx.x] = in[threadIdx.x];        // bug: missing_barrier
  out[threadIdx.x] = s[63 - threadIdx.x];  // bug: missing_barrier
}

CASE(missing_barrier) {
  DeviceArray<float> in(count_from<float>(0, 64)), out(64);
  missing_barrier<<<1, 64>>>(in.data(), out.data());
  check_launch();
  return out.host()[0] == 63 && out.host()[63] == 0;
}

// A tile is overwritten while slower threads still read it.
__global__ void missing_second_barrier(const float* a, const float* b, float* out, int n) {
  __shared__ float ta[8][8], tb[8][8];
  const int x = threadIdx.x, y = threadIdx.y;
  float sum = 0;
  for (int k = 0; k < n; k += 8) {
    ta[y][x] = a[y * n + k + x];  // bug: missing_second_barrier
    tb[y][x] = b[(k + y) * 8 + x];
    __syncthreads();
    for (int i = 0; i < 8; ++i) sum += ta[y][i] * tb[i][x];  // bug: missing_second_barrier
  }
  out[y * 8 + x] = sum;
}

CASE(missing_second_barrier) {
  constexpr int n = 32;
  DeviceArray<float> a(count_from<float>(0, 8 * n)), b(8 * n, 1.0f), out(64);
  missing_second_barrier<<<1, dim3(8, 8)>>>(a.data(), b.data(), out.data(), n);
  check_launch();
  const auto got = out.host();
  for (int y = 0; y < 8; ++y)
    if (got[y * 8 + 3] != y * n * n + n * (n - 1) / 2) return false;
  return true;
}

__global__ void barrier_in_a_branch(float* out) {
  __shared__ float s[64];
  s[threadIdx.x] = 1;
  if (threadIdx.x < 48) __syncthreads();  // bug: barrier_in_a_branch
  out[threadIdx.x] = s[threadIdx.x];
}

CASE(barrier_in_a_branch) {
  DeviceArray<float> out(64);
  barrier_in_a_branch<<<1, 64>>>(out.data());
  check_launch();
  return out.host()[5] == 1;
}

__global__ void barriers_of_two_branches(float* out) {
  if (threadIdx.x % 2 == 0) {
    out[threadIdx.x] = 0;
    __syncthreads();  // bug: barriers_of_two_branches
  } else {
    out[threadIdx.x] = 1;
    __syncthreads();  // bug: barriers_of_two_branches
  }
}

CASE(barriers_of_two_branches) {
  DeviceArray<float> out(64);
  barriers_of_two_branches<<<1, 64>>>(out.data());
  check_launch();
  return out.host()[5] == 1;
}

__global__ void early_return(const float* in, float* out, int n) {
  __shared__ float s[64];
  const int i = blockIdx.x * 64 + threadIdx.x;
  if (i >= n) return;
  s[threadIdx.x] = in[i];
  __syncthreads();  // bug: early_return
  out[i] = s[threadIdx.x ^ 1];
}

CASE(early_return) {
  DeviceArray<float> in(count_from<float>(0, 100)), out(100);
  early_return<<<2, 64>>>(in.data(), out.data(), 100);
  check_launch();
  return out.host()[99] == 98;
}

__global__ void plus_equals_for_atomic(const float* in, float* sum) {
  *sum += in[threadIdx.x];  // bug: plus_equals_for_atomic
}

CASE(plus_equals_for_atomic) {
  DeviceArray<float> in(64, 1.0f), sum(1, 0.0f);
  plus_equals_for_atomic<<<1, 64>>>(in.data(), sum.data());
  check_launch();
  return sum.host()[0] == 64;
}

__global__ void plain_read_of_an_atomic(int* ticket, int* out) {
  atomicAdd(ticket, 1);
  out[threadIdx.x] = *ticket;  // bug: plain_read_of_an_atomic
}

CASE(plain_read_of_an_atomic) {
  DeviceArray<int> ticket(1, 0), out(64);
  plain_read_of_an_atomic<<<1, 64>>>(ticket.data(), out.data());
  check_launch();
  return out.host()[0] == 64;
}

// Works in place: reads what a neighbour may have written already.
__global__ void shift_in_place(float* values, int n) {
  const int i = threadIdx.x;
  if (i > 0 && i < n) values[i] = values[i - 1];  // bug: shift_in_place
}

CASE(shift_in_place) {
  DeviceArray<float> values(count_from<float>(0, 64));
  shift_in_place<<<1, 64>>>(values.data(), 64);
  check_launch();
  return values.host()[63] == 62;
}

__global__ void all_blocks_write_one_place(float* out) {
  if (threadIdx.x == 0) out[0] = static_cast<float>(blockIdx.x);  // bug: all_blocks_write_one_place
}

CASE(all_blocks_write_one_place) {
  DeviceArray<float> out(1, 0.0f);
  all_blocks_write_one_place<<<3, 32>>>(out.data());
  check_launch();
  return out.host()[0] == 0;
}

// Each block takes what the block before it has left: blocks have no order.
__global__ void waits_for_another_block(float* sums) {
  if (threadIdx.x == 0 && blockIdx.x > 0)
    sums[blockIdx.x] += sums[blockIdx.x - 1];  // bug: waits_for_another_block
}

CASE(waits_for_another_block) {
  DeviceArray<float> sums(5, 1.0f);
  waits_for_another_block<<<5, 32>>>(sums.data());
  check_launch();
  return sums.host()[4] == 5;
}

__global__ void missing_syncwarp(const float* in, float* out) {
  __shared__ float s[32];
  const int t = threadIdx.x;
  s[t] = in[t];
  __syncwarp();
  if (t < 16) s[t] += s[t + 16];               // bug: missing_syncwarp
  if (t < 8) atomicAdd(out, s[t] + s[t + 8]);  // bug: missing_syncwarp
}

CASE(missing_syncwarp) {
  DeviceArray<float> in(32, 1.0f), out(1, 0.0f);
  missing_syncwarp<<<1, 32>>>(in.data(), out.data());
  check_launch();
  return out.host()[0] == 32;
}

// __syncwarp() orders the writer's own warp, not the other one.
__global__ void syncwarp_for_two_warps(float* value, float* out) {
  out[threadIdx.x] = *value;  // bug: syncwarp_for_two_warps
  __syncwarp();
  if (threadIdx.x == 0) *value = 2;  // bug: syncwarp_for_two_warps
}

CASE(syncwarp_for_two_warps) {
  DeviceArray<float> value(1, 1.0f), out(64);
  syncwarp_for_two_warps<<<1, 64>>>(value.data(), out.data());
  check_launch();
  return out.host()[63] == 1;
}

// A shuffle carries values between lanes, but orders no accesses of memory.
__global__ void shuffle_for_syncwarp(float* value, float* out) {
  const float old = *value;  // bug: shuffle_for_syncwarp
  out[threadIdx.x] = __shfl_sync(0xffffffff, old, 0);
  if (threadIdx.x == 0) *value = 2;  // bug: shuffle_for_syncwarp
}

CASE(shuffle_for_syncwarp) {
  DeviceArray<float> value(1, 1.0f), out(32);
  shuffle_for_syncwarp<<<1, 32>>>(value.data(), out.data());
  check_launch();
  return out.host()[31] == 1;
}

// --- warps ---

__global__ void shuffle_with_missing_lane(float* out, int n) {
  if (threadIdx.x < static_cast<unsigned>(n))
    out[threadIdx.x] = __shfl_down_sync(0xffffffff, 1.0f, 1);  // bug: shuffle_with_missing_lane
}

CASE(shuffle_with_missing_lane) {
  DeviceArray<float> out(32, 0.0f);
  shuffle_with_missing_lane<<<1, 32>>>(out.data(), 20);
  check_launch();
  return out.host()[0] == 1;
}

__global__ void shuffle_with_wrong_mask(float* out) {
  out[threadIdx.x] = __shfl_xor_sync(0x0000ffff, 1.0f, 1);  // bug: shuffle_with_wrong_mask
}

CASE(shuffle_with_wrong_mask) {
  DeviceArray<float> out(32, 0.0f);
  shuffle_with_wrong_mask<<<1, 32>>>(out.data());
  check_launch();
  return out.host()[0] == 1;
}

// The sum of a warp needs 16, 8, 4, 2 and 1.
__global__ void shuffle_begins_too_late(float* out) {
  float sum = 1;
  for (int offset = 8; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (threadIdx.x == 0) *out = sum;
}

CASE(shuffle_begins_too_late) {
  DeviceArray<float> out(1);
  shuffle_begins_too_late<<<1, 32>>>(out.data());
  check_launch();
  return out.host()[0] == 32;
}

// --- addresses ---

__global__ void missing_bounds_check(float* out) {
  out[blockIdx.x * blockDim.x + threadIdx.x] = 1;  // bug: missing_bounds_check
}

CASE(missing_bounds_check) {
  DeviceArray<float> out(1001, 0.0f);
  missing_bounds_check<<<4, 256>>>(out.data());
  check_launch();
  return out.host()[1000] == 1;
}

__global__ void reads_one_too_far(const float* in, float* out, int n) {
  const int i = threadIdx.x;
  if (i < n) out[i] = in[i] + in[i + 1];  // bug: reads_one_too_far
}

CASE(reads_one_too_far) {
  DeviceArray<float> in(63, 1.0f), out(63);
  reads_one_too_far<<<1, 64>>>(in.data(), out.data(), 63);
  check_launch();
  return out.host()[62] == 1;
}

// The last column's right neighbour is the next row's first element.
__global__ void reads_past_a_row(const float* in, float* out) {
  __shared__ float tile[8][8];
  const int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[y * 8 + x];
  __syncthreads();
  out[y * 8 + x] = y < 7 ? tile[y][x] - tile[y][x + 1] : 0;  // bug: reads_past_a_row
}

CASE(reads_past_a_row) {
  DeviceArray<float> in(count_from<float>(0, 64)), out(64);
  reads_past_a_row<<<1, dim3(8, 8)>>>(in.data(), out.data());
  check_launch();
  return out.host()[0] == -1 && out.host()[7] == 0;
}

// A row of the matrix has `columns` elements, not `rows`.
__global__ void wrong_stride(const float* in, float* out, int rows, int columns) {
  const int row = threadIdx.y, column = threadIdx.x;
  out[row * columns + column] = in[row * rows + column];
}

CASE(wrong_stride) {
  DeviceArray<float> in(count_from<float>(0, 15)), out(15);
  wrong_stride<<<1, dim3(5, 3)>>>(in.data(), out.data(), 3, 5);
  check_launch();
  return out.host() == in.host();
}

__global__ void swapped_axes(const float* in, float* out, int columns) {
  const int row = threadIdx.x, column = threadIdx.y;         // the block is (columns, rows)
  out[row * columns + column] = in[row * columns + column];  // bug: swapped_axes
}

CASE(swapped_axes) {
  DeviceArray<float> in(count_from<float>(0, 15)), out(15);
  swapped_axes<<<1, dim3(5, 3)>>>(in.data(), out.data(), 5);
  check_launch();
  return out.host() == in.host();
}

__global__ void negative_index(const float* in, float* out) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = in[i - 1];  // bug: negative_index
}

CASE(negative_index) {
  DeviceArray<float> in(64, 1.0f), out(64);
  negative_index<<<1, 64>>>(in.data(), out.data());
  check_launch();
  return out.host()[0] == 1;
}

__global__ void unsigned_underflow(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x - 1];  // bug: unsigned_underflow
}

CASE(unsigned_underflow) {
  DeviceArray<float> in(64, 1.0f), out(64);
  unsigned_underflow<<<1, 64>>>(in.data(), out.data());
  check_launch();
  return out.host()[1] == 1;
}

__global__ void shared_array_too_small(const float* in, float* out) {
  __shared__ float s[32];
  s[threadIdx.x] = in[threadIdx.x];  // bug: shared_array_too_small
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

CASE(shared_array_too_small) {
  DeviceArray<float> in(64, 1.0f), out(64);
  shared_array_too_small<<<1, 64>>>(in.data(), out.data());
  check_launch();
  return out.host()[0] == 1;
}

// The launch gives room for the threads, not for the sum behind them.
__global__ void off_by_one_in_dynamic_shared(float* out) {
  extern __shared__ float dynamic[];
  if (threadIdx.x == 0) dynamic[blockDim.x] = 0;  // bug: off_by_one_in_dynamic_shared
  __syncthreads();
  atomicAdd(&dynamic[blockDim.x], 1.0f);
  __syncthreads();
  if (threadIdx.x == 0) *out = dynamic[blockDim.x];
}

CASE(off_by_one_in_dynamic_shared) {
  DeviceArray<float> out(1);
  off_by_one_in_dynamic_shared<<<1, 64, 64 * sizeof(float)>>>(out.data());
  check_launch();
  return out.host()[0] == 64;
}

__global__ void local_array_too_small(const float* in, float* out, int n) {
  float values[4];
  float sum = 0;
  for (int i = 0; i <= n; ++i) values[i] = in[i];  // bug: local_array_too_small
  for (int i = 0; i < n; ++i) sum += values[i];
  out[threadIdx.x] = sum;
}

CASE(local_array_too_small) {
  DeviceArray<float> in(8, 1.0f), out(1);
  local_array_too_small<<<1, 1>>>(in.data(), out.data(), 4);
  check_launch();
  return out.host()[0] == 4;
}

__global__ void misaligned_vector(const float* in, float4* out) {
  out[threadIdx.x] = *reinterpret_cast<const float4*>(in + 1);  // bug: misaligned_vector
}

CASE(misaligned_vector) {
  DeviceArray<float> in(8, 1.0f), out(4);
  misaligned_vector<<<1, 1>>>(in.data(), reinterpret_cast<float4*>(out.data()));
  check_launch();
  return out.host()[0] == 1;
}

__device__ float sum_of_table(int n) {  // bug: stack_overflow
  volatile float table[80 * 1024];
  for (int i = 0; i < n; ++i) table[i] = 1;
  float sum = 0;
  for (int i = 0; i < n; ++i) sum += table[i];
  return sum;
}

__global__ void stack_overflow(float* out, int n) { out[threadIdx.x] = sum_of_table(n); }

CASE(stack_overflow) {
  DeviceArray<float> out(32);
  stack_overflow<<<1, 32>>>(out.data(), 10);
  check_launch();
  return out.host()[0] == 10;
}

// --- pointers and memory ---

__global__ void add_one(float* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) values[i] += 1;  // bug: use_after_free bug: uninitialised_read bug: memset_too_short
}

CASE(host_pointer) {
  std::vector<float> values(32, 0.0f);
  add_one<<<1, 32>>>(values.data(), 32);
  check_launch();
  return values[0] == 1;
}

struct View {
  float* data;
  int size;
};

__global__ void fill(View view) {
  if (threadIdx.x < static_cast<unsigned>(view.size))
    view.data[threadIdx.x] = 1;  // bug: host_pointer_in_a_struct
}

CASE(host_pointer_in_a_struct) {
  std::vector<float> values(32, 0.0f);
  fill<<<1, 32>>>(View{values.data(), 32});
  check_launch();
  return values[0] == 1;
}

CASE(host_reads_device_memory) {
  DeviceArray<float> values(32, 2.0f);
  add_one<<<1, 32>>>(values.data(), 32);
  check_launch();
  const float first = values.data()[0];  // bug: host_reads_device_memory
  check(cudaDeviceSynchronize());
  return first == 3;
}

CASE(use_after_free) {
  float* values = nullptr;
  check(cudaMalloc(&values, 32 * sizeof(float)));
  check(cudaFree(values));
  add_one<<<1, 32>>>(values, 32);
  check_launch();
  return true;
}

CASE(double_free) {
  float* values = nullptr;
  check(cudaMalloc(&values, 32));
  check(cudaFree(values));
  check(cudaFree(values));
  return true;
}

CASE(free_of_the_middle) {
  DeviceArray<float> values(8);
  check(cudaFree(values.data() + 1));
  return true;
}

CASE(uninitialised_read) {
  DeviceArray<float> values(32);
  add_one<<<1, 32>>>(values.data(), 32);
  check_launch();
  return values.host()[0] == 1;
}

__global__ void uninitialised_shared(float* out) {
  __shared__ float sum;
  atomicAdd(&sum, 1.0f);  // bug: uninitialised_shared
  __syncthreads();
  if (threadIdx.x == 0) *out = sum;
}

CASE(uninitialised_shared) {
  DeviceArray<float> out(1);
  uninitialised_shared<<<1, 32>>>(out.data());
  check_launch();
  return out.host()[0] == 32;
}

CASE(memset_too_short) {
  DeviceArray<float> values(32);
  check(cudaMemset(values.data(), 0, 32));  // bytes, not elements
  add_one<<<1, 32>>>(values.data(), 32);
  check_launch();
  return values.host()[31] == 1;
}

CASE(swapped_copy_direction) {
  std::vector<float> host(32);
  DeviceArray<float> values(32, 1.0f);
  check(cudaMemcpy(host.data(), values.data(), values.bytes(), cudaMemcpyHostToDevice));
  return host[0] == 1;
}

CASE(swapped_copy_arguments) {
  std::vector<float> host(32);
  DeviceArray<float> values(32, 1.0f);
  check(cudaMemcpy(values.data(), host.data(), values.bytes(), cudaMemcpyDeviceToHost));
  return host[0] == 1;
}

CASE(copy_too_long) {
  std::vector<float> host(33);
  DeviceArray<float> values(32, 1.0f);
  check(cudaMemcpy(host.data(), values.data(), 33 * sizeof(float), cudaMemcpyDeviceToHost));
  return host[0] == 1;
}

// --- launches ---

CASE(too_many_threads) {
  DeviceArray<float> values(2000, 0.0f);
  add_one<<<1, 2000>>>(values.data(), 2000);
  check_launch();
  return values.host()[0] == 1;
}

CASE(zero_blocks) {
  DeviceArray<float> values(100, 0.0f);
  const int n = 100;
  add_one<<<n / 256, 256>>>(values.data(), n);
  check_launch();
  return values.host()[0] == 1;
}

CASE(unchecked_launch) {  // the same, but nobody asks for the error
  DeviceArray<float> values(100, 0.0f);
  add_one<<<0, 256>>>(values.data(), 100);
  const bool right = values.host()[0] == 1;
  cudaGetLastError();
  return right;
}

CASE(grid_y_too_large) {
  DeviceArray<float> values(1, 0.0f);
  add_one<<<dim3(1, 70000), 1>>>(values.data(), 0);
  check_launch();
  return true;
}

CASE(wrong_grid) {  // rounded down: the last 232 elements have no thread
  DeviceArray<float> values(1000, 0.0f);
  add_one<<<1000 / 256, 256>>>(values.data(), 1000);
  check_launch();
  return values.host()[0] == 1 && values.host()[999] == 1;
}

__global__ void last_dynamic(float* out, int n) {
  extern __shared__ float dynamic[];
  dynamic[n - 1] = 1;
  *out = dynamic[n - 1];
}

CASE(too_much_dynamic_shared) {
  DeviceArray<float> out(1);
  last_dynamic<<<1, 1, 50000>>>(out.data(), 12500);
  check_launch();
  return out.host()[0] == 1;
}

__global__ void too_much_static_shared(float* out) {
  __shared__ float a[8000], b[8000];
  a[threadIdx.x] = b[threadIdx.x] = 1;
  out[threadIdx.x] = a[threadIdx.x];
}

CASE(too_much_static_shared) {
  DeviceArray<float> out(32);
  too_much_static_shared<<<1, 32>>>(out.data());
  check_launch();
  return out.host()[0] == 1;
}

// --- endings ---

__global__ void endless_loop(volatile int* flag) {
  while (*flag == 0) {  // bug: endless_loop
  }
}

CASE(endless_loop) {
  DeviceArray<int> flag(1, 0);
  endless_loop<<<1, 32>>>(flag.data());
  check_launch();
  return true;
}

__global__ void endless_barriers(int n) {
  for (unsigned i = 0; i != static_cast<unsigned>(n); i += 2) __syncthreads();
}

CASE(endless_barriers) {
  endless_barriers<<<1, 32>>>(7);
  check_launch();
  return true;
}

__global__ void failed_assertion(const float* in) {
  assert(in[threadIdx.x] < 10);  // bug: failed_assertion
}

CASE(failed_assertion) {
  DeviceArray<float> in(count_from<float>(0, 32));
  failed_assertion<<<1, 32>>>(in.data());
  check_launch();
  return true;
}

__global__ void division_by_zero(int* out, int n) {
  out[threadIdx.x] =
      out[threadIdx.x] / (n - static_cast<int>(threadIdx.x));  // bug: division_by_zero
}

CASE(division_by_zero) {
  DeviceArray<int> out(32, 100);
  division_by_zero<<<1, 32>>>(out.data(), 20);
  check_launch();
  return out.host()[0] == 5;
}
