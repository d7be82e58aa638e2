// Pool: freed blocks of memory, kept by exact size for the next array of that size. A training step
// asks for the same sizes again and again, so an exact match is nearly always at hand, with its
// pages already mapped. The backend gives the two functions that reach the system's memory. Used by
// array.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <unordered_map>
#include <vector>

namespace needle {

// Where memory comes from. `allocate` returns null when there is no room.
struct Memory {
  void* (*allocate)(std::size_t bytes);
  void (*release)(void* block, std::size_t bytes);
};

struct MemoryStats {
  std::size_t live_bytes;    // in arrays that exist
  std::size_t cached_bytes;  // in blocks kept for later
  std::size_t hits;          // requests met by a kept block
  std::size_t misses;        // requests that went to the system
};

class Pool {
 public:
  // Keeps at most `cap_bytes`; 0 switches it off, as sanitizers want: a kept block hides a use
  // after free.
  Pool(Memory memory, std::size_t cap_bytes) : memory_(memory), cap_bytes_(cap_bytes) {}

  // A block's size is a multiple of this, and at least this, so that nearly equal sizes share
  // blocks.
  static constexpr std::size_t kGranularity = 256;

  // Returns `bytes` of uninitialised memory, or null if there is no room even with nothing kept.
  // Not for sizes within kGranularity of the largest number.
  void* allocate(std::size_t bytes) {
    bytes = block_size(bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    void* block = take(bytes);
    if (block != nullptr) {
      ++stats_.hits;
    } else {
      ++stats_.misses;
      block = memory_.allocate(bytes);
      if (block == nullptr && stats_.cached_bytes > 0) {
        drop_all();
        block = memory_.allocate(bytes);
      }
    }
    if (block != nullptr) stats_.live_bytes += bytes;
    return block;
  }

  // `bytes` as in the call that made the block.
  void release(void* block, std::size_t bytes) noexcept {
    bytes = block_size(bytes);
    const std::lock_guard<std::mutex> lock(mutex_);
    stats_.live_bytes -= bytes;
    if (!keep(block, bytes)) memory_.release(block, bytes);
  }

  void empty_cache() {
    const std::lock_guard<std::mutex> lock(mutex_);
    drop_all();
  }

  MemoryStats stats() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return stats_;
  }

  // Held across a fork, so that the child never inherits a half-changed pool.
  std::mutex& mutex() { return mutex_; }

 private:
  // Small sizes, nearly all requests of a training step's scalars and biases, find their list by
  // index.
  static constexpr std::size_t kSmallClasses = 256;

  // Whole granules; without a pool the very size, so that a sanitizer sees where a block ends.
  std::size_t block_size(std::size_t bytes) const {
    if (cap_bytes_ == 0) return bytes > 0 ? bytes : 1;
    const std::size_t granules = (bytes + kGranularity - 1) / kGranularity;
    return (granules > 0 ? granules : 1) * kGranularity;
  }

  // The list of kept blocks of one size; null if there never was any.
  std::vector<void*>* kept(std::size_t bytes) {
    const std::size_t small_class = bytes / kGranularity;
    if (small_class < kSmallClasses) return &small_[small_class];
    const auto entry = large_.find(bytes);
    return entry == large_.end() ? nullptr : &entry->second;
  }

  void* take(std::size_t bytes) {
    std::vector<void*>* blocks = kept(bytes);
    if (blocks == nullptr || blocks->empty()) return nullptr;
    void* block = blocks->back();
    blocks->pop_back();
    stats_.cached_bytes -= bytes;
    return block;
  }

  // Returns whether the block is kept: not beyond the cap, nor if the list itself finds no room.
  bool keep(void* block, std::size_t bytes) noexcept try {
    if (bytes > cap_bytes_ - stats_.cached_bytes) return false;
    std::vector<void*>* blocks = kept(bytes);
    if (blocks == nullptr) blocks = &large_[bytes];
    blocks->push_back(block);
    stats_.cached_bytes += bytes;
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }

  void drop_all() {
    for (std::size_t i = 0; i < kSmallClasses; ++i) drop(small_[i], i * kGranularity);
    for (auto& [bytes, blocks] : large_) drop(blocks, bytes);
    large_.clear();
    stats_.cached_bytes = 0;
  }

  void drop(std::vector<void*>& blocks, std::size_t bytes) {
    for (void* block : blocks) memory_.release(block, bytes);
    blocks.clear();
  }

  Memory memory_;
  std::size_t cap_bytes_;
  std::mutex mutex_;
  MemoryStats stats_{};
  std::vector<void*> small_[kSmallClasses];
  std::unordered_map<std::size_t, std::vector<void*>> large_;
};

}  // namespace needle
