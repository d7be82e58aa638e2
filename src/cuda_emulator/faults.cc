// Signal handlers of a running kernel; see faults.h. They do little: they remember what happened
// and leave the kernel's stack, on which nothing can be relied on; the launch finds the words.
#include "faults.h"

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "checked.h"
#include "device_memory.h"
#include "machine.h"
#include "source_location.h"

namespace needle::emulator {
namespace {

constexpr long kTickNanoseconds = 10'000'000;  // between two tries to stop a kernel out of time
constexpr int kPatientTicks = 4;
constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr int kFaultCount = sizeof kFaults / sizeof *kFaults;

struct Fault {
  int signal;
  const char* address;
  const void* code;
  const Fiber* fiber;
};

// What FaultGuard changes; one launch runs at a time.
struct Previous {
  struct sigaction actions[kFaultCount];
  struct sigaction timer_action;  // another emulated module may have its own
  stack_t stack;
};

Fault fault;
Previous previous;
alignas(16) char handler_stack[64 * 1024];

// --- words ---

std::string seconds_text() {
  std::string text = std::to_string(machine.settings.seconds);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string overtime_text() {
  return "the kernel has not ended after " + seconds_text() +
         " seconds of processor time (NEEDLE_EMULATOR_SECONDS): does a loop never end?";
}

std::string by_whom() {
  return " at " + source_place(fault.code) + " by " + thread_text(fault.fiber->thread);
}

void describe_overtime() {
  machine.failure_kind = "endless";
  machine.failure = overtime_text() + "\n  it was" + by_whom();
}

void describe_fault() {
  const auto set = [](const char* kind, const std::string& text) {
    machine.failure_kind = kind;
    machine.failure = text;
  };
  if (fault.signal == SIGFPE)
    return set("division by zero", "integer division by zero" + by_whom());
  if (fault.signal == SIGILL) return set("trap", "an illegal instruction" + by_whom());
  const char* address = fault.address;
  if (fault.fiber->stack.guards(address)) {
    return set("stack overflow", "stack overflow: local variables and calls take more than " +
                                     std::to_string(Stack::kBytes / 1024) + " KiB" + by_whom());
  }
  if (address == nullptr) {  // the processor names no address for these
    return set("misaligned", "a misaligned access of a vector (or a wild pointer)" + by_whom());
  }
  Allocation allocation;
  const bool freed = arena().contains(address) && find_allocation(address, allocation) &&
                     !allocation.live && address >= allocation.data &&
                     address < allocation.data + allocation.bytes;
  if (freed)
    return set("use after free", "use after free" + by_whom() + "\n  " + describe_address(address));
  char text[32];
  std::snprintf(text, sizeof text, "%p", static_cast<const void*>(address));
  set("out of bounds", std::string("access of the invalid address ") + text + by_whom() + "\n  " +
                           describe_address(address));
}

// --- signals ---

const void* interrupted_code(const void* context) {
  [[maybe_unused]] const auto& machine_context =
      static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return reinterpret_cast<const void*>(machine_context.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return reinterpret_cast<const void*>(machine_context.pc);
#else
  return nullptr;
#endif
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (runs_kernel && machine.in_kernel) {
    const bool has_address = info->si_code != SI_KERNEL;
    fault = {signal, has_address ? static_cast<const char*>(info->si_addr) : nullptr,
             interrupted_code(context), machine.current};
    if (info->si_code > 0) fail_later(describe_fault);  // else somebody sent the signal
  }
  // Not the kernel's: the handler that was here before gets it when the instruction runs again.
  for (int i = 0; i < kFaultCount; ++i)
    if (kFaults[i] == signal) sigaction(signal, &previous.actions[i], nullptr);
}

// At the first ticks a kernel that waits, or in the checked mode uses memory, ends there, where its
// place is known. Later it is left wherever it is, but not inside of the C library, which may hold
// a lock.
void on_timer(int, siginfo_t*, void* context) {
  if (!runs_kernel) return;
  machine.overtime = machine.overtime + 1;
  checked::stop_soon();
  const void* code = interrupted_code(context);
  const bool patient = machine.overtime < kPatientTicks;
  if (patient || !machine.in_kernel || (code != nullptr && !in_module_code(code))) return;
  fault = {0, nullptr, code, machine.current};
  fail_later(describe_overtime);
}

int timer_signal() { return SIGRTMIN + 7; }

// This system thread's timer, made at its first launch. A forked child has none of its parent's.
class Timer {
 public:
  ~Timer() {
    if (owner_ == getpid()) timer_delete(id_);
  }

  void start(double seconds) {
    if (owner_ != getpid()) create();
    itimerspec when{};
    const double whole = std::floor(seconds);
    when.it_value.tv_sec = static_cast<time_t>(whole);
    when.it_value.tv_nsec = static_cast<long>((seconds - whole) * 1e9);
    when.it_interval.tv_nsec = kTickNanoseconds;
    timer_settime(id_, 0, &when, nullptr);
  }

  void stop() {
    const itimerspec never{};
    timer_settime(id_, 0, &never, nullptr);
  }

 private:
  void create() {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = timer_signal();
    event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &id_) == 0) owner_ = getpid();
  }

  timer_t id_{};
  pid_t owner_ = 0;
};

thread_local Timer timer;

}  // namespace

FaultGuard::FaultGuard(double seconds) {
  // A stack of its own: the fiber's may be what is used up.
  stack_t stack{};
  stack.ss_sp = handler_stack;
  stack.ss_size = sizeof handler_stack;
  sigaltstack(&stack, &previous.stack);
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (int i = 0; i < kFaultCount; ++i) sigaction(kFaults[i], &action, &previous.actions[i]);
  action.sa_sigaction = on_timer;
  action.sa_flags |= SA_RESTART;
  sigaction(timer_signal(), &action, &previous.timer_action);
  timer.start(seconds);
}

FaultGuard::~FaultGuard() {
  timer.stop();
  sigaction(timer_signal(), &previous.timer_action, nullptr);
  for (int i = 0; i < kFaultCount; ++i) sigaction(kFaults[i], &previous.actions[i], nullptr);
  sigaltstack(&previous.stack, nullptr);
}

void fail_overtime(const std::string& place) {
  fail("endless", overtime_text() + "\n  it was at " + place + " by " + current_thread_text());
}

}  // namespace needle::emulator
