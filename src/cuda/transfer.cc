// See transfer.h. The device reads and writes only memory that the system cannot move ("pinned"),
// so numbers go through two pinned pieces by turns: while one is on its way to or from the device,
// the host copies the other.
#include "transfer.h"

#include <cuda_runtime.h>

#include <cstring>
#include <mutex>

#include "status.h"

namespace needle::cuda {

namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

struct Piece {
  char* memory = nullptr;
  cudaEvent_t passed = nullptr;  // the last copy from or to `memory` is over

  void prepare(const char* op) {
    if (memory == nullptr) {
      void* block = nullptr;
      check(op, cudaHostAlloc(&block, kPieceBytes, cudaHostAllocDefault));
      memory = static_cast<char*>(block);
    }
    if (passed == nullptr) {
      check(op, cudaEventCreateWithFlags(&passed, cudaEventDisableTiming));
    } else {
      check(op, cudaEventSynchronize(passed));
    }
  }
};

// One for the process, never destroyed: at exit the driver may be gone first.
struct Pieces {
  std::mutex mutex;
  Piece of[2];
};

Pieces& pieces() {
  static auto* const instance = new Pieces;
  return *instance;
}

std::size_t piece_size(std::size_t done, std::size_t bytes) {
  return bytes - done < kPieceBytes ? bytes - done : kPieceBytes;
}

}  // namespace

void copy_to_device(const char* op, const void* host, void* device, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(pieces().mutex);
  int turn = 0;
  for (std::size_t done = 0; done < bytes; turn ^= 1) {
    Piece& piece = pieces().of[turn];
    const std::size_t size = piece_size(done, bytes);
    piece.prepare(op);
    std::memcpy(piece.memory, static_cast<const char*>(host) + done, size);
    check(op, cudaMemcpyAsync(static_cast<char*>(device) + done, piece.memory, size,
                              cudaMemcpyHostToDevice));
    check(op, cudaEventRecord(piece.passed));
    done += size;
  }
}

void copy_to_host(const char* op, const void* device, void* host, std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(pieces().mutex);
  std::size_t asked = 0;
  std::size_t done = 0;
  int turn = 0;
  while (done < bytes) {
    Piece& next = pieces().of[turn];
    const std::size_t size = piece_size(asked, bytes);
    if (size > 0) {
      next.prepare(op);
      check(op, cudaMemcpyAsync(next.memory, static_cast<const char*>(device) + asked, size,
                                cudaMemcpyDeviceToHost));
      check(op, cudaEventRecord(next.passed));
    }
    turn ^= 1;
    const std::size_t arrived = asked - done;  // in the other piece, from the turn before
    if (arrived > 0) {
      Piece& before = pieces().of[turn];
      check(op, cudaEventSynchronize(before.passed));
      std::memcpy(static_cast<char*>(host) + done, before.memory, arrived);
      done += arrived;
    }
    asked += size;
  }
}

}  // namespace needle::cuda
