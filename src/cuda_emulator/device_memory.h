// Device memory: a large reserved range of addresses in which every allocation ends at a guard
// page, and freed pages stay dead for a while. Shared memory has its place at the range's
// beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace needle::emulator {

constexpr int kPoison = 0xff;  // what fresh memory holds: NaN in float and double, -1 in int

struct Allocation {
  char* data;
  std::size_t bytes;
  char* pages;  // the data's end is theirs too, but for the alignment
  std::size_t page_bytes;
  bool live;
};

// All of the device's addresses; null bytes if none could be reserved.
struct Arena {
  char* begin;
  std::size_t bytes;
  std::size_t shared_bytes;    // at the beginning, for shared memory
  std::size_t capacity_bytes;  // what allocations may sum up to

  bool contains(const void* address) const {
    return reinterpret_cast<std::uintptr_t>(address) - reinterpret_cast<std::uintptr_t>(begin) <
           bytes;
  }
};

const Arena& arena();

constexpr std::size_t kAlignment = 16;  // of allocations that end at a guard page
std::size_t round_up(std::size_t bytes, std::size_t unit);
std::size_t page_size();

// Makes pages of the arena readable and writable. Returns false if the system has no room.
bool commit_pages(char* pages, std::size_t bytes);

// Memory for a kernel, filled with NaN; null if there is no room.
void* allocate_device(std::size_t bytes);
enum class Freed { kYes, kTwice, kNeverAllocated };
Freed free_device(void* pointer);
void free_all();
std::size_t live_bytes();

// The allocation that holds or last held the address or ends there, else the one next to it; false
// if there is none near.
bool find_allocation(const void* address, Allocation& found);

// Whether `bytes` from the pointer on lie in live device memory; if not, `why` says what is wrong.
bool check_range(const void* pointer, std::size_t bytes, std::string& why);

// Memory of the host that kernels may use: cudaHostAlloc's.
void* allocate_pinned(std::size_t bytes);
bool free_pinned(void* pointer);
bool is_pinned(const void* pointer);

// Whether a kernel may be given this pointer: it points into device memory, freed or not, to pinned
// memory or to a variable of this module.
bool is_device_pointer(const void* pointer);

// Whether anything lies at this address, of the device or of the host.
bool is_mapped(const void* address);

// "just past the end of a 4000-byte allocation ..."
std::string describe_address(const void* address);

}  // namespace needle::emulator
