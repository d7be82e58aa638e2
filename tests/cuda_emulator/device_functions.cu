// What kernels can call on the emulated device: shuffles and votes of a warp, atomics, vectors,
// mathematics. See features.cu for the rest.
#include <cfloat>

#include "cases.h"

#define GROUP "device function"

using cases::check;
using cases::check_launch;
using cases::count_from;
using cases::DeviceArray;

constexpr unsigned kAllLanes = 0xffffffff;

// --- warps ---

enum Shuffle { kPlain, kUp, kDown, kXor };

template <class T>
__global__ void shuffle(Shuffle kind, T* out, int argument, int width) {
  const T value = static_cast<T>(threadIdx.x + 100);
  T result = 0;
  switch (kind) {
    case kPlain:
      result = __shfl_sync(kAllLanes, value, argument, width);
      break;
    case kUp:
      result = __shfl_up_sync(kAllLanes, value, argument, width);
      break;
    case kDown:
      result = __shfl_down_sync(kAllLanes, value, argument, width);
      break;
    case kXor:
      result = __shfl_xor_sync(kAllLanes, value, argument, width);
      break;
  }
  out[threadIdx.x] = result;
}

// The lane that a lane reads, in plain words: its own where the one asked for lies outside of its
// group of `width` lanes.
int source(Shuffle kind, int lane, int argument, int width) {
  const int begin = lane / width * width;
  switch (kind) {
    case kPlain:
      return begin + argument % width;
    case kUp:
      return lane - argument >= begin ? lane - argument : lane;
    case kDown:
      return lane + argument < begin + width ? lane + argument : lane;
    default:
      return (lane ^ argument) < begin + width ? lane ^ argument : lane;
  }
}

template <class T>
void check_shuffles() {
  DeviceArray<T> out(64);
  for (const Shuffle kind : {kPlain, kUp, kDown, kXor})
    for (const int width : {2, 8, 16, 32})
      for (const int argument : {0, 1, 3, 5, 16, 31}) {
        shuffle<<<1, 64>>>(kind, out.data(), argument, width);
        check_launch();
        const std::vector<T> got = out.host();
        for (int t = 0; t < 64; ++t) {
          const int lane = source(kind, t % 32, argument, width);
          REQUIRE_EQUAL(got[t], static_cast<T>(t / 32 * 32 + lane + 100));
        }
      }
}

CASE(shuffles_of_all_types_and_widths) {
  check_shuffles<float>();
  check_shuffles<int>();
  check_shuffles<double>();
  check_shuffles<unsigned long long>();
  return true;
}

// 50 threads: the second warp has 18 lanes, and the mask may name all 32.
__global__ void sum_by_shuffles(float* out) {
  float sum = static_cast<float>(threadIdx.x);
  for (int offset = 16; offset > 0; offset /= 2) {
    const float other = __shfl_down_sync(kAllLanes, sum, offset);
    const int lane = threadIdx.x % 32;
    if (threadIdx.x + offset < blockDim.x && lane + offset < 32) sum += other;
  }
  if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}

CASE(reduction_by_shuffles_in_a_partial_warp) {
  DeviceArray<float> out(1, 0.0f);
  sum_by_shuffles<<<1, 50>>>(out.data());
  check_launch();
  REQUIRE_EQUAL(out.host()[0], 49.0f * 50 / 2);
  return true;
}

// Each half of the warp goes its own way.
__global__ void shuffle_in_halves(int* out) {
  const int lane = threadIdx.x;
  const unsigned mask = lane < 16 ? 0x0000ffff : 0xffff0000;
  int value = lane;
  if (lane < 16) {
    for (int i = 0; i < 3; ++i) value += __shfl_xor_sync(mask, value, 8);
  } else {
    value = __shfl_sync(mask, value, 0, 16);
  }
  out[lane] = value;
}

CASE(shuffles_of_parts_of_a_warp) {
  DeviceArray<int> out(32);
  shuffle_in_halves<<<1, 32>>>(out.data());
  check_launch();
  const std::vector<int> got = out.host();
  for (int lane = 0; lane < 16; ++lane) REQUIRE_EQUAL(got[lane], 4 * (lane + (lane ^ 8)));
  for (int lane = 16; lane < 32; ++lane) REQUIRE_EQUAL(got[lane], 16);
  return true;
}

