// The one thread pool of the cpu backend: what it promises. Its workings are in thread_pool.cc; the
// kernels reach it through `parallel_for` of strided.h. Nothing here is inline: kernels are
// compiled once per instruction set, and an inline function would be merged by the linker across
// them.
#pragma once

#include <cstdint>

namespace needle::cpu {

class ThreadPool {
 public:
  using Task = void (*)(void* context, std::int64_t begin, std::int64_t end);

  // The pool of this process. Never destroyed: its threads may outlive every other object.
  static ThreadPool& instance();

  // How many threads a call may use, the caller included; at least 1.
  int size() const;

  // Throws std::invalid_argument if `threads` < 1. Threads are started when first needed.
  void resize(int threads);

  // Calls task(context, begin, end) on pieces that cover [0, count) once, each of at least `grain`
  // items, and returns when all are done. One piece runs on the caller's thread alone; so does a
  // call from inside a task, or while another thread is using the pool. The first exception of a
  // task is thrown again here.
  void parallel_for(std::int64_t count, std::int64_t grain, Task task, void* context);

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

 private:
  struct State;

  ThreadPool();

  State* state_;
};

}  // namespace needle::cpu
