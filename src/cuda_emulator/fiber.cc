// The switch between fibers, in assembly; see fiber.h.
#include "fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <new>

#ifndef NEEDLE_EMULATOR_UCONTEXT

// needle_emulator_switch(void** save, void* stack_pointer): pushes the registers, stores where the
// stack ends, takes the other stack and returns with what lies there. All fibers wait in the same
// calls, so the processor's prediction of returns holds across the switch; a jump instead of the
// `ret` would put it off by one, and each wait would take thrice the time.
extern "C" void needle_emulator_switch(void** save, void* stack_pointer);

#if defined(__x86_64__)
__asm__(R"(
.text
.p2align 4
.globl needle_emulator_switch
.hidden needle_emulator_switch
.type needle_emulator_switch, @function
needle_emulator_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size needle_emulator_switch, . - needle_emulator_switch
)");
#elif defined(__aarch64__)
__asm__(R"(
.text
.p2align 4
.globl needle_emulator_switch
.hidden needle_emulator_switch
.type needle_emulator_switch, %function
needle_emulator_switch:
  sub sp, sp, #160
  stp x19, x20, [sp]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size needle_emulator_switch, . - needle_emulator_switch
)");
#endif

namespace needle::emulator {

void prepare_context(Context& context, void* stack, std::size_t bytes, void (*entry)()) {
  auto top = (reinterpret_cast<std::uintptr_t>(stack) + bytes) & ~std::uintptr_t{15};
  auto* slots = reinterpret_cast<std::uintptr_t*>(top);
#if defined(__x86_64__)
  // From the top: a return address of nobody, the entry, six registers.
  constexpr int kSlots = 8;
  std::memset(slots - kSlots, 0, kSlots * sizeof *slots);
  slots[-2] = reinterpret_cast<std::uintptr_t>(entry);
#else
  constexpr int kSlots = 20;
  std::memset(slots - kSlots, 0, kSlots * sizeof *slots);
  slots[-kSlots + 11] = reinterpret_cast<std::uintptr_t>(entry);  // x30
#endif
  context.stack_pointer = slots - kSlots;
}

void switch_context(Context& from, Context& to) {
  needle_emulator_switch(&from.stack_pointer, to.stack_pointer);
}

}  // namespace needle::emulator

#else  // ucontext

namespace needle::emulator {

void prepare_context(Context& context, void* stack, std::size_t bytes, void (*entry)()) {
  getcontext(&context.state);
  context.state.uc_stack.ss_sp = stack;
  context.state.uc_stack.ss_size = bytes;
  context.state.uc_link = nullptr;
  makecontext(&context.state, entry, 0);
}

void switch_context(Context& from, Context& to) { swapcontext(&from.state, &to.state); }

}  // namespace needle::emulator

#endif

namespace needle::emulator {
namespace {

constexpr std::size_t kStagger = 256;  // bytes between the tops of neighbouring stacks
constexpr std::size_t kStaggers = 16;

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

Stack::Stack(std::size_t number) {
  const std::size_t guard = page_bytes();
  void* memory = mmap(nullptr, guard + kBytes + guard, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  mprotect(memory, guard, PROT_NONE);
  bottom_ = static_cast<char*>(memory) + guard;
  usable_bytes_ = kBytes + guard - number % kStaggers * kStagger;
}

bool Stack::guards(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto bottom = reinterpret_cast<std::uintptr_t>(bottom_);
  return at < bottom && at >= bottom - page_bytes();
}

bool Stack::contains(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto bottom = reinterpret_cast<std::uintptr_t>(bottom_);
  return at >= bottom && at < bottom + usable_bytes_;
}

}  // namespace needle::emulator
