// Matrix products of strided float operands, in increasing speed: matmul_naive, the oracle, and
// matmul_packed, five loops around a micro-kernel that holds a tile of the result in registers.
// Relies on thread_pool.h, on the vector types of g++ and clang++, and on nothing that the linker
// could share between instruction sets. Called from ndarray_backend_cpu.cc.
//
// All products are (m, n) @ (n, p) -> (m, p). Element (i, j) of an operand lies at
// data[i * row_stride + j * col_stride]; strides count floats and may be 0 or negative, so that a
// transpose, a flip or a broadcast comes in as it is. The result is compact and overlaps no
// operand. No product is left out for being 0: NaN and inf reach the result as in numpy.
#pragma once

#include <cstdint>
#include <cstdlib>

#include "strided.h"
#include "thread_pool.h"

#ifndef NEEDLE_ISA
#error "define NEEDLE_ISA (baseline, avx2 or avx512): each instruction set has its own namespace"
#endif

namespace needle::cpu::NEEDLE_ISA {

// out[i, j] = sum over k of a[i, k] * b[k, j], one after the other.
static inline void matmul_naive(const float* a, int64_t a_row_stride, int64_t a_col_stride,
                                const float* b, int64_t b_row_stride, int64_t b_col_stride,
                                float* out, int64_t m, int64_t n, int64_t p) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < p; ++j) {
      float sum = 0.0f;
      for (int64_t k = 0; k < n; ++k) {
        sum += a[i * a_row_stride + k * a_col_stride] * b[k * b_row_stride + j * b_col_stride];
      }
      out[i * p + j] = sum;
    }
  }
}

// The packed product.
//
//   for jc in steps of NC            columns of b and out
//    for pc in steps of KC           rows of b, columns of a
//      pack_b: b[pc.., jc..] -> panels of NR columns              (KC x NC, in L3)
//      for ic in steps of MC         rows of a and out            (shared out among the threads)
//        pack_a: a[ic.., pc..] -> panels of MR rows               (MC x KC, in L2)
//        for jr in steps of NR       one panel of b               (KC x NR, in L1)
//          for ir in steps of MR     one panel of a
//            micro_kernel: out tile (MR x NR, in registers) += a panel @ b panel
//
//               KC            NC                        NC
//            +------+      +--+--+--+--+            +--+--+--+--+
//         MR |======|      |  |##|  |  |         MR |  |@@|  |  |
//            +------+      |  |##|  |  | KC         +--+--+--+--+
//         MR |      | MC @ |  |##|  |  |    +->  MR |  |  |  |  | MC
//            +------+      |  |##|  |  |            +--+--+--+--+
//         MR |      |      +--+--+--+--+         MR |  |  |  |  |
//            +------+       NR NR NR NR             +--+--+--+--+
//
// In a panel the elements lie in the order in which the micro-kernel reads them: for each k, the MR
// elements of a (or NR of b) that belong to it.

#if defined(__AVX512F__)
constexpr int64_t kVectorBytes = 64;
constexpr int64_t kMR = 14;   // 14 x 2 accumulators, 2 vectors of b, 1 of a: 31 of 32 registers
constexpr int64_t kKC = 256;  // a panel of b, 32 KiB, fills two thirds of L1 (48 KiB)
constexpr int64_t kMC = 140;  // the packed a, up to 140 KiB, shares L2 (1 MiB and more)
#elif defined(__AVX2__)
constexpr int64_t kVectorBytes = 32;
constexpr int64_t kMR = 6;    // 6 x 2 accumulators, 2 vectors of b, 1 of a: 15 of 16 registers
constexpr int64_t kKC = 400;  // a panel of b, 25 KiB, fills three quarters of L1 (32 KiB)
constexpr int64_t kMC = 72;   // the packed a, up to 112 KiB, fits half of L2 (256 KiB and more)
#else
constexpr int64_t kVectorBytes = 16;
constexpr int64_t kMR = 4;    // 4 x 2 accumulators, 2 vectors of b, the products: 12 registers
constexpr int64_t kKC = 400;  // a panel of b is 12 KiB
constexpr int64_t kMC = 72;
#endif
constexpr int64_t kLanes = kVectorBytes / 4;
constexpr int64_t kNR = 2 * kLanes;  // two vectors: each element of a that is loaded serves both
constexpr int64_t kNC = 2048;        // the packed b, up to 3 MiB, stays in L3

