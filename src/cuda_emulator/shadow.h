// What the checked mode knows of each word of device memory: which of its bytes were ever written,
// and who last wrote and read it. shadow.cc keeps it up to date for the host and for the course of
// a launch; hooks.cc checks a kernel's accesses against it; reports.cc finds the words for a
// mistake.
//
// Two accesses race if one of them writes, not both are atomic, and nothing orders them. Time is
// cut into epochs, at each block's beginning and at each of its barriers: accesses of one block in
// different epochs are ordered; those of two blocks of a launch never are; those of two launches
// always are. In an epoch __syncwarp() orders accesses of the same warp: each thread counts its
// own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "device_memory.h"

namespace needle::emulator::checked {

// One access: 12 bytes, of which `who` holds the thread (10 bits), its count of __syncwarp (12
// bits) and flags.
struct Record {
  std::uint32_t epoch;  // 0: there was none
  std::uint32_t who;
  std::uint32_t code;  // the instruction, counted from the module's beginning
};

constexpr std::uint32_t kWord = 4;  // bytes

// One word.
struct Cell {
  Record write;
  Record read;
};

constexpr std::uint32_t kThreadBits = 10;
constexpr std::uint32_t kThread = (1u << kThreadBits) - 1;
constexpr std::uint32_t kWarpShift = 5;  // a thread's warp is its number shifted by this
constexpr std::uint32_t kStepBits = 12;
constexpr std::uint32_t kStep = ((1u << kStepBits) - 1) << kThreadBits;
constexpr std::uint32_t kWho = kThread | kStep;
constexpr std::uint32_t kAtomic = 1u << 22;     // of a write
constexpr std::uint32_t kManyLanes = 1u << 23;  // of a read: by other lanes of the warp too
constexpr std::uint32_t kManyWarps = 1u << 24;  // by other warps too
constexpr std::uint32_t kSplit = 1u << 25;  // of a read: the word's bytes have cells of their own
constexpr std::uint32_t kInitialisedShift = 28;  // of a write: 4 bits, one for each byte
constexpr std::uint32_t kInitialised = 0xfu << kInitialisedShift;

// What lies in a page of the arena: no page holds parts of two allocations.
struct Extent {
  std::uint64_t begin;  // offsets in the arena; both 0 if nothing is there
  std::uint64_t end;
  bool initialised;  // wholly, whatever the cells say
};

struct Shadow {
  char* base = nullptr;  // the arena's
  std::uint64_t bytes = 0;
  std::uint64_t shared_bytes = 0;  // of them, at the beginning
  unsigned page_shift = 12;
  Cell* cells = nullptr;
  Extent* extents = nullptr;  // by page

  // This module's variables.
  const char* module_begin = nullptr;
  std::uint64_t module_bytes = 0;
  const char* code_base = nullptr;  // see Record::code
  Cell* module_cells = nullptr;

  std::uint32_t epoch = 0;
  std::uint32_t block_epoch = 0;   // the block's first
  std::uint32_t launch_epoch = 0;  // the launch's first
  std::uint32_t self = 0;          // the running thread, as in Record::who
  bool races_in_global = true;
  bool races_in_shared = true;
  std::uint64_t steps_left = 0;
};

extern Shadow shadow;

// What a kernel did to one place.
struct Access {
  const char* address;
  std::size_t bytes;
  bool write;
  bool atomic;
  const void* code;
};

// The cells of the four bytes of a word to which bytes of it were accessed.
Cell* byte_cells(Cell& word);

// A read of memory that nobody has written. It may be one half of a race: so it is reported at the
// block's next barrier, or its end, unless a write in the same epoch is found until then.
void note_uninitialised(const Access& access);
void report_uninitialised();  // if there is one
void forget_uninitialised();

// Reports. All end the launch.
[[noreturn]] void report_bounds(const Access& access);
[[noreturn]] void report_misaligned(const Access& access, std::size_t alignment);
[[noreturn]] void report_race(const Access& access, const Record& earlier, bool earlier_wrote);
[[noreturn]] void report_index(const void* code, const char* type, std::size_t index);
[[noreturn]] void report_steps(const void* code);

// The block that ran in an epoch of this launch: the n-th.
std::uint64_t block_of_epoch(std::uint32_t epoch);

// Remembers that host code touched device memory: reported by its next call.
void note_host_access(const char* address, bool write, const void* code);

}  // namespace needle::emulator::checked
