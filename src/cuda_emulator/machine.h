// The state of the emulated device while a kernel runs, shared by the files of the runtime, and the
// ways from a kernel back to its launch. scheduler.cc runs the threads; threads.cc lets them wait.
#pragma once

#include <cstdint>
#include <string>

#include "cuda_emulator/launch.h"
#include "cuda_emulator/threads.h"
#include "fiber.h"
#include "settings.h"

namespace needle::emulator {

constexpr int kWarp = 32;
constexpr int kMaxThreads = 1024;

// What a fiber's thread waits for.
struct WarpRequest {
  WarpOperation operation;
  std::uint32_t mask;
  std::uint64_t value;  // given, then received
  int lane;
  int width;
};

struct Fiber {
  explicit Fiber(std::size_t number) : stack(number) {}

  Context context;
  Stack stack;
  Fiber* next = nullptr;  // in the queue that it stands in
  int thread = 0;
  bool at_barrier = false;  // else, if it waits, in a warp operation
  Place place{};
  WarpRequest request{};
};

// Fibers in the order in which they came.
struct Queue {
  Fiber* first = nullptr;
  Fiber* last = nullptr;

  bool empty() const { return first == nullptr; }

  void push(Fiber* fiber) {
    fiber->next = nullptr;
    (first == nullptr ? first : last->next) = fiber;
    last = fiber;
  }

  Fiber* pop() {
    Fiber* fiber = first;
    first = fiber->next;
    return fiber;
  }

  void append(Queue& other) {
    if (other.empty()) return;
    (first == nullptr ? first : last->next) = other.first;
    last = other.last;
    other.first = nullptr;
  }
};

struct Machine {
  const Launch* launch = nullptr;  // null while no kernel runs
  Settings settings;
  Fiber* current = nullptr;         // null on the host's own stack
  volatile bool in_kernel = false;  // the kernel's own code runs, not the runtime's
  volatile int overtime = 0;        // ticks since the time limit has passed

  // The block that runs.
  int threads = 0;                                   // of a block
  int started = 0;                                   // threads that have begun
  int waiting = 0;                                   // threads that wait
  Queue ready;                                       // threads that may go on
  Queue barrier;                                     // threads at the barrier
  int barrier_count = 0;                             // how many
  int barrier_true = 0;                              // for how many the predicate holds
  int barrier_result = 0;                            // of the latest barrier
  bool barriers_differ = false;                      // not all of them at the same one
  Fiber* lanes[kMaxThreads];                         // by thread: who waits in a warp operation
  std::uint32_t lanes_waiting[kMaxThreads / kWarp];  // the same as a bit mask for each warp
  std::uint64_t block_number = 0;                    // rises with each block of each launch
  std::uint64_t launch_number = 0;                   // rises with each launch
  std::size_t static_shared_bytes = 0;               // of this launch's __shared__ variables so far

  // The host, which waits in its launch.
  Context host;
  const char* failure_kind = nullptr;  // not null if the kernel did not end well
  std::string failure;
  void (*describe_failure)() = nullptr;
};

extern Machine machine;

// Whether this system thread is the one that runs the kernel: others may call the runtime
// meanwhile. The storage model makes it cheap to read, and safe in a signal handler.
extern __thread bool runs_kernel __attribute__((tls_model("initial-exec")));

// Lets the current thread wait in a queue or in `lanes`, and returns when it is ready again.
void wait();

// Ends the launch with a KernelError: message, then what the launch was. From a kernel this leaves
// its stack as it is: no destructor runs.
[[noreturn]] void fail(const char* kind, std::string message);

// The same from a signal handler, which has no time for texts: `describe` makes the message later,
// on the host's stack.
[[noreturn]] void fail_later(void (*describe)());

// "thread (3,0,0) of block (1,0,0)", of the block that runs or of the n-th of the launch.
std::string thread_text(int thread);
std::string thread_text(int thread, std::uint64_t block);
inline std::string current_thread_text() { return thread_text(machine.current->thread); }

// Called when every thread of the block waits or has returned: makes some ready, or fails.
void resolve_standstill();

// Forgets who waits, at the end of a launch that failed.
void forget_waiting();

// "k.cu:16", without folders.
std::string place_text(const Place& place);

std::string index_text(unsigned x, unsigned y, unsigned z);

}  // namespace needle::emulator