// Packing a pays if its elements then meet at least this many panels of b, and the other way round.
constexpr int64_t kPackAFrom = 12;
constexpr int64_t kPackBFrom = 4;

// Up to this many floats the packed b lies on the stack.
constexpr int64_t kStackPanels = 1024;

// Multiply-adds that take a core some 50 us; less is not worth waking a thread for.
constexpr int64_t kWorkPerThread = 65536 * kVectorBytes;

typedef float Vector __attribute__((vector_size(kVectorBytes)));
typedef float UnalignedVector __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
typedef float Four __attribute__((vector_size(16)));
typedef float UnalignedFour __attribute__((vector_size(16), aligned(4), may_alias));

constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t round_up(int64_t a, int64_t b) { return ceil_div(a, b) * b; }

// A matrix of any strides.
struct Matrix {
  const float* data;
  int64_t row_stride, col_stride;

  const float* at(int64_t i, int64_t j) const { return data + i * row_stride + j * col_stride; }
};

// Transpose 4 x 4: four runs of 4 floats, `across` apart, to four columns, `width` apart.
static inline void transpose_4x4(const float* source, int64_t across, float* panel, int64_t width) {
  const Four r0 = *reinterpret_cast<const UnalignedFour*>(source);
  const Four r1 = *reinterpret_cast<const UnalignedFour*>(source + across);
  const Four r2 = *reinterpret_cast<const UnalignedFour*>(source + 2 * across);
  const Four r3 = *reinterpret_cast<const UnalignedFour*>(source + 3 * across);
  const Four low01 = __builtin_shufflevector(r0, r1, 0, 4, 1, 5);
  const Four low23 = __builtin_shufflevector(r2, r3, 0, 4, 1, 5);
  const Four high01 = __builtin_shufflevector(r0, r1, 2, 6, 3, 7);
  const Four high23 = __builtin_shufflevector(r2, r3, 2, 6, 3, 7);
  auto store = [&](int64_t k, Four column) {
    *reinterpret_cast<UnalignedFour*>(panel + k * width) = column;
  };
  store(0, __builtin_shufflevector(low01, low23, 0, 1, 4, 5));
  store(1, __builtin_shufflevector(low01, low23, 2, 3, 6, 7));
  store(2, __builtin_shufflevector(high01, high23, 0, 1, 4, 5));
  store(3, __builtin_shufflevector(high01, high23, 2, 3, 6, 7));
}

// panel[k * width + i] = source[i * across + k * along] for i < count, 0 for count <= i < width.
static inline void pack_panel(const float* source, int64_t across, int64_t along, int64_t count,
                              int64_t depth, float* panel, int64_t width) {
  int64_t done = 0;  // of depth
  if (across == 1 && count == kNR) {
    for (; done < depth; ++done) {
      for (int64_t i = 0; i < kNR; i += kLanes) {
        *reinterpret_cast<UnalignedVector*>(panel + done * kNR + i) =
            *reinterpret_cast<const UnalignedVector*>(source + done * along + i);
      }
    }
  } else if (across == 1 && count >= 4) {
    for (; done < depth; ++done) {
      for (int64_t i = 0; i < count; i += 4) {
        const int64_t j = smaller(i, count - 4);  // the last four may overlap those before
        *reinterpret_cast<UnalignedFour*>(panel + done * width + j) =
            *reinterpret_cast<const UnalignedFour*>(source + done * along + j);
      }
    }
  } else if (along == 1 && count >= 4) {
    done = depth / 4 * 4;
    for (int64_t i = 0; i < count; i += 4) {
      const int64_t j = smaller(i, count - 4);
      for (int64_t k = 0; k < done; k += 4) {
        transpose_4x4(source + j * across + k, across, panel + k * width + j, width);
      }
    }
  }
  for (; done < depth; ++done) {
    for (int64_t i = 0; i < count; ++i) {
      panel[done * width + i] = source[i * across + done * along];
    }
  }
  for (int64_t i = count; i < width; ++i) {
    for (int64_t k = 0; k < depth; ++k) panel[k * width + i] = 0.0f;
  }
}

