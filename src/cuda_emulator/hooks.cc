// What instrumented kernels call at each access of memory (checked mode). -fsanitize=thread makes
// the compiler put the calls there; their names are its own. shadow.h explains what is checked.
#include <cstdint>
#include <cstring>

#include "checked.h"
#include "machine.h"
#include "shadow.h"
#include "source_location.h"

#ifdef NEEDLE_EMULATOR_CHECKED

namespace needle::emulator::checked {
namespace {

std::uint32_t warp(std::uint32_t who) { return (who & kThread) >> kWarpShift; }
std::uint32_t step(std::uint32_t who) { return who & kStep; }

inline bool races_matter(std::uint64_t offset) {
  return offset < shadow.shared_bytes ? shadow.races_in_shared : shadow.races_in_global;
}

// Whether two accesses are not ordered, the earlier by its record.
inline bool is_race(const Record& earlier) {
  if (earlier.epoch > shadow.epoch) return false;       // of a count that began anew
  if (earlier.epoch < shadow.block_epoch) return true;  // another block's
  if (earlier.epoch != shadow.epoch) return false;      // a barrier lies between
  if ((earlier.who & kManyWarps) != 0 || warp(earlier.who) != warp(shadow.self)) return true;
  if (step(earlier.who) != step(shadow.self)) return false;  // a __syncwarp() lies between
  return (earlier.who & kThread) != (shadow.self & kThread) || (earlier.who & kManyLanes) != 0;
}

inline void check_races(const Cell& cell, const Access& access) {
  const Record& w = cell.write;
  const Record& r = cell.read;
  if (w.epoch >= shadow.launch_epoch && !(access.atomic && (w.who & kAtomic) != 0) && is_race(w))
    report_race(access, w, true);
  if (access.write && r.epoch >= shadow.launch_epoch && is_race(r)) report_race(access, r, false);
}

// Of several readers in an epoch the first stays, with a note of the others; one of another block
// stays too, for it races with any write that follows.
inline void record_read(Record& r, std::uint32_t code) {
  const std::uint32_t self = shadow.self;
  const std::uint32_t split = r.who & kSplit;
  if (r.epoch >= shadow.launch_epoch && r.epoch < shadow.block_epoch) return;
  if (r.epoch != shadow.epoch) {
    r = {shadow.epoch, self | split, code};
  } else if (warp(r.who) != warp(self)) {
    r.who |= kManyWarps;
  } else if (step(r.who) != step(self)) {
    r = {shadow.epoch, self | split | (r.who & kManyWarps), code};
  } else if ((r.who & kThread) != (self & kThread)) {
    r.who |= kManyLanes;
  }
}

inline void record_write(Record& w, const Access& access, std::uint32_t code,
                         std::uint32_t initialised) {
  std::uint32_t flags = (w.who & kInitialised) | initialised << kInitialisedShift;
  if (access.atomic) {
    flags |= kAtomic;
    const bool atomic_before = w.epoch >= shadow.launch_epoch && (w.who & kAtomic) != 0;
    if (atomic_before && w.epoch < shadow.block_epoch) return;  // another block's
    if (atomic_before && w.epoch == shadow.epoch) {
      flags |= w.who & kManyWarps;
      if (warp(w.who) != warp(shadow.self)) flags |= kManyWarps;
    }
  }
  w = {shadow.epoch, shadow.self | flags, code};
}

inline void check_records(Cell& cell, const Access& access, bool races, std::uint32_t initialised) {
  const auto code =
      static_cast<std::uint32_t>(static_cast<const char*>(access.code) - shadow.code_base);
  if (races) check_races(cell, access);
  if (access.write) {
    record_write(cell.write, access, code, initialised);
  } else {
    record_read(cell.read, code);
  }
}

// Bytes of a word that are accessed one by one have records of their own, and so has each byte of
// such a word from then on.
void check_bytes(Cell& word, const Access& access, bool races, std::uint32_t mask) {
  machine.in_kernel = false;
  Cell* bytes = byte_cells(word);
  machine.in_kernel = true;
  for (std::uint32_t i = 0; i < kWord; ++i)
    if ((mask >> i & 1) != 0) check_records(bytes[i], access, races, 0);
  if (access.write) word.write.who |= mask << kInitialisedShift;
}

void check_word(Cell& cell, const Access& access, bool races, bool initialised,
                std::uint32_t mask) {
  if (!initialised && (!access.write || access.atomic) &&
      (cell.write.who >> kInitialisedShift & mask) != mask)
    note_uninitialised(access);
  if (mask != 0xf || (cell.read.who & kSplit) != 0) {
    check_bytes(cell, access, races, mask);
  } else {
    check_records(cell, access, races, mask);
  }
}

void check_words(Cell* cells, std::uint64_t offset, const Access& access, bool races,
                 bool initialised) {
  const std::uint64_t end = offset + access.bytes;
  for (std::uint64_t at = offset; at < end;) {
    const std::uint64_t word = at / kWord;
    const std::uint64_t next = word * kWord + kWord < end ? word * kWord + kWord : end;
    const auto mask = static_cast<std::uint32_t>(((1u << (next - at)) - 1u) << (at - word * kWord));
    check_word(cells[word], access, races, initialised, mask);
    at = next;
  }
}

bool within(const char* address, const void* begin, std::size_t bytes) {
  return static_cast<std::size_t>(address - static_cast<const char*>(begin)) < bytes;
}

// Memory outside of the arena: variables of the module, local variables, arguments.
void check_elsewhere(const Access& access) {
  if (machine.current->stack.contains(access.address)) return;
  const auto module_offset = static_cast<std::uint64_t>(access.address - shadow.module_begin);
  if (module_offset < shadow.module_bytes) {
    check_words(shadow.module_cells, module_offset, access, shadow.races_in_global, true);
    return;
  }
  const Launch& launch = *machine.launch;
  if (within(access.address, launch.frame, launch.frame_bytes)) return;
  machine.in_kernel = false;
  if (!is_pinned(access.address)) report_bounds(access);
  machine.in_kernel = true;
}

void check(const Access& access, std::size_t alignment) {
  const auto offset = static_cast<std::uint64_t>(access.address - shadow.base);
  if (offset >= shadow.bytes) {
    check_elsewhere(access);
    return;
  }
  const Extent& extent = shadow.extents[offset >> shadow.page_shift];
  if (offset < extent.begin || offset + access.bytes > extent.end) report_bounds(access);
  if ((offset & (alignment - 1)) != 0) report_misaligned(access, alignment);
  check_words(shadow.cells, offset, access, races_matter(offset), extent.initialised);
}

// The same for nearly all accesses: whole words of the arena with nothing special about them.
// Returns false for all others.
inline bool check_whole_word(const Access& access) {
  const auto offset = static_cast<std::uint64_t>(access.address - shadow.base);
  if (offset >= shadow.bytes || offset % kWord != 0) return false;
  const Extent& extent = shadow.extents[offset >> shadow.page_shift];
  if (offset < extent.begin || offset + kWord > extent.end) return false;
  Cell& cell = shadow.cells[offset / kWord];
  if (!access.write && !extent.initialised && (~cell.write.who & kInitialised) != 0) return false;
  if ((cell.read.who & kSplit) != 0) return false;
  check_records(cell, access, races_matter(offset), 0xf);
  return true;
}

// Instrumented host code comes here too: it has no business in device memory.
inline void on_access(const void* address, std::size_t bytes, bool write, const void* caller,
                      std::size_t alignment) {
  const char* const code = static_cast<const char*>(caller) - 1;  // inside of the call
  if (runs_kernel && machine.in_kernel) {
    const Access access = {static_cast<const char*>(address), bytes, write, false, code};
    if (shadow.steps_left-- == 0) report_steps(code);
    if (bytes == kWord && check_whole_word(access)) return;
    check(access, alignment);
  } else if (static_cast<std::uint64_t>(static_cast<const char*>(address) - shadow.base) <
             shadow.bytes) {
    note_host_access(static_cast<const char*>(address), write, code);
  }
}

}  // namespace

}  // namespace needle::emulator::checked

