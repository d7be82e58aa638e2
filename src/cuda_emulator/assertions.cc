// assert() in a kernel: this module's own __assert_fail makes a KernelError of it, where the C
// library's would end the process.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "machine.h"
#include "source_location.h"

extern "C" __attribute__((visibility("hidden"), noreturn)) void __assert_fail(
    const char* condition, const char* file, unsigned line, const char* function) noexcept {
  using namespace needle::emulator;
  if (!runs_kernel) {
    std::fprintf(stderr, "%s:%u: %s: assertion failed: %s\n", file, line, function, condition);
    std::abort();
  }
  machine.in_kernel = false;
  fail("assertion", std::string("assertion failed: ") + condition + " at " +
                        place_text({file, static_cast<int>(line)}) + " by " +
                        current_thread_text());
}