// Pack count x depth elements into panels `width` wide; the last one is as narrow as it can be in
// whole `unit`s.
static inline void pack_panels(const float* source, int64_t across, int64_t along, int64_t count,
                               int64_t depth, int64_t width, int64_t unit, float* panels) {
  // Where the elements of one k are neighbours, a few k at a time: a cache line goes to several
  // panels, and is gone if each panel is filled to its end first.
  const int64_t step = across == 1 ? smaller(depth, 16) : depth;
  for (int64_t k = 0; k < depth; k += step) {
    for (int64_t i = 0; i < count; i += width) {
      const int64_t filled = smaller(width, count - i);
      const int64_t rounded = round_up(filled, unit);
      pack_panel(source + i * across + k * along, across, along, filled, smaller(step, depth - k),
                 panels + i * depth + k * rounded, rounded);
    }
  }
}

// rows x depth elements of a; the last panel is as low as the rows that are left.
static inline void pack_a(Matrix a, int64_t rows, int64_t depth, float* panels) {
  pack_panels(a.data, a.row_stride, a.col_stride, rows, depth, kMR, 1, panels);
}

// depth x cols elements of b; the last panel is a whole number of vectors, filled with zeros.
static inline void pack_b(Matrix b, int64_t depth, int64_t cols, float* panels) {
  pack_panels(b.data, b.col_stride, b.row_stride, cols, depth, kNR, kLanes, panels);
}

// out[i, j] (+)= edge[i, j] for j < cols <= width.
static inline void write_edge(const float* edge, int64_t rows, int64_t width, int64_t cols,
                              float* out, int64_t out_stride, bool accumulate) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      float* place = out + i * out_stride + j;
      *place = accumulate ? *place + edge[i * width + j] : edge[i * width + j];
    }
  }
}

// out[0 .. Rows, 0 .. cols] (+)= a (Rows x depth) @ b (depth x Vectors * lanes). The rows of b,
// packed or not, are b_stride apart. The result's tile stays in Rows * Vectors registers over the
// whole of depth: for that the loops over it must be unrolled early, which g++ does only where it
// is told.
template <int Rows, int Vectors>
static void micro_kernel(Matrix a, const float* b, int64_t b_stride, int64_t depth, float* out,
                         int64_t out_stride, int64_t cols, bool accumulate) {
  Vector tile[Rows][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) tile[i][v] = Vector{};
  }
  for (int i = 0; i < Rows; ++i) {
    for (int v = 0; v < Vectors; ++v) __builtin_prefetch(out + i * out_stride + v * kLanes, 1);
  }
  const float* a_k = a.data;
  for (int64_t k = 0; k < depth; ++k) {
    Vector b_k[Vectors];
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v)
      b_k[v] = *reinterpret_cast<const UnalignedVector*>(b + v * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const float a_ik = a_k[i * a.row_stride];
#pragma GCC unroll 16
      for (int v = 0; v < Vectors; ++v) tile[i][v] += a_ik * b_k[v];
    }
    a_k += a.col_stride;
    b += b_stride;
  }
  // A tile that sticks out of the result goes through memory, to be written element by element.
  float edge[Rows * Vectors * kLanes];
  const bool whole = cols == Vectors * kLanes;
  float* rows = whole ? out : edge;
  const int64_t row_stride = whole ? out_stride : Vectors * kLanes;
  const bool add = accumulate && whole;
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 16
    for (int v = 0; v < Vectors; ++v) {
      UnalignedVector* place =
          reinterpret_cast<UnalignedVector*>(rows + i * row_stride + v * kLanes);
      *place = add ? *place + tile[i][v] : tile[i][v];
    }
  }
  if (!whole) write_edge(edge, Rows, Vectors * kLanes, cols, out, out_stride, accumulate);
}

typedef void MicroKernel(Matrix a, const float* b, int64_t b_stride, int64_t depth, float* out,
                         int64_t out_stride, int64_t cols, bool accumulate);

struct MicroKernels {
  MicroKernel* of[kMR + 1][3];  // [rows][vectors]
};

template <int Rows>
constexpr void add_micro_kernels(MicroKernels& kernels) {
  kernels.of[Rows][1] = micro_kernel<Rows, 1>;
  kernels.of[Rows][2] = micro_kernel<Rows, 2>;
  if constexpr (Rows > 1) add_micro_kernels<Rows - 1>(kernels);
}

constexpr MicroKernels make_micro_kernels() {
  MicroKernels kernels{};
  add_micro_kernels<kMR>(kernels);
  return kernels;
}

static constexpr MicroKernels kMicroKernels = make_micro_kernels();

// Memory for panels, kept by its thread for the next product.
struct PanelBuffer {
  float* data = nullptr;
  int64_t size = 0;

  ~PanelBuffer() { std::free(data); }

