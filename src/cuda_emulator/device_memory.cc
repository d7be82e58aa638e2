// The device's memory; see device_memory.h.
#include "device_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <map>
#include <mutex>
#include <new>

#include "checked.h"
#include "machine.h"
#include "shared_memory.h"
#include "source_location.h"

namespace needle::emulator {
namespace {

#ifdef NEEDLE_EMULATOR_CHECKED
constexpr std::size_t kMostCapacity = std::size_t{2} << 30;  // its shadow takes six times as much
#else
constexpr std::size_t kMostCapacity = std::size_t{4} << 30;
#endif
constexpr std::size_t kLeastArena = std::size_t{64} << 20;
constexpr std::size_t kSharedBytes = std::size_t{256} << 20;

// Pages in use or dead, by their beginning, and those that may be used again.
struct Memory {
  std::mutex mutex;
  std::map<char*, Allocation> allocations;
  std::deque<char*> dead;  // freed, oldest first
  std::size_t dead_bytes = 0;
  std::map<char*, std::size_t> holes;
  char* top = nullptr;  // nothing beyond it was ever used
  std::size_t live_bytes = 0;
  std::map<char*, std::size_t> pinned;
};

Memory& memory() {
  static Memory* const memory = new Memory;  // never destroyed: arrays may be freed at exit
  return *memory;
}

Arena reserve() {
  const auto physical = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page_size();
  const std::size_t capacity = std::min(kMostCapacity, round_up(physical / 2, page_size()));
  // Twice the capacity: guard pages and dead pages take addresses, but no memory.
  for (std::size_t bytes = kSharedBytes + 2 * capacity; bytes >= kLeastArena;
       bytes = round_up(bytes / 2, page_size())) {
    void* begin =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) continue;
    if (!checked::reserve_shadow(static_cast<char*>(begin), bytes)) {
      munmap(begin, bytes);
      continue;
    }
    const std::size_t shared = std::min(kSharedBytes, round_up(bytes / 4, page_size()));
    return {static_cast<char*>(begin), bytes, shared, std::min(capacity, bytes - shared)};
  }
  throw std::bad_alloc();
}

// Gives the oldest dead pages back for use, all of them if there is no other room.
void bury(Memory& m, std::size_t most_bytes) {
  while (m.dead_bytes > most_bytes) {
    const auto found = m.allocations.find(m.dead.front());
    m.dead.pop_front();
    char* pages = found->second.pages;
    std::size_t bytes = found->second.page_bytes + page_size();
    m.dead_bytes -= bytes;
    m.allocations.erase(found);
    auto next = m.holes.lower_bound(pages);
    if (next != m.holes.end() && pages + bytes == next->first) {
      bytes += next->second;
      next = m.holes.erase(next);
    }
    if (next != m.holes.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == pages) {
        before->second += bytes;
        continue;
      }
    }
    m.holes[pages] = bytes;
  }
}

// Addresses for `bytes` of pages and a guard page; null if there are none.
char* take_pages(Memory& m, std::size_t bytes) {
  const Arena& a = arena();
  if (m.top == nullptr) m.top = a.begin + a.shared_bytes;
  for (auto hole = m.holes.begin(); hole != m.holes.end(); ++hole) {
    if (hole->second < bytes) continue;
    char* pages = hole->first;
    const std::size_t rest = hole->second - bytes;
    m.holes.erase(hole);
    if (rest > 0) m.holes[pages + bytes] = rest;
    return pages;
  }
  if (static_cast<std::size_t>(a.begin + a.bytes - m.top) < bytes) return nullptr;
  char* pages = m.top;
  m.top += bytes;
  return pages;
}

// The entry that holds the address or lies next to it.
const Allocation* nearest(Memory& m, const char* address) {
  auto after = m.allocations.upper_bound(const_cast<char*>(address));
  if (after == m.allocations.begin())
    return after == m.allocations.end() ? nullptr : &after->second;
  const Allocation& before = std::prev(after)->second;
  const char* end = before.pages + before.page_bytes + page_size();
  if (address < end || after == m.allocations.end()) return &before;
  return address - end < after->second.pages - address ? &before : &after->second;
}

std::string bytes_text(std::size_t bytes) { return std::to_string(bytes) + "-byte allocation"; }

}  // namespace

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

std::size_t page_size() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

const Arena& arena() {
  static const Arena arena = reserve();
  return arena;
}

bool commit_pages(char* pages, std::size_t bytes) {
  return mprotect(pages, bytes, PROT_READ | PROT_WRITE) == 0;
}

