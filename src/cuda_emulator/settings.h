// What the environment sets, read at each launch: see the table in README.md.
#pragma once

#include <cstdint>

namespace needle::emulator {

struct Settings {
  enum class Order { kForward, kReverse, kRandom };
  enum class Races { kAll, kShared, kOff };

  Order order = Order::kForward;  // NEEDLE_EMULATOR_ORDER
  std::uint64_t seed = 0;         // of a random order
  Races races = Races::kAll;      // NEEDLE_EMULATOR_RACES
  double seconds = 60;            // NEEDLE_EMULATOR_SECONDS: a kernel's processor time
  std::uint64_t steps = 0;        // NEEDLE_EMULATOR_STEPS: memory accesses and waits; 0: any
  bool returned_may_miss_barrier = false;  // NEEDLE_EMULATOR_RETURNED=allow
};

// Throws KernelError for a value that means nothing.
Settings read_settings();

}  // namespace needle::emulator