  // Room for `count` floats on a cache line's border; nullptr if there is none.
  float* reserve(int64_t count) {
    if (count <= size) return data;
    std::free(data);
    const int64_t bytes = round_up(count * static_cast<int64_t>(sizeof(float)), 64);
    data = static_cast<float*>(std::aligned_alloc(64, static_cast<size_t>(bytes)));
    size = data != nullptr ? count : 0;
    return data;
  }
};

static thread_local PanelBuffer a_panels_of_thread;
static thread_local PanelBuffer b_panels_of_thread;

// What one step of the loops jc and pc needs: out[:, jc ..] (+)= a[:, pc ..] @ b[pc .., jc ..].
struct PanelProduct {
  Matrix a;             // m x depth
  Matrix b;             // depth x cols
  float* out;           // m x cols, rows out_stride apart
  int64_t packed_from;  // columns of b before this one are read where they lie
  float* b_panels;      // the others, packed
  int64_t m, depth, cols, out_stride;
  bool accumulate;
  int64_t mc, col_blocks, cols_per_block;  // how the threads share out the result
};

// The loops jr and ir, over rows ic .. ic + mc of the result and one block of its columns.
static inline void multiply_block(const PanelProduct& product, int64_t ic, int64_t jc) {
  const int64_t depth = product.depth;
  const int64_t rows = smaller(product.mc, product.m - ic);
  const int64_t cols_end = smaller(product.cols, jc + product.cols_per_block);
  Matrix a = {product.a.at(ic, 0), product.a.row_stride, product.a.col_stride};
  float* a_panels =
      cols_end - jc >= kPackAFrom * kNR ? a_panels_of_thread.reserve(product.mc * depth) : nullptr;
  if (a_panels != nullptr) pack_a(a, rows, depth, a_panels);
  for (int64_t jr = jc; jr < cols_end; jr += kNR) {
    const int64_t cols = smaller(kNR, product.cols - jr);
    const bool packed = jr >= product.packed_from;
    const float* b_panel =
        packed ? product.b_panels + (jr - product.packed_from) * depth : product.b.at(0, jr);
    const int64_t b_stride = packed ? round_up(cols, kLanes) : product.b.row_stride;
    for (int64_t ir = 0; ir < rows; ir += kMR) {
      const int64_t height = smaller(kMR, rows - ir);
      const Matrix panel = a_panels != nullptr ? Matrix{a_panels + ir * depth, 1, height}
                                               : Matrix{a.at(ir, 0), a.row_stride, a.col_stride};
      kMicroKernels.of[height][ceil_div(cols, kLanes)](
          panel, b_panel, b_stride, depth, product.out + (ic + ir) * product.out_stride + jr,
          product.out_stride, cols, product.accumulate);
    }
  }
}

static void pack_b_task(void* context, int64_t begin, int64_t end) {
  const PanelProduct& product = *static_cast<const PanelProduct*>(context);
  const int64_t first = product.packed_from + begin * kNR;
  const int64_t cols = smaller(product.packed_from + end * kNR, product.cols) - first;
  const Matrix b = {product.b.at(0, first), product.b.row_stride, product.b.col_stride};
  pack_b(b, product.depth, cols, product.b_panels + begin * kNR * product.depth);
}

static void multiply_task(void* context, int64_t begin, int64_t end) {
  const PanelProduct& product = *static_cast<const PanelProduct*>(context);
  for (int64_t block = begin; block < end; ++block) {
    multiply_block(product, block / product.col_blocks * product.mc,
                   block % product.col_blocks * product.cols_per_block);
  }
}

// Run a task on [0, count), on this thread alone if `threads` is 1.
static inline void run_task(ThreadPool& pool, int64_t threads, int64_t count, ThreadPool::Task task,
                            PanelProduct* product) {
  if (threads == 1) {
    task(product, 0, count);
  } else {
    pool.parallel_for(count, 1, task, product);
  }
}

// The dot product of two runs of n floats; four accumulators, so that additions overlap.
static inline float dot(const float* a, const float* b, int64_t n) {
  Vector sums[4] = {};
  int64_t k = 0;
  for (; k + 4 * kLanes <= n; k += 4 * kLanes) {
    for (int v = 0; v < 4; ++v) {
      sums[v] += *reinterpret_cast<const UnalignedVector*>(a + k + v * kLanes) *
                 *reinterpret_cast<const UnalignedVector*>(b + k + v * kLanes);
    }
  }
  const Vector lanes = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  float sum = 0.0f;
  for (int64_t i = 0; i < kLanes; ++i) sum += lanes[i];
  for (; k < n; ++k) sum += a[k] * b[k];
  return sum;
}