void* allocate_device(std::size_t bytes) {
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  const std::size_t capacity = arena().capacity_bytes;
  if (bytes > capacity || m.live_bytes + bytes > capacity) return nullptr;
  const std::size_t page_bytes = round_up(bytes, page_size());
  bury(m, capacity / 2);
  char* pages = take_pages(m, page_bytes + page_size());
  if (pages == nullptr) {
    bury(m, 0);
    pages = take_pages(m, page_bytes + page_size());
  }
  if (pages == nullptr || !commit_pages(pages, page_bytes)) return nullptr;
  std::memset(pages, kPoison, page_bytes);
  char* data = pages + page_bytes - round_up(bytes, kAlignment);
  const Allocation& made = m.allocations[pages] = {data, bytes, pages, page_bytes, true};
  m.live_bytes += bytes;
  checked::made(made);
  return data;
}

Freed free_device(void* pointer) {
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  auto found = m.allocations.upper_bound(static_cast<char*>(pointer));
  if (found == m.allocations.begin()) return Freed::kNeverAllocated;
  Allocation& allocation = std::prev(found)->second;
  if (allocation.data != pointer) return Freed::kNeverAllocated;
  if (!allocation.live) return Freed::kTwice;
  // New pages in their place, which nobody may touch: the old ones go back to the system.
  mmap(allocation.pages, allocation.page_bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  allocation.live = false;
  checked::freed(allocation);
  m.live_bytes -= allocation.bytes;
  m.dead.push_back(allocation.pages);
  m.dead_bytes += allocation.page_bytes + page_size();
  return Freed::kYes;
}

void free_all() {
  std::deque<void*> live;
  {
    Memory& m = memory();
    const std::lock_guard<std::mutex> lock(m.mutex);
    for (const auto& [pages, allocation] : m.allocations)
      if (allocation.live) live.push_back(allocation.data);
  }
  for (void* pointer : live) free_device(pointer);
}

std::size_t live_bytes() {
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  return m.live_bytes;
}

bool find_allocation(const void* address, Allocation& found) {
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  const Allocation* allocation = nearest(m, static_cast<const char*>(address));
  if (allocation == nullptr) return false;
  found = *allocation;
  return true;
}

bool check_range(const void* pointer, std::size_t bytes, std::string& why) {
  const char* address = static_cast<const char*>(pointer);
  Allocation allocation;
  if (arena().contains(address) && find_allocation(address, allocation) && allocation.live &&
      address >= allocation.data && address <= allocation.data + allocation.bytes) {
    if (bytes <= static_cast<std::size_t>(allocation.data + allocation.bytes - address))
      return true;
    why = std::to_string(bytes) + " bytes from byte " + std::to_string(address - allocation.data) +
          " of a " + bytes_text(allocation.bytes);
    return false;
  }
  const bool module = in_module(address);
  if (!module) why = "not a device pointer: " + describe_address(pointer);
  return module;
}

void* allocate_pinned(std::size_t bytes) {
  void* pointer = nullptr;
  if (posix_memalign(&pointer, page_size(), std::max<std::size_t>(bytes, 1)) != 0) return nullptr;
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  m.pinned[static_cast<char*>(pointer)] = bytes;
  return pointer;
}

bool free_pinned(void* pointer) {
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  if (m.pinned.erase(static_cast<char*>(pointer)) == 0) return false;
  std::free(pointer);
  return true;
}

bool is_pinned(const void* pointer) {
  Memory& m = memory();
  const std::lock_guard<std::mutex> lock(m.mutex);
  auto* const address = const_cast<char*>(static_cast<const char*>(pointer));
  const auto after = m.pinned.upper_bound(address);
  return after != m.pinned.begin() && address <= std::prev(after)->first + std::prev(after)->second;
}

bool is_device_pointer(const void* pointer) {
  return arena().contains(pointer) || in_module(pointer) || is_pinned(pointer);
}

bool is_mapped(const void* address) {
  const auto page = reinterpret_cast<std::uintptr_t>(address) / page_size() * page_size();
  return msync(reinterpret_cast<void*>(page), 1, MS_ASYNC) == 0;
}

std::string describe_address(const void* pointer) {
  if (!arena().contains(pointer)) {
    if (pointer < reinterpret_cast<void*>(page_size())) return "a null pointer, or nearly one";
    return is_mapped(pointer) ? "host memory" : "nothing is there";
  }
  const std::string shared = describe_shared_address(pointer);
  if (!shared.empty()) return shared;
  Allocation a;
  if (!find_allocation(pointer, a)) return "device memory that was never allocated";
  const char* address = static_cast<const char*>(pointer);
  const std::string whole = std::string(a.live ? "" : "freed ") + bytes_text(a.bytes);
  if (address < a.data) {
    return std::to_string(a.data - address) + " bytes before the beginning of a " + whole;
  }
  const auto offset = static_cast<std::size_t>(address - a.data);
  if (offset < a.bytes) return "byte " + std::to_string(offset) + " of a " + whole;
  if (offset == a.bytes) return "just past the end of a " + whole;
  return std::to_string(offset - a.bytes) + " bytes past the end of a " + whole;
}

}  // namespace needle::emulator
