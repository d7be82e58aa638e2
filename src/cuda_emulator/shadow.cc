// Keeps the checked mode's shadow of device memory; see shadow.h.
#include "shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "checked.h"
#include "machine.h"
#include "shared_memory.h"
#include "source_location.h"

#ifdef NEEDLE_EMULATOR_CHECKED

namespace needle::emulator::checked {

Shadow shadow;

namespace {

constexpr std::uint32_t kLastEpoch = 0xf0000000;  // a launch beyond it begins to count anew

struct ByteCells {
  Cell cells[kWord];
};

// What belongs to a launch.
std::unordered_map<Cell*, ByteCells> split_words;
std::vector<std::uint32_t> block_epochs;  // the first epoch of each block
std::uint32_t syncwarps[kMaxThreads];     // how many each thread has passed, in Record::who's place

// Of the host's threads.
std::mutex host_mutex;
std::string host_access;

std::uint64_t offset_of(const void* address) {
  return static_cast<std::uint64_t>(static_cast<const char*>(address) - shadow.base);
}

Cell* cell_of(const void* address) { return &shadow.cells[offset_of(address) / kWord]; }

void* reserve(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void set_extents(const char* pages, std::size_t page_bytes, const Extent& extent) {
  Extent* first = &shadow.extents[offset_of(pages) >> shadow.page_shift];
  std::fill_n(first, page_bytes >> shadow.page_shift, extent);
}

void clear_cells(const void* begin, std::size_t bytes) {
  Cell* first = cell_of(begin);
  std::memset(static_cast<void*>(first), 0, (bytes + kWord - 1) / kWord * sizeof(Cell));
}

bool is_initialised(const char* address) {
  if (shadow.extents[offset_of(address) >> shadow.page_shift].initialised) return true;
  return (cell_of(address)->write.who >> (kInitialisedShift + offset_of(address) % kWord) & 1) != 0;
}

void set_initialised(const char* address) {
  cell_of(address)->write.who |= 1u << (kInitialisedShift + offset_of(address) % kWord);
}

void next_epoch() { ++shadow.epoch; }

}  // namespace

bool reserve_shadow(char* base, std::size_t bytes) {
  auto* cells = static_cast<Cell*>(reserve(bytes / kWord * sizeof(Cell)));
  auto* extents = static_cast<Extent*>(reserve(bytes / page_size() * sizeof(Extent)));
  if (cells == nullptr || extents == nullptr) {
    if (cells != nullptr) munmap(cells, bytes / kWord * sizeof(Cell));
    return false;
  }
  shadow.base = base;
  shadow.bytes = bytes;
  shadow.page_shift = static_cast<unsigned>(__builtin_ctzll(page_size()));
  shadow.cells = cells;
  shadow.extents = extents;
  return true;
}

// --- memory, as the host changes it ---

void made(const Allocation& allocation) {
  const std::uint64_t begin = offset_of(allocation.data);
  set_extents(allocation.pages, allocation.page_bytes, {begin, begin + allocation.bytes, false});
}

void freed(const Allocation& allocation) {
  set_extents(allocation.pages, allocation.page_bytes, {0, 0, false});
  // Whole pages of cells: they read as zero again.
  madvise(cell_of(allocation.pages), allocation.page_bytes / kWord * sizeof(Cell), MADV_DONTNEED);
}

void written(const void* to, std::size_t bytes) {
  const char* begin = static_cast<const char*>(to);
  if (offset_of(begin) >= shadow.bytes) return;
  Extent& extent = shadow.extents[offset_of(begin) >> shadow.page_shift];
  if (extent.initialised) return;
  const std::uint64_t size = extent.end - extent.begin;
  if (offset_of(begin) == extent.begin && bytes == size) {
    const char* pages = shadow.base + (extent.begin >> shadow.page_shift << shadow.page_shift);
    set_extents(pages, round_up(shadow.base + extent.end - pages, page_size()),
                {extent.begin, extent.end, true});
    return;
  }
  for (std::size_t i = 0; i < bytes; ++i) set_initialised(begin + i);
}

void copied(const void* to, const void* from, std::size_t bytes) {
  if (offset_of(to) >= shadow.bytes) return;
  const char* source = static_cast<const char*>(from);
  if (shadow.extents[offset_of(source) >> shadow.page_shift].initialised) {
    written(to, bytes);
    return;
  }
  for (std::size_t i = 0; i < bytes; ++i)
    if (is_initialised(source + i)) set_initialised(static_cast<const char*>(to) + i);
}

void made_shared(const void* place, std::size_t bytes) {
  const std::uint64_t begin = offset_of(place);
  if (shadow.extents[begin >> shadow.page_shift].end == 0) {
    const char* pages = shadow.base + (begin >> shadow.page_shift << shadow.page_shift);
    set_extents(pages, round_up(static_cast<const char*>(place) + bytes - pages, page_size()),
                {begin, begin + bytes, false});
  }
  clear_cells(place, bytes);
}

// --- the course of a launch ---

void begin_launch() {
  if (shadow.module_cells == nullptr) {
    const ModuleRange range = module_range();
    shadow.module_begin = range.begin;
    shadow.module_bytes = range.bytes;
    shadow.code_base = module_base();
    shadow.shared_bytes = arena().shared_bytes;
    shadow.module_cells =
        static_cast<Cell*>(reserve(round_up(range.bytes, kWord) / kWord * sizeof(Cell)));
  }
  if (shadow.epoch > kLastEpoch) shadow.epoch = 0;
  shadow.launch_epoch = shadow.epoch + 1;
  shadow.races_in_shared = machine.settings.races != Settings::Races::kOff;
  shadow.races_in_global = machine.settings.races == Settings::Races::kAll;
  shadow.steps_left = machine.settings.steps == 0 ? ~std::uint64_t{0} : machine.settings.steps;
  split_words.clear();
  block_epochs.clear();
  forget_uninitialised();

  const std::size_t bytes = machine.launch->shape.shared_bytes;
  const std::uint64_t begin = offset_of(dynamic_shared());
  set_extents(shadow.base, kMostSharedBytes, {begin, begin + bytes, false});
}

void begin_block() {
  report_uninitialised();
  next_epoch();
  shadow.block_epoch = shadow.epoch;
  block_epochs.push_back(shadow.epoch);
  std::fill_n(syncwarps, machine.threads, 0);
  clear_cells(dynamic_shared(), machine.launch->shape.shared_bytes);
}

void begin_thread(int thread) {
  shadow.self = static_cast<std::uint32_t>(thread) | syncwarps[thread];
}

void pass_barrier() {
  report_uninitialised();
  next_epoch();
}

void end_blocks() { report_uninitialised(); }

void stop_soon() { shadow.steps_left = 0; }

void pass_syncwarp(int thread) {
  syncwarps[thread] = (syncwarps[thread] + (1u << kThreadBits)) & kStep;
}

std::uint64_t block_of_epoch(std::uint32_t epoch) {
  const auto after = std::upper_bound(block_epochs.begin(), block_epochs.end(), epoch);
  return static_cast<std::uint64_t>(after - block_epochs.begin()) - 1;
}

Cell* byte_cells(Cell& word) {
  const auto [entry, is_new] = split_words.try_emplace(&word);
  if (is_new) {
    const Cell whole = {word.write, {word.read.epoch, word.read.who & ~kSplit, word.read.code}};
    std::fill_n(entry->second.cells, kWord, whole);
    word.read.who |= kSplit;
  }
  return entry->second.cells;
}

// --- the host's own accesses ---

void note_host_access(const char* address, bool write, const void* code) {
  const std::lock_guard<std::mutex> lock(host_mutex);
  if (!host_access.empty()) return;
  host_access = std::string("host code ") + (write ? "writes" : "reads") + " device memory at " +
                source_place(code) + "; only cudaMemcpy may\n  " + describe_address(address);
}

void throw_host_access() {
  const std::lock_guard<std::mutex> lock(host_mutex);
  if (host_access.empty()) return;
  const std::string text = std::move(host_access);
  host_access.clear();
  throw KernelError("host access", "CUDA emulator: " + text);
}

}  // namespace needle::emulator::checked

#endif  // NEEDLE_EMULATOR_CHECKED