// The product where one operand is a vector and both run along k: no element of the matrix is used
// twice, so there is nothing to pack for.
static inline void matmul_dots(Matrix a, Matrix b, float* out, int64_t m, int64_t n, int64_t p) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < p; ++j) out[i * p + j] = dot(a.at(i, 0), b.at(0, j), n);
  }
}

// The largest step that cuts `total` into pieces of at most `limit`, evenly, in units of `unit`.
static inline int64_t even_step(int64_t total, int64_t limit, int64_t unit) {
  return round_up(ceil_div(total, ceil_div(total, limit)), unit);
}

// Cut the result into blocks: enough rows to keep L2 busy, at least one block for each thread.
static inline void share_out(PanelProduct& product, int64_t threads) {
  const int64_t row_blocks = round_up(ceil_div(product.m, kMC), threads);
  product.mc = round_up(ceil_div(product.m, row_blocks), kMR);
  const int64_t blocks_below = ceil_div(product.m, product.mc);  // fewer than threads if m is small
  product.cols_per_block = round_up(ceil_div(product.cols, ceil_div(threads, blocks_below)), kNR);
  product.col_blocks = ceil_div(product.cols, product.cols_per_block);
}

// One step of the loops jc and pc.
static inline void multiply_panels(PanelProduct& product, int64_t threads, ThreadPool& pool) {
  share_out(product, threads);
  run_task(pool, threads, ceil_div(product.cols - product.packed_from, kNR), pack_b_task, &product);
  run_task(pool, threads, ceil_div(product.m, product.mc) * product.col_blocks, multiply_task,
           &product);
}

// out (m, p) = a (m, n) @ b (n, p); see the picture above. Threads share the packed b; each packs
// its own rows of a. Without memory for the panels of b the product is matmul_naive's; without
// memory for those of a, the micro-kernel reads a where it lies.
static inline void matmul_packed(const float* a, int64_t a_row_stride, int64_t a_col_stride,
                                 const float* b, int64_t b_row_stride, int64_t b_col_stride,
                                 float* out, int64_t m, int64_t n, int64_t p, ThreadPool& pool) {
  if (m == 0 || p == 0) return;
  if (n == 0) {
    for (int64_t i = 0; i < m * p; ++i) out[i] = 0.0f;
    return;
  }
  const Matrix a_matrix = {a, a_row_stride, a_col_stride};
  const Matrix b_matrix = {b, b_row_stride, b_col_stride};
  if ((m == 1 || p == 1) && a_col_stride == 1 && b_row_stride == 1) {
    matmul_dots(a_matrix, b_matrix, out, m, n, p);
    return;
  }
  const int64_t kc = even_step(n, kKC, 1);
  const int64_t nc = even_step(p, kNC, kNR);
  const int64_t threads = larger(1, smaller(pool.size(), m * n * p / kWorkPerThread));

  alignas(64) float stack_panels[kStackPanels];
  const bool b_in_place = b_col_stride == 1 && m < kPackBFrom * kMR;
  const int64_t b_size = kc * (b_in_place ? kNR : smaller(nc, round_up(p, kLanes)));
  float* b_panels = b_size <= kStackPanels ? stack_panels : b_panels_of_thread.reserve(b_size);
  if (b_panels == nullptr) {
    matmul_naive(a, a_row_stride, a_col_stride, b, b_row_stride, b_col_stride, out, m, n, p);
    return;
  }
  for (int64_t jc = 0; jc < p; jc += nc) {
    for (int64_t pc = 0; pc < n; pc += kc) {
      PanelProduct product;
      product.a = {a_matrix.at(0, pc), a_row_stride, a_col_stride};
      product.b = {b_matrix.at(pc, jc), b_row_stride, b_col_stride};
      product.out = out + jc;
      product.b_panels = b_panels;
      product.m = m;
      product.depth = smaller(kc, n - pc);
      product.cols = smaller(nc, p - jc);
      product.packed_from = b_in_place ? product.cols / kNR * kNR : 0;
      product.out_stride = p;
      product.accumulate = pc > 0;
      multiply_panels(product, threads, pool);
    }
  }
}

}  // namespace needle::cpu::NEEDLE_ISA