__global__ void vote(unsigned* out) {
  const int t = threadIdx.x;
  const unsigned ballot = __ballot_sync(kAllLanes, t % 2);
  const int any = __any_sync(kAllLanes, t == 40), all = __all_sync(kAllLanes, t < 40);
  unsigned together = 0;
  if (t % 32 < 5) together = __activemask();
  __syncwarp();
  if (t % 32 == 4) {
    out[t / 32 * 4] = ballot;
    out[t / 32 * 4 + 1] = any;
    out[t / 32 * 4 + 2] = all;
    out[t / 32 * 4 + 3] = together;
  }
}

CASE(votes) {
  DeviceArray<unsigned> out(8);
  vote<<<1, 42>>>(out.data());  // the second warp has 10 lanes
  check_launch();
  REQUIRE_EQUAL(out.host(), (std::vector<unsigned>{0xaaaaaaaa, 0, 1, 0x1f, 0x2aa, 1, 0, 0x1f}));
  return true;
}

// The last steps of a reduction within a warp: __syncwarp() is enough.
__global__ void warp_sum(const float* in, float* out) {
  __shared__ float sums[64];
  const int t = threadIdx.x;
  sums[t] = in[t];
  __syncwarp();
  for (int half = 16; half > 0; half /= 2) {
    float other = 0;
    if (t % 32 < half) other = sums[t + half];
    __syncwarp();
    if (t % 32 < half) sums[t] += other;
    __syncwarp();
  }
  if (t % 32 == 0) out[t / 32] = sums[t];
}

CASE(syncwarp_orders_a_warp) {
  DeviceArray<float> in(count_from<float>(0, 64)), out(2);
  warp_sum<<<1, 64>>>(in.data(), out.data());
  check_launch();
  REQUIRE_EQUAL(out.host(), (std::vector<float>{496, 1520}));
  return true;
}

// Who writes last says in which order threads go on after they have waited for each other.
__global__ void last_after_waiting(int* out, bool barrier) {
  if (barrier) {
    __syncthreads();
  } else {
    __syncwarp();
  }
  *out = threadIdx.x;
}

bool last_thread_is_last(bool barrier) {
  DeviceArray<int> out(1);
  last_after_waiting<<<1, 32>>>(out.data(), barrier);
  check_launch();
  return out.host()[0] == 31;
}

#undef GROUP
#define GROUP "order"

CASE(last_after_a_barrier) { return last_thread_is_last(true); }
CASE(last_after_syncwarp) { return last_thread_is_last(false); }

#undef GROUP
#define GROUP "device function"

// --- atomics ---

template <class T>
__global__ void add_all(T* out) {
  __shared__ T sum;
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, threadIdx.x);
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(out, sum);
}

template <class T>
void check_sum() {
  DeviceArray<T> out(1, T{0});
  add_all<<<10, 100>>>(out.data());
  check_launch();
  REQUIRE_EQUAL(out.host()[0], static_cast<T>(49500));
}

CASE(atomic_sums) {
  check_sum<int>();
  check_sum<unsigned>();
  check_sum<unsigned long long>();
  check_sum<float>();
  check_sum<double>();
  return true;
}

template <class T>
__global__ void atomics(T* out) {
  const T t = threadIdx.x;
  atomicMin(&out[0], t);
  atomicMax(&out[1], t);
  atomicAnd(&out[2], ~(T{1} << t));
  atomicOr(&out[3], T{1} << t);
  atomicXor(&out[4], T{3} << t);
  if (t == 5) out[7] = atomicExch(&out[5], 77);
  atomicCAS(&out[6], t, t + 1);  // in any order of threads at least one of these holds
}

template <class T>
void check_atomics() {
  DeviceArray<T> out(std::vector<T>{50, 2, 0xff, 0, 0, 11, 3, 0});
  atomics<<<1, 8>>>(out.data());
  check_launch();
  const std::vector<T> got = out.host();
  REQUIRE_EQUAL(std::vector<T>(got.begin(), got.begin() + 6),
                (std::vector<T>{0, 7, 0, 0xff, 0x101, 77}));
  REQUIRE_EQUAL(got[6] > 3 && got[6] <= 8, true);
  REQUIRE_EQUAL(got[7], T{11});
}

