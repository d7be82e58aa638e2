// What a backend's binding reads from environment variables when it is imported, and the pool that
// two of them shape.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdlib>

#include "array.h"
#include "error.h"
#include "pool.h"

namespace needle {

// The number in an environment variable, or `otherwise` if it is not set. A text that is no number
// is an error, told at import: a setting that is silently ignored costs its user hours.
inline long setting(const char* device, const char* name, long otherwise) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const long value = std::strtol(text, &end, 10);
  if (*end != '\0' || value < 0) {
    fail<DeviceError>(device, name, " is '", text, "'; a number from 0 on is needed");
  }
  return value;
}

// The pool of a device. It keeps NEEDLE_POOL_MB of memory, or none if NEEDLE_POOL is 0; `kept_mb`
// is what it keeps where neither is set. A fork waits for the pool's mutex, so that the child never
// inherits a half-changed pool.
inline Pool* make_pool(const char* device, Memory memory, long kept_mb) {
  const bool on = setting(device, "NEEDLE_POOL", kept_mb > 0) != 0;
  const long megabytes = on ? setting(device, "NEEDLE_POOL_MB", kept_mb) : 0;
  auto* made = new Pool(memory, static_cast<std::size_t>(megabytes) << 20);
  pthread_atfork([] { pool().mutex().lock(); }, [] { pool().mutex().unlock(); },
                 [] { pool().mutex().unlock(); });
  return made;
}

}  // namespace needle