namespace needle::emulator {

void check_atomic(const void* address, std::size_t bytes, const void* caller) {
  if (!runs_kernel) return;
  if (checked::shadow.steps_left-- == 0) checked::report_steps(caller);
  checked::check(
      {static_cast<const char*>(address), bytes, true, true, static_cast<const char*>(caller) - 1},
      bytes);
}

}  // namespace needle::emulator

using needle::emulator::checked::on_access;

#define NEEDLE_CALLER __builtin_return_address(0)

#define NEEDLE_ACCESS_HOOKS(bytes)                                                             \
  void __tsan_read##bytes(void* p) { on_access(p, bytes, false, NEEDLE_CALLER, bytes); }       \
  void __tsan_write##bytes(void* p) { on_access(p, bytes, true, NEEDLE_CALLER, bytes); }       \
  void __tsan_unaligned_read##bytes(void* p) { on_access(p, bytes, false, NEEDLE_CALLER, 1); } \
  void __tsan_unaligned_write##bytes(void* p) { on_access(p, bytes, true, NEEDLE_CALLER, 1); }

// Host code in the same file may use atomics, which the compiler replaces by these calls.
#define NEEDLE_ATOMIC_HOOKS(bits, type)                                                            \
  type __tsan_atomic##bits##_load(const volatile type* p, int) {                                   \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                \
  void __tsan_atomic##bits##_store(volatile type* p, type v, int) {                                \
    __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                      \
  }                                                                                                \
  type __tsan_atomic##bits##_exchange(volatile type* p, type v, int) {                             \
    return __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);                                            \
  }                                                                                                \
  type __tsan_atomic##bits##_fetch_add(volatile type* p, type v, int) {                            \
    return __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  type __tsan_atomic##bits##_fetch_sub(volatile type* p, type v, int) {                            \
    return __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  type __tsan_atomic##bits##_fetch_and(volatile type* p, type v, int) {                            \
    return __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  type __tsan_atomic##bits##_fetch_or(volatile type* p, type v, int) {                             \
    return __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST);                                              \
  }                                                                                                \
  type __tsan_atomic##bits##_fetch_xor(volatile type* p, type v, int) {                            \
    return __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST);                                             \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* expected, type v, int, \
                                                    int) {                                         \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* expected, type v, int,   \
                                                  int) {                                           \
    return __atomic_compare_exchange_n(p, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }

// Types of what -fsanitize=bounds,alignment hands over.
struct needle_ubsan_location {
  const char* file;
  unsigned line;
  unsigned column;
};

struct needle_ubsan_type {
  unsigned short kind;
  unsigned short info;
  char name[1];
};

struct needle_ubsan_index {
  needle_ubsan_location location;
  const needle_ubsan_type* array_type;
  const needle_ubsan_type* index_type;
};

struct needle_ubsan_mismatch {
  needle_ubsan_location location;
  const needle_ubsan_type* type;
  unsigned char log_alignment;
  unsigned char kind;
};

extern "C" {

NEEDLE_ACCESS_HOOKS(1)
NEEDLE_ACCESS_HOOKS(2)
NEEDLE_ACCESS_HOOKS(4)
NEEDLE_ACCESS_HOOKS(8)
NEEDLE_ACCESS_HOOKS(16)

void __tsan_read_range(void* p, std::size_t bytes) { on_access(p, bytes, false, NEEDLE_CALLER, 1); }
void __tsan_write_range(void* p, std::size_t bytes) { on_access(p, bytes, true, NEEDLE_CALLER, 1); }
void __tsan_vptr_read(void** p) { on_access(p, sizeof *p, false, NEEDLE_CALLER, sizeof *p); }
void __tsan_vptr_update(void** p, void*) {
  on_access(p, sizeof *p, true, NEEDLE_CALLER, sizeof *p);
}
// clang calls these where structures are copied.
void* __tsan_memcpy(void* to, const void* from, std::size_t bytes) {
  on_access(from, bytes, false, NEEDLE_CALLER, 1);
  on_access(to, bytes, true, NEEDLE_CALLER, 1);
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, std::size_t bytes) {
  on_access(from, bytes, false, NEEDLE_CALLER, 1);
  on_access(to, bytes, true, NEEDLE_CALLER, 1);
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, std::size_t bytes) {
  on_access(to, bytes, true, NEEDLE_CALLER, 1);
  return std::memset(to, value, bytes);
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

NEEDLE_ATOMIC_HOOKS(8, unsigned char)
NEEDLE_ATOMIC_HOOKS(16, unsigned short)
NEEDLE_ATOMIC_HOOKS(32, unsigned int)
NEEDLE_ATOMIC_HOOKS(64, unsigned long long)

void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}

void __ubsan_handle_out_of_bounds(needle_ubsan_index* data, std::uintptr_t index) {
  if (!needle::emulator::runs_kernel) return;
  needle::emulator::checked::report_index(static_cast<const char*>(NEEDLE_CALLER) - 1,
                                          data->array_type->name, index);
}

void __ubsan_handle_type_mismatch_v1(needle_ubsan_mismatch* data, std::uintptr_t pointer) {
  if (!needle::emulator::runs_kernel) return;
  const std::size_t alignment = std::size_t{1} << data->log_alignment;
  const bool store = data->kind == 1;
  needle::emulator::checked::report_misaligned(
      {reinterpret_cast<const char*>(pointer), alignment, store, false,
       static_cast<const char*>(NEEDLE_CALLER) - 1},
      alignment);
}

// clang's, for what __builtin_assume_aligned promises.
void __ubsan_handle_alignment_assumption(void*, std::uintptr_t pointer, std::uintptr_t alignment,
                                         std::uintptr_t) {
  if (!needle::emulator::runs_kernel) return;
  needle::emulator::checked::report_misaligned(
      {reinterpret_cast<const char*>(pointer), alignment, false, false,
       static_cast<const char*>(NEEDLE_CALLER) - 1},
      alignment);
}

}  // extern "C"

#endif  // NEEDLE_EMULATOR_CHECKED