__global__ void wrap_around(unsigned* out, int* difference) {
  atomicInc(&out[0], 3);
  atomicDec(&out[1], 3);
  atomicSub(difference, 2);
}

CASE(all_atomics) {
  check_atomics<int>();
  check_atomics<unsigned>();
  check_atomics<unsigned long long>();
  DeviceArray<unsigned> out(2, 0u);
  DeviceArray<int> difference(1, 20);
  wrap_around<<<1, 6>>>(out.data(), difference.data());
  check_launch();
  REQUIRE_EQUAL(out.host(), (std::vector<unsigned>{2, 2}));
  REQUIRE_EQUAL(difference.host()[0], 8);
  return true;
}

__device__ void atomic_max_of_floats(float* address, float value) {
  int* bits = reinterpret_cast<int*>(address);
  int old = atomicCAS(bits, 0, 0);
  while (__int_as_float(old) < value) {
    const int seen = atomicCAS(bits, old, __float_as_int(value));
    if (seen == old) break;
    old = seen;
  }
}

__global__ void largest(const float* in, float* out) { atomic_max_of_floats(out, in[threadIdx.x]); }

CASE(atomic_loop_by_compare_and_swap) {
  DeviceArray<float> in(std::vector<float>{3, -1, 8.5, 2}), out(1, -FLT_MAX);
  largest<<<1, 4>>>(in.data(), out.data());
  check_launch();
  REQUIRE_EQUAL(out.host()[0], 8.5f);
  return true;
}

// --- vectors and mathematics ---

static_assert(alignof(float2) == 8 && alignof(float4) == 16 && sizeof(float3) == 12);
static_assert(alignof(double2) == 16 && alignof(int4) == 16 && sizeof(uchar4) == 4);

__global__ void add_vectors(const float4* a, const float2* b, float4* out) {
  const float4 v = __ldg(&a[threadIdx.x]);
  const float2 w = b[threadIdx.x];
  out[threadIdx.x] = make_float4(v.x + w.x, v.y + w.y, v.z, v.w);
}

CASE(vector_loads) {
  DeviceArray<float> a(count_from<float>(0, 8)), b(count_from<float>(10, 4)), out(8);
  add_vectors<<<1, 2>>>(reinterpret_cast<float4*>(a.data()), reinterpret_cast<float2*>(b.data()),
                        reinterpret_cast<float4*>(out.data()));
  check_launch();
  REQUIRE_EQUAL(out.host(), (std::vector<float>{10, 12, 2, 3, 16, 18, 6, 7}));
  return true;
}

__global__ void mathematics(float* out) {
  int i = 0;
  out[i++] = __expf(0.0f) + __logf(1.0f) + __powf(2.0f, 3.0f);
  out[i++] = rsqrtf(4.0f) + __fdividef(3.0f, 2.0f) + __frcp_rn(4.0f);
  out[i++] = fmaf(2.0f, 3.0f, 4.0f) + __fmaf_rn(1.0f, 2.0f, 3.0f) + __fsqrt_rn(9.0f);
  out[i++] = max(2, 3) + min(2.5f, 3.0f) + max(-1.0, -2.0);
  out[i++] = __saturatef(7.0f) + __saturatef(-7.0f) + __sinf(0.0f) + __cosf(0.0f);
  out[i++] = __popc(0xf0f0u) + __clz(1) + __ffs(8) + __popcll(7);
  out[i++] = __int2float_rn(__float2int_rn(2.5f)) + __float2int_rz(-2.7f) + __float2int_rd(-2.1f);
  out[i++] = __brev(1u) == 0x80000000u && __mulhi(1 << 30, 8) == 2 && __uint_as_float(0) == 0;
}

CASE(mathematical_functions) {
  DeviceArray<float> out(8);
  mathematics<<<1, 1>>>(out.data());
  check_launch();
  REQUIRE_EQUAL(out.host(), (std::vector<float>{9, 2.25f, 18, 4.5f, 2, 46, -3, 1}));
  return true;
}
