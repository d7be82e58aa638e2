// The checked mode's part of a launch. Compiled without NEEDLE_EMULATOR_CHECKED, as in the fast
// mode, nothing is left of it. shadow.h has the memory that it keeps, hooks.cc what the compiler's
// instrumentation calls.
#pragma once

#include <cstddef>

namespace needle::emulator {

struct Allocation;

namespace checked {

#ifdef NEEDLE_EMULATOR_CHECKED

// Reserves the shadow of the arena. Returns false if the system has no addresses left for it.
bool reserve_shadow(char* base, std::size_t bytes);

void begin_launch();
void begin_block();
void end_blocks();
void begin_thread(int thread);  // it starts, or goes on
void pass_barrier();
void pass_syncwarp(int thread);
void stop_soon();  // ends the kernel at its next access of memory

// Throws what host code was seen to do with device memory since the last call.
void throw_host_access();

// Device memory as the host changes it.
void made(const Allocation& allocation);
void freed(const Allocation& allocation);
void written(const void* to, std::size_t bytes);
void copied(const void* to, const void* from, std::size_t bytes);

// A __shared__ variable at its first use in a block.
void made_shared(const void* place, std::size_t bytes);

#else

inline bool reserve_shadow(char*, std::size_t) { return true; }
inline void begin_launch() {}
inline void begin_block() {}
inline void end_blocks() {}
inline void begin_thread(int) {}
inline void pass_barrier() {}
inline void pass_syncwarp(int) {}
inline void stop_soon() {}
inline void throw_host_access() {}
inline void made(const Allocation&) {}
inline void freed(const Allocation&) {}
inline void written(const void*, std::size_t) {}
inline void copied(const void*, const void*, std::size_t) {}
inline void made_shared(const void*, std::size_t) {}

#endif

}  // namespace checked
}  // namespace needle::emulator
