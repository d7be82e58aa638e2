// Runs the threads of a launch, block after block, on one system thread. A loop on one fiber calls
// the kernel for thread after thread; only when a thread waits does the rest of the loop move to
// another fiber. So a kernel without barriers never switches.
#include <algorithm>
#include <memory>
#include <mutex>
#include <new>
#include <numeric>
#include <random>
#include <vector>

#include "checked.h"
#include "device_memory.h"
#include "errors.h"
#include "faults.h"
#include "machine.h"
#include "shared_memory.h"
#include "source_location.h"

// What kernels read as threadIdx, blockIdx, blockDim and gridDim; there they are constants.
__attribute__((visibility("hidden"))) uint3 needle_emulator_thread_index;
__attribute__((visibility("hidden"))) uint3 needle_emulator_block_index;
__attribute__((visibility("hidden"))) dim3 needle_emulator_block_dim;
__attribute__((visibility("hidden"))) dim3 needle_emulator_grid_dim;

namespace needle::emulator {

Machine machine;
__thread bool runs_kernel = false;

namespace {

constexpr unsigned kMaxGridX = 0x7fffffff;
constexpr unsigned kMaxGridYZ = 65535;
constexpr unsigned kMaxBlockZ = 64;

// The order of the threads of a block and of the blocks of a grid, fixed at each launch.
struct Sequence {
  uint3 index[kMaxThreads];           // threadIdx of each thread
  std::uint16_t thread[kMaxThreads];  // the n-th to run
  std::uint64_t blocks = 0;
  std::uint64_t next_block = 0;
  std::uint64_t block_step = 1;  // block n is (n * step + shift) % blocks
  std::uint64_t block_shift = 0;
};

Sequence sequence;
std::vector<std::unique_ptr<Fiber>> fibers;
std::vector<Fiber*> idle;

void set_thread(int thread) { needle_emulator_thread_index = sequence.index[thread]; }

// --- the order of threads and blocks ---

void plan_threads(const dim3& block) {
  const auto order = machine.settings.order;
  int thread = 0;
  for (unsigned z = 0; z < block.z; ++z)
    for (unsigned y = 0; y < block.y; ++y)
      for (unsigned x = 0; x < block.x; ++x) sequence.index[thread++] = {x, y, z};
  std::iota(sequence.thread, sequence.thread + thread, std::uint16_t{0});
  if (order == Settings::Order::kReverse) std::reverse(sequence.thread, sequence.thread + thread);
  if (order == Settings::Order::kRandom) {
    std::mt19937_64 random(machine.settings.seed);
    for (int i = thread - 1; i > 0; --i)
      std::swap(sequence.thread[i], sequence.thread[random() % (i + 1)]);
  }
  machine.threads = thread;
}

void plan_blocks(const dim3& grid) {
  const auto order = machine.settings.order;
  sequence.blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  sequence.next_block = 0;
  sequence.block_step = 1;
  sequence.block_shift = 0;
  if (order == Settings::Order::kReverse) {
    sequence.block_step = sequence.blocks - 1;
    sequence.block_shift = sequence.blocks - 1;
  } else if (order == Settings::Order::kRandom) {
    // A step that shares no divisor with the number of blocks meets each block once.
    std::mt19937_64 random(machine.settings.seed);
    const std::uint64_t most = std::min<std::uint64_t>(sequence.blocks, 0xffffffff);
    do {
      sequence.block_step = random() % most + 1;
    } while (std::gcd(sequence.block_step, sequence.blocks) != 1);
    sequence.block_shift = random() % most;
  }
}

// blockIdx of the block that is the n-th to run.
uint3 block_index(std::uint64_t number) {
  using Wide = unsigned __int128;
  if (machine.settings.order != Settings::Order::kForward) {
    number = static_cast<std::uint64_t>(
        (Wide{number} * sequence.block_step + sequence.block_shift) % sequence.blocks);
  }
  const dim3& grid = needle_emulator_grid_dim;
  return {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
          static_cast<unsigned>(number / grid.x / grid.y)};
}

// Returns false after the last block.
bool begin_block() {
  if (sequence.next_block == sequence.blocks) {
    checked::end_blocks();
    return false;
  }
  needle_emulator_block_index = block_index(sequence.next_block++);
  machine.started = 0;
  ++machine.block_number;
  poison_dynamic_shared();
  checked::begin_block();
  return true;
}

// --- fibers ---

[[noreturn]] void run_fiber();

Fiber* take_idle() {
  if (idle.empty()) {
    fibers.push_back(std::make_unique<Fiber>(fibers.size()));
    Fiber* fiber = fibers.back().get();
    prepare_context(fiber->context, fiber->stack.bottom(), fiber->stack.usable_bytes(), run_fiber);
    idle.reserve(fibers.size());
    return fiber;
  }
  Fiber* fiber = idle.back();
  idle.pop_back();
  return fiber;
}

Fiber* take_ready() {
  Fiber* fiber = machine.ready.pop();
  --machine.waiting;
  set_thread(fiber->thread);
  return fiber;
}

void switch_to(Fiber* next) {
  Fiber* self = machine.current;
  machine.current = next;
  switch_context(self->context, next->context);
}

void switch_to_host() {
  Fiber* self = machine.current;
  machine.current = nullptr;
  machine.in_kernel = false;
  switch_context(self->context, machine.host);
}

// Starts threads until one that waited may go on, or all have begun.
void start_threads() {
  const Launch& launch = *machine.launch;
  while (machine.started < machine.threads && machine.ready.empty()) {
    const int thread = sequence.thread[machine.started++];
    machine.current->thread = thread;
    set_thread(thread);
    checked::begin_thread(thread);
    machine.in_kernel = true;
    launch.run(launch.frame);
    machine.in_kernel = false;
  }
}

void start_threads_caught() {
  std::string what;
  try {
    start_threads();
    return;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
    what = "of an unknown type";
  }
  // Outside of the handlers: fail never comes back to end them.
  fail("exception", "an exception left the kernel (a GPU has none): " + what + "\n  in " +
                        current_thread_text());
}

void run_fiber() {
  for (;;) {
    start_threads_caught();
    if (!machine.ready.empty()) {
      idle.push_back(machine.current);
      switch_to(take_ready());
    } else if (machine.waiting > 0) {
      resolve_standstill();
    } else if (!begin_block()) {
      idle.push_back(machine.current);
      switch_to_host();
    }
  }
}

// --- launches ---

std::string shape_text(const dim3& shape) { return index_text(shape.x, shape.y, shape.z); }

std::string launch_text(const Launch& launch) {
  std::string text = std::string("in kernel ") + launch.site.kernel + "<<<" +
                     shape_text(launch.shape.grid) + ", " + shape_text(launch.shape.block);
  if (launch.shape.shared_bytes > 0)
    text += ", " + std::to_string(launch.shape.shared_bytes) + " bytes";
  return text + ">>> launched at " + place_text({launch.site.file, launch.site.line});
}

[[noreturn]] void throw_failure(const Launch& launch, const char* kind, const std::string& text) {
  throw KernelError(kind, "CUDA emulator: " + text + "\n  " + launch_text(launch));
}

// Returns whether CUDA would run the kernel; if not, the error is set.
bool check_shape(const Launch& launch) {
  const dim3& grid = launch.shape.grid;
  const dim3& block = launch.shape.block;
  const auto refuse = [&](const std::string& what) {
    set_error(cudaErrorInvalidConfiguration, what + "; " + launch_text(launch));
    return false;
  };
  const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return refuse("the grid has no blocks");
  if (threads == 0) return refuse("the block has no threads");
  if (block.x > kMaxThreads || block.y > kMaxThreads || threads > kMaxThreads) {
    return refuse("the block has " + std::to_string(threads) + " threads; 1024 are the most");
  }
  if (block.z > kMaxBlockZ) return refuse("the block's z is larger than 64");
  if (grid.x > kMaxGridX) return refuse("the grid's x is larger than 2147483647");
  if (grid.y > kMaxGridYZ || grid.z > kMaxGridYZ)
    return refuse("the grid's y or z is larger than 65535");
  const std::size_t limit = dynamic_shared_limit(launch.kernel);
  if (launch.shape.shared_bytes > limit) {
    set_error(cudaErrorInvalidValue,
              std::to_string(launch.shape.shared_bytes) + " bytes of dynamic shared memory; " +
                  std::to_string(limit) + " are the most" +
                  (limit < kMostSharedBytes ? " without cudaFuncSetAttribute" : "") + "; " +
                  launch_text(launch));
    return false;
  }
  return true;
}

void check_pointers(const Launch& launch) {
  for (int i = 0; i < launch.argument_count; ++i) {
    const void* pointer = launch.pointers[i];
    if (pointer == nullptr || is_device_pointer(pointer)) continue;
    char address[32];
    std::snprintf(address, sizeof address, "%p", pointer);
    throw_failure(launch, "host pointer",
                  "argument " + std::to_string(i + 1) + " (" + address +
                      ") is not a device pointer: " + describe_address(pointer));
  }
}

void reset_after_failure() {
  machine.in_kernel = false;
  machine.ready = {};
  machine.waiting = 0;
  forget_waiting();
  idle.clear();
  for (const auto& fiber : fibers) {
    prepare_context(fiber->context, fiber->stack.bottom(), fiber->stack.usable_bytes(), run_fiber);
    idle.push_back(fiber.get());
  }
}

}  // namespace

void wait() {
  machine.in_kernel = false;
  if (machine.overtime > 0) fail_overtime(place_text(machine.current->place));
  ++machine.waiting;
  Fiber* const self = machine.current;
  while (machine.ready.empty() && machine.started == machine.threads) resolve_standstill();
  Fiber* const next = machine.ready.empty() ? take_idle() : take_ready();
  if (next != self) switch_to(next);
  checked::begin_thread(self->thread);
  machine.in_kernel = true;
}

void fail(const char* kind, std::string message) {
  if (!runs_kernel) throw KernelError(kind, "CUDA emulator: " + message);
  machine.failure_kind = kind;
  machine.failure = std::move(message);
  switch_to_host();
  __builtin_unreachable();
}

void fail_later(void (*describe)()) {
  machine.failure_kind = "";
  machine.describe_failure = describe;
  switch_to_host();
  __builtin_unreachable();
}

void run(const Launch& launch) {
  static std::mutex one_launch;
  if (runs_kernel) {
    fail("launch", std::string("a kernel launched the kernel ") + launch.site.kernel +
                       "; only the host can, here");
  }
  const std::lock_guard<std::mutex> lock(one_launch);
  machine.settings = read_settings();
  checked::throw_host_access();
  if (!check_shape(launch)) return;
  check_pointers(launch);

  machine.launch = &launch;
  machine.failure_kind = nullptr;
  machine.describe_failure = nullptr;
  machine.overtime = 0;
  ++machine.launch_number;
  machine.static_shared_bytes = 0;
  needle_emulator_grid_dim = launch.shape.grid;
  needle_emulator_block_dim = launch.shape.block;
  plan_threads(launch.shape.block);
  plan_blocks(launch.shape.grid);
  place_dynamic_shared(launch.shape.shared_bytes);
  checked::begin_launch();
  begin_block();
  machine.current = take_idle();
  {
    const FaultGuard guard(machine.settings.seconds);
    runs_kernel = true;
    switch_context(machine.host, machine.current->context);
    runs_kernel = false;
  }
  if (machine.failure_kind != nullptr) {
    if (machine.describe_failure != nullptr) machine.describe_failure();
    reset_after_failure();
  }
  machine.launch = nullptr;
  if (machine.failure_kind != nullptr) throw_failure(launch, machine.failure_kind, machine.failure);
}

std::string index_text(unsigned x, unsigned y, unsigned z) {
  return "(" + std::to_string(x) + "," + std::to_string(y) + "," + std::to_string(z) + ")";
}

std::string thread_text(int thread, std::uint64_t block) {
  const uint3& t = sequence.index[thread];
  const uint3 b = block_index(block);
  return "thread " + index_text(t.x, t.y, t.z) + " of block " + index_text(b.x, b.y, b.z);
}

std::string thread_text(int thread) { return thread_text(thread, sequence.next_block - 1); }

}  // namespace needle::emulator
