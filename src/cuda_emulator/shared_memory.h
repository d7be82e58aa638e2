// Shared memory: the places of __shared__ variables, each ending at a guard page, and the dynamic
// part, which does too. They lie at the beginning of the device's addresses.
#pragma once

#include <cstddef>
#include <string>

namespace needle::emulator {

constexpr std::size_t kSharedBytesOfBlock = 48 * 1024;
constexpr std::size_t kMostSharedBytes = 64 * 1024;  // with cudaFuncSetAttribute

// Chooses where this launch's dynamic shared memory begins; fills it with NaN for each block.
void place_dynamic_shared(std::size_t bytes);
void poison_dynamic_shared();

// The most dynamic shared memory that this kernel may be launched with.
std::size_t dynamic_shared_limit(const void* kernel);
bool raise_dynamic_shared_limit(const void* kernel, std::size_t bytes);

// A piece of shared memory that exists in the block that runs.
struct SharedPiece {
  const char* name;  // null for dynamic shared memory
  char* data;
  std::size_t bytes;
};

// The piece that holds the address or lies right before it. Returns false if there is none.
bool find_shared(const void* address, SharedPiece& found);

// Empty for an address outside of shared memory.
std::string describe_shared_address(const void* address);

}  // namespace needle::emulator
