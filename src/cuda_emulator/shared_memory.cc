// The places of shared memory; see shared_memory.h.
#include "shared_memory.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "checked.h"
#include "device_memory.h"
#include "machine.h"

namespace needle::emulator {
namespace {

// Dynamic shared memory has the first pages, the variables of all kernels those behind it.
struct Shared {
  std::size_t dynamic_bytes = 0;
  char* dynamic = nullptr;
  char* top = nullptr;
  std::map<const char*, SharedPiece> pieces;  // by their beginning

  std::mutex limits_mutex;
  std::map<const void*, std::size_t> limits;  // by kernel, as cudaFuncSetAttribute set them
  std::size_t highest_limit = kSharedBytesOfBlock;
};

Shared& shared() {
  static Shared* const shared = new Shared;
  return *shared;
}

// The first address behind the pages of dynamic shared memory.
char* dynamic_end() { return arena().begin + kMostSharedBytes; }

char* make_place(const char* name, std::size_t bytes, std::size_t alignment) {
  Shared& s = shared();
  if (s.top == nullptr) s.top = dynamic_end() + page_size();
  const std::size_t pages = round_up(bytes, page_size());
  const Arena& a = arena();
  if (pages + page_size() > static_cast<std::size_t>(a.begin + a.shared_bytes - s.top) ||
      !commit_pages(s.top, pages))
    throw std::bad_alloc();
  char* place = s.top + pages - round_up(bytes, std::max(alignment, kAlignment));
  s.top += pages + page_size();
  s.pieces[place] = {name, place, bytes};
  return place;
}

}  // namespace

void place_dynamic_shared(std::size_t bytes) {
  Shared& s = shared();
  static const bool committed = commit_pages(arena().begin, kMostSharedBytes);
  if (!committed) throw std::bad_alloc();
  s.dynamic_bytes = bytes;
  s.dynamic = dynamic_end() - round_up(bytes, kAlignment);
}

void poison_dynamic_shared() {
  Shared& s = shared();
  if (s.dynamic_bytes > 0) std::memset(s.dynamic, kPoison, dynamic_end() - s.dynamic);
}

std::size_t dynamic_shared_limit(const void* kernel) {
  Shared& s = shared();
  const std::lock_guard<std::mutex> lock(s.limits_mutex);
  if (kernel == nullptr) return s.highest_limit;
  const auto found = s.limits.find(kernel);
  return found == s.limits.end() ? kSharedBytesOfBlock : found->second;
}

bool raise_dynamic_shared_limit(const void* kernel, std::size_t bytes) {
  if (bytes > kMostSharedBytes) return false;
  Shared& s = shared();
  const std::lock_guard<std::mutex> lock(s.limits_mutex);
  s.limits[kernel] = bytes;
  s.highest_limit = std::max(s.highest_limit, bytes);
  return true;
}

void* SharedVariable::address() {
  if (block_ == machine.block_number) return place_;
  const bool was_in_kernel = machine.in_kernel;
  machine.in_kernel = false;
  if (launch_ != machine.launch_number) {
    launch_ = machine.launch_number;
    machine.static_shared_bytes += bytes_;
    const std::size_t dynamic = shared().dynamic_bytes;
    const std::size_t limit =
        std::max(kSharedBytesOfBlock, dynamic_shared_limit(machine.launch->kernel));
    if (machine.static_shared_bytes + dynamic > limit) {
      fail("too much shared memory", "__shared__ " + std::string(name_) +
                                         " takes the block's shared memory to " +
                                         std::to_string(machine.static_shared_bytes + dynamic) +
                                         " bytes; " + std::to_string(limit) + " are the most");
    }
  }
  if (place_ == nullptr) place_ = make_place(name_, bytes_, alignment_);
  block_ = machine.block_number;
  std::memset(place_, kPoison, bytes_);
  checked::made_shared(place_, bytes_);
  machine.in_kernel = was_in_kernel;
  return place_;
}

void* dynamic_shared() { return shared().dynamic; }

bool find_shared(const void* pointer, SharedPiece& found) {
  const Shared& s = shared();
  const char* address = static_cast<const char*>(pointer);
  const Arena& a = arena();
  if (!a.contains(address) || address >= a.begin + a.shared_bytes) return false;
  if (address < dynamic_end() + page_size()) {
    found = {nullptr, s.dynamic, s.dynamic_bytes};
    return true;
  }
  const auto after = s.pieces.upper_bound(address);
  if (after == s.pieces.begin()) return false;
  found = std::prev(after)->second;
  // Before the beginning of the next one, on its pages, an address belongs to that one.
  if (after != s.pieces.end() && address > found.data + found.bytes + page_size())
    found = after->second;
  return true;
}

std::string describe_shared_address(const void* pointer) {
  const char* address = static_cast<const char*>(pointer);
  const Arena& a = arena();
  if (!a.contains(address) || address >= a.begin + a.shared_bytes) return "";
  SharedPiece piece;
  if (!find_shared(pointer, piece)) return "shared memory that no variable has";
  const std::string whole =
      piece.name == nullptr
          ? "the " + std::to_string(piece.bytes) + " bytes of dynamic shared memory"
          : "__shared__ " + std::string(piece.name) + " of " + std::to_string(piece.bytes) +
                " bytes";
  const std::ptrdiff_t offset = address - piece.data;
  if (offset < 0) return std::to_string(-offset) + " bytes before the beginning of " + whole;
  const auto past = static_cast<std::size_t>(offset);
  if (past < piece.bytes) return "byte " + std::to_string(past) + " of " + whole;
  if (past == piece.bytes) return "just past the end of " + whole;
  return std::to_string(past - piece.bytes) + " bytes past the end of " + whole;
}

}  // namespace needle::emulator
