// How threads wait for each other: barriers of a block, operations of a warp, and what to say when
// nobody can go on.
#include <cstring>

#include "checked.h"
#include "machine.h"
#include "source_location.h"

namespace needle::emulator {
namespace {

constexpr std::uint64_t kUndefined = ~std::uint64_t{0};  // NaN in float and double

bool same_place(const Place& a, const Place& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

// --- barriers ---

void release_barrier() {
  machine.barrier_result = machine.barrier_true;
  machine.barrier_true = 0;
  machine.barrier_count = 0;
  machine.ready.append(machine.barrier);
  checked::pass_barrier();
}

std::string threads_text(int count) {
  return std::to_string(count) + (count == 1 ? " thread" : " threads");
}

bool waits(int thread) {
  if (machine.lanes[thread] != nullptr) return true;
  for (const Fiber* f = machine.barrier.first; f != nullptr; f = f->next)
    if (f->thread == thread) return true;
  return false;
}

// A thread that has returned while others wait; -1 if there is none.
int returned_thread() {
  for (int thread = 0; thread < machine.threads; ++thread)
    if (!waits(thread)) return thread;
  return -1;
}

[[noreturn]] void fail_barrier() {
  const Fiber& first = *machine.barrier.first;
  std::string text = "divergent __syncthreads(): " + std::to_string(machine.barrier_count) +
                     " of " + threads_text(machine.threads) + " reached ";
  if (machine.barriers_differ) {
    const Fiber* other = first.next;
    while (same_place(first.place, other->place)) other = other->next;
    fail("divergent barrier", text + "one, but not all the same\n  " + thread_text(first.thread) +
                                  " waits at " + place_text(first.place) + "\n  " +
                                  thread_text(other->thread) + " waits at " +
                                  place_text(other->place));
  }
  const int returned = machine.threads - machine.waiting;
  const int in_warps = machine.waiting - machine.barrier_count;
  text += "it";
  if (returned > 0) text += ", " + std::to_string(returned) + " returned from the kernel before it";
  if (in_warps > 0) text += ", " + std::to_string(in_warps) + " wait in a warp operation";
  text += "\n  " + thread_text(first.thread) + " waits at " + place_text(first.place);
  if (returned > 0) text += "\n  " + thread_text(returned_thread()) + " has already returned";
  for (int thread = 0; thread < machine.threads; ++thread) {
    if (machine.lanes[thread] == nullptr) continue;
    text += "\n  " + thread_text(thread) + " waits at " + place_text(machine.lanes[thread]->place);
    break;
  }
  fail("divergent barrier", text);
}

// --- warps ---

struct Warp {
  int first;             // its first thread
  std::uint32_t exists;  // its lanes in this block

  explicit Warp(int thread) : first(thread / kWarp * kWarp) {
    const int lanes = machine.threads - first;
    exists = lanes >= kWarp ? 0xffffffff : (std::uint32_t{1} << lanes) - 1;
  }

  Fiber* lane(int lane) const { return machine.lanes[first + lane]; }
  std::uint32_t& waiting() const { return machine.lanes_waiting[first / kWarp]; }
};

bool has(std::uint32_t mask, int lane) { return (mask >> lane & 1) != 0; }

const char* name(WarpOperation operation) {
  switch (operation) {
    case WarpOperation::kShuffle:
      return "__shfl_sync";
    case WarpOperation::kShuffleUp:
      return "__shfl_up_sync";
    case WarpOperation::kShuffleDown:
      return "__shfl_down_sync";
    case WarpOperation::kShuffleXor:
      return "__shfl_xor_sync";
    case WarpOperation::kBallot:
      return "__ballot_sync";
    case WarpOperation::kAny:
      return "__any_sync";
    case WarpOperation::kAll:
      return "__all_sync";
    case WarpOperation::kSyncwarp:
      return "__syncwarp";
    case WarpOperation::kActivemask:
      return "__activemask";
  }
  return "";
}

// The lane whose value a shuffle gives to `lane`, as the PTX manual defines it.
int source_lane(const WarpRequest& request, int lane) {
  const int begin = lane & ~(request.width - 1);
  const int end = begin + request.width;
  int source = lane;
  switch (request.operation) {
    case WarpOperation::kShuffle:
      return begin + (request.lane & (request.width - 1));
    case WarpOperation::kShuffleUp:
      source = lane - request.lane;
      break;
    case WarpOperation::kShuffleDown:
      source = lane + request.lane;
      break;
    default:
      source = lane ^ request.lane;
      break;
  }
  if (request.operation == WarpOperation::kShuffleUp) return source < begin ? lane : source;
  return source < 0 || source >= end ? lane : source;
}

bool is_shuffle(WarpOperation operation) { return operation <= WarpOperation::kShuffleXor; }

// Gives every lane of the mask its result and lets it go on.
void complete(const Warp& warp, std::uint32_t mask, WarpOperation operation) {
  std::uint64_t values[kWarp];
  std::uint32_t votes = 0;
  for (int lane = 0; lane < kWarp; ++lane) {
    if (!has(mask, lane)) continue;
    values[lane] = warp.lane(lane)->request.value;
    if (values[lane] != 0) votes |= std::uint32_t{1} << lane;
  }
  const bool backwards = machine.settings.order == Settings::Order::kReverse;
  for (int i = 0; i < kWarp; ++i) {
    const int lane = backwards ? kWarp - 1 - i : i;
    if (!has(mask, lane)) continue;
    Fiber* fiber = warp.lane(lane);
    WarpRequest& request = fiber->request;
    if (is_shuffle(operation)) {
      const int source = source_lane(request, lane);
      request.value = has(mask, source) ? values[source] : kUndefined;
    } else if (operation == WarpOperation::kBallot) {
      request.value = votes;
    } else if (operation == WarpOperation::kAny) {
      request.value = votes != 0;
    } else if (operation == WarpOperation::kAll) {
      request.value = votes == mask;
    } else if (operation == WarpOperation::kActivemask) {
      request.value = mask;
    } else {
      checked::pass_syncwarp(fiber->thread);
    }
    machine.lanes[fiber->thread] = nullptr;
    machine.ready.push(fiber);
  }
  warp.waiting() &= ~mask;
}

// Whether all lanes of the mask have come with the same operation and mask.
bool is_complete(const Warp& warp, const WarpRequest& request) {
  if ((warp.waiting() & request.mask) != request.mask) return false;
  for (int lane = 0; lane < kWarp; ++lane) {
    if (!has(request.mask, lane)) continue;
    const Fiber* fiber = warp.lane(lane);
    if (fiber->request.operation != request.operation || fiber->request.mask != request.mask)
      return false;
  }
  return true;
}

std::string call_text(const WarpRequest& request) {
  char mask[16];
  std::snprintf(mask, sizeof mask, "0x%08x", request.mask);
  return std::string(name(request.operation)) + " with mask " + mask;
}

[[noreturn]] void fail_warp(const Fiber& fiber) {
  const Warp warp(fiber.thread);
  std::string text = call_text(fiber.request) +
                     " can never finish: a lane of the mask does not take part\n  " +
                     thread_text(fiber.thread) + " waits at " + place_text(fiber.place);
  for (int lane = 0; lane < kWarp; ++lane) {
    if (!has(fiber.request.mask, lane)) continue;
    const int thread = warp.first + lane;
    const Fiber* other = warp.lane(lane);
    if (other == nullptr) {
      text += "\n  " + thread_text(thread) +
              (waits(thread) ? " waits at a __syncthreads()" : " has already returned");
      break;
    }
    if (other->request.operation != fiber.request.operation ||
        other->request.mask != fiber.request.mask) {
      text += "\n  " + thread_text(thread) + " waits in " + call_text(other->request) + " at " +
              place_text(other->place);
      break;
    }
  }
  fail("incomplete warp", text);
}

// Lets the lanes that stand together at an __activemask() go on. Returns whether there were any.
bool release_activemask() {
  bool released = false;
  for (int thread = 0; thread < machine.threads; ++thread) {
    const Fiber* fiber = machine.lanes[thread];
    if (fiber == nullptr || fiber->request.operation != WarpOperation::kActivemask) continue;
    const Warp warp(thread);
    const Place place = fiber->place;
    std::uint32_t mask = 0;
    for (int lane = 0; lane < kWarp; ++lane) {
      const Fiber* other = warp.lane(lane);
      if (has(warp.exists, lane) && other != nullptr &&
          other->request.operation == WarpOperation::kActivemask && same_place(other->place, place))
        mask |= std::uint32_t{1} << lane;
    }
    complete(warp, mask, WarpOperation::kActivemask);
    released = true;
  }
  return released;
}

}  // namespace

int barrier(bool predicate, Place place) {
  machine.in_kernel = false;
  Fiber* const self = machine.current;
  self->place = place;
  machine.barrier.push(self);
  if (!same_place(machine.barrier.first->place, place)) machine.barriers_differ = true;
  machine.barrier_true += predicate;
  if (++machine.barrier_count == machine.threads && !machine.barriers_differ) release_barrier();
  wait();
  return machine.barrier_result;
}

std::uint64_t warp_operation(WarpOperation operation, std::uint32_t mask, std::uint64_t value,
                             int lane, int width, Place place) {
  machine.in_kernel = false;
  Fiber* const self = machine.current;
  const Warp warp(self->thread);
  self->place = place;
  self->request = {operation, mask & warp.exists, value, lane, width};
  if (!has(self->request.mask, self->thread - warp.first)) {
    fail("wrong mask", call_text(self->request) +
                           " is called by a lane that is not in the mask, at " + place_text(place) +
                           " by " + current_thread_text());
  }
  if (width < 1 || width > kWarp || (width & (width - 1)) != 0) {
    fail("wrong width", std::string(name(operation)) + " has the width " + std::to_string(width) +
                            ", not a power of two up to 32, at " + place_text(place) + " by " +
                            current_thread_text());
  }
  machine.lanes[self->thread] = self;
  warp.waiting() |= std::uint32_t{1} << (self->thread - warp.first);
  if (operation != WarpOperation::kActivemask && is_complete(warp, self->request))
    complete(warp, self->request.mask, operation);
  wait();
  return self->request.value;
}

void resolve_standstill() {
  if (release_activemask()) return;
  const bool all_at_barrier = machine.barrier_count == machine.waiting && !machine.barriers_differ;
  if (all_at_barrier && machine.settings.returned_may_miss_barrier) {
    release_barrier();
    return;
  }
  // A warp that cannot finish is the cause, a barrier that others wait at its consequence.
  for (int thread = 0; thread < machine.threads; ++thread)
    if (machine.lanes[thread] != nullptr) fail_warp(*machine.lanes[thread]);
  fail_barrier();
}

void forget_waiting() {
  machine.barrier = {};
  machine.barrier_count = 0;
  machine.barrier_true = 0;
  machine.barriers_differ = false;
  for (Fiber*& lane : machine.lanes) lane = nullptr;
  for (std::uint32_t& lanes : machine.lanes_waiting) lanes = 0;
}

void trap(Place place) {
  fail("trap", "__trap() at " + place_text(place) + " by " + current_thread_text());
}

}  // namespace needle::emulator
