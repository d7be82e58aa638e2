// The words for what the checked mode finds; see shadow.h.
#include <cstdio>
#include <string>

#include "checked.h"
#include "faults.h"
#include "machine.h"
#include "shadow.h"
#include "shared_memory.h"
#include "source_location.h"

#ifdef NEEDLE_EMULATOR_CHECKED

namespace needle::emulator::checked {
namespace {

struct Uninitialised {
  bool noted = false;
  Access access{};
  int thread = 0;
};

Uninitialised uninitialised;  // of the epoch that runs

std::string bytes_text(std::size_t bytes) {
  return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes");
}

const char* memory_name(const char* address) {
  if (!arena().contains(address)) return "";
  return address < arena().begin + arena().shared_bytes ? "shared memory " : "global memory ";
}

std::string access_text(const Access& access) {
  return std::string(access.atomic  ? "atomic update"
                     : access.write ? "write"
                                    : "read") +
         " of " + bytes_text(access.bytes);
}

std::string where(const Access& access) {
  return " at " + source_place(access.code) + " by " + current_thread_text();
}

// "(element 1000 of 1000 4-byte elements)", if the access lies on one.
std::string element_text(const Access& access) {
  SharedPiece shared;
  Allocation allocation;
  const char* data;
  std::size_t bytes;
  if (find_shared(access.address, shared)) {
    data = shared.data;
    bytes = shared.bytes;
  } else if (find_allocation(access.address, allocation)) {
    data = allocation.data;
    bytes = allocation.bytes;
  } else {
    return "";
  }
  const std::ptrdiff_t offset = access.address - data;
  const auto size = static_cast<std::ptrdiff_t>(access.bytes);
  if (offset % size != 0 || bytes % access.bytes != 0) return "";
  return " (element " + std::to_string(offset / size) + " of " +
         std::to_string(bytes / access.bytes) + " " + std::to_string(size) + "-byte elements)";
}

const void* code_of(const Record& record) { return module_base() + record.code; }

std::string earlier_text(const Record& earlier, bool wrote, bool same_block) {
  const bool other_thread = same_block && (earlier.who & kThread) == (shadow.self & kThread);
  std::string text = std::string("\n  earlier ") + (wrote ? "written" : "read") + " at " +
                     source_place(code_of(earlier)) + " by ";
  const int thread = static_cast<int>(earlier.who & kThread);
  if (other_thread) return text + "this thread and by others";
  return text + thread_text(thread, block_of_epoch(earlier.epoch));
}

}  // namespace

void report_bounds(const Access& access) {
  machine.in_kernel = false;
  report_uninitialised();  // where the address may come from
  Allocation allocation;
  const bool in_arena = arena().contains(access.address);
  if (in_arena && find_allocation(access.address, allocation) && !allocation.live &&
      access.address >= allocation.data && access.address < allocation.data + allocation.bytes) {
    fail("use after free", "use after free: " + access_text(access) + where(access) + "\n  " +
                               describe_address(access.address));
  }
  if (!in_arena) {
    char address[32];
    std::snprintf(address, sizeof address, "%p", static_cast<const void*>(access.address));
    fail(is_mapped(access.address) ? "host pointer" : "out of bounds",
         access_text(access) + " through " + address + ", which is not a device pointer," +
             where(access) + "\n  " + describe_address(access.address));
  }
  fail("out of bounds", std::string("out-of-bounds ") + memory_name(access.address) +
                            access_text(access) + where(access) + "\n  " +
                            describe_address(access.address) + element_text(access));
}

void report_misaligned(const Access& access, std::size_t alignment) {
  machine.in_kernel = false;
  fail("misaligned", std::string("misaligned ") + memory_name(access.address) +
                         access_text(access) + where(access) + "\n  " +
                         describe_address(access.address) + ", not on a multiple of " +
                         bytes_text(alignment));
}

void note_uninitialised(const Access& access) {
  if (uninitialised.noted) return;
  uninitialised = {true, access, machine.current->thread};
}

void report_uninitialised() {
  if (!uninitialised.noted) return;
  uninitialised.noted = false;
  machine.in_kernel = false;
  const Access& access = uninitialised.access;
  fail("uninitialised", std::string("read of uninitialised ") + memory_name(access.address) + "(" +
                            bytes_text(access.bytes) + ") at " + source_place(access.code) +
                            " by " + thread_text(uninitialised.thread) + "\n  " +
                            describe_address(access.address) + element_text(access) +
                            ", which nobody has written");
}

void forget_uninitialised() { uninitialised.noted = false; }

void report_race(const Access& access, const Record& earlier, bool earlier_wrote) {
  machine.in_kernel = false;
  const bool same_block = earlier.epoch >= shadow.block_epoch;
  const bool same_warp =
      same_block && (earlier.who & kThread) / kWarp == (shadow.self & kThread) / kWarp;
  const std::string place = arena().contains(access.address)
                                ? describe_address(access.address) + element_text(access)
                                : "a variable of the module";
  fail("data race", "data race on " + place + ": " +
                        (same_warp ? "no __syncthreads() or __syncwarp() between the two accesses"
                         : same_block ? "no __syncthreads() between the two accesses"
                                      : "nothing orders the accesses of two blocks") +
                        "\n  " + access_text(access) + where(access) +
                        earlier_text(earlier, earlier_wrote, same_block));
}

void report_index(const void* code, const char* type, std::size_t index) {
  machine.in_kernel = false;
  fail("out of bounds", "out-of-bounds index " +
                            std::to_string(static_cast<std::ptrdiff_t>(index)) + " into " + type +
                            " at " + source_place(code) + " by " + current_thread_text());
}

void report_steps(const void* code) {
  machine.in_kernel = false;
  if (machine.overtime > 0) fail_overtime(source_place(code));
  fail("endless",
       "the kernel has not ended after " + std::to_string(machine.settings.steps) +
           " memory accesses (NEEDLE_EMULATOR_STEPS): does a loop never end?\n  it was at " +
           source_place(code) + " by " + current_thread_text());
}

}  // namespace needle::emulator::checked

#endif  // NEEDLE_EMULATOR_CHECKED
