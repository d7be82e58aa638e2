// The thread pool of the cpu backend; see thread_pool.h for what it promises.
// A job is a counter from which the caller and the woken workers take chunks. A worker that wakes
// late finds the job closed and sleeps again, so the caller never waits for a thread that has no
// work. After a job, workers look out for the next one for some microseconds before they sleep:
// training asks for many jobs in a row.
#include "thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace needle::cpu {
namespace {

constexpr int kSpins = 20000;  // some 300 microseconds before a worker sleeps
constexpr int kChunksPerThread =
    4;  // a thread that the system disturbs leaves its share to the others
constexpr int kMaxThreads = 256;

thread_local bool inside_task = false;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

int available_cores() {
#if defined(__linux__)
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0)
    return std::clamp(CPU_COUNT(&cores), 1, kMaxThreads);
#endif
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
}

// NEEDLE_NUM_THREADS if it is a positive number, else one thread for each core that this process
// may use.
int default_threads() {
  const char* text = std::getenv("NEEDLE_NUM_THREADS");
  const int wanted = text == nullptr ? 0 : std::atoi(text);
  return wanted > 0 ? std::min(wanted, kMaxThreads) : available_cores();
}

struct Job {
  ThreadPool::Task task;
  void* context;
  std::int64_t count;
  std::int64_t chunk;
  std::atomic<std::int64_t> next{0};
  std::exception_ptr failure{};  // guarded by State::mutex

  // Takes chunks until none is left.
  void run() {
    for (;;) {
      const std::int64_t begin = next.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= count) return;
      task(context, begin, std::min(begin + chunk, count));
    }
  }
};

}  // namespace

struct ThreadPool::State {
  std::atomic<int> threads{1};               // the caller included
  std::atomic<std::uint64_t> generation{0};  // rises with each job
  std::mutex turn;                           // held by the caller whose job is running
  std::mutex mutex;                          // guards what follows
  std::condition_variable job_posted;
  std::condition_variable workers_left;
  Job* job = nullptr;          // open to workers while not null
  int started = 0;             // workers that exist
  std::atomic<int> joined{0};  // workers inside the job; changes with the mutex held

  void work() {
    inside_task = true;
    std::uint64_t seen = 0;
    for (;;) {
      for (int spin = 0; spin < kSpins && generation.load(std::memory_order_relaxed) == seen;
           ++spin)
        relax();
      std::unique_lock<std::mutex> lock(mutex);
      job_posted.wait(lock, [&] { return generation.load(std::memory_order_relaxed) != seen; });
      seen = generation.load(std::memory_order_relaxed);
      if (job == nullptr || joined + 1 >= threads.load(std::memory_order_relaxed)) continue;
      Job& current = *job;
      ++joined;
      lock.unlock();
      run(current);
      lock.lock();
      if (--joined == 0) workers_left.notify_one();
    }
  }

  // Runs chunks; a task's exception ends the job and is kept for the caller.
  void run(Job& current) {
    try {
      current.run();
    } catch (...) {
      current.next.store(current.count, std::memory_order_relaxed);
      const std::lock_guard<std::mutex> lock(mutex);
      if (!current.failure) current.failure = std::current_exception();
    }
  }

  // Called with the mutex held. Fewer threads than asked for are no error.
  void start_workers() {
    while (started + 1 < threads.load(std::memory_order_relaxed)) {
      try {
        std::thread([this] { work(); }).detach();
      } catch (const std::system_error&) {
        return;
      }
      ++started;
    }
  }

  void run_shared(Job& current) {
    {
      const std::lock_guard<std::mutex> lock(mutex);
      start_workers();
      job = &current;
      generation.fetch_add(1, std::memory_order_relaxed);
    }
    job_posted.notify_all();
    inside_task = true;
    run(current);
    inside_task = false;
    {
      const std::lock_guard<std::mutex> lock(mutex);
      job = nullptr;  // nobody joins from here on
    }
    // A worker still has at most a chunk to do: to sleep and be woken would take longer.
    for (int spin = 0; spin < kSpins && joined.load(std::memory_order_relaxed) != 0; ++spin) {
      relax();
    }
    std::unique_lock<std::mutex> lock(mutex);
    workers_left.wait(lock, [&] { return joined.load(std::memory_order_relaxed) == 0; });
  }
};

ThreadPool& ThreadPool::instance() {
  static ThreadPool* const pool = new ThreadPool;
  return *pool;
}

// A forked child has this object but none of its threads, and a mutex may be locked for ever: it
// starts with a state of its own. The old one is left alone.
ThreadPool::ThreadPool() : state_(new State) {
  state_->threads = default_threads();
  pthread_atfork(nullptr, nullptr, [] {
    ThreadPool& pool = instance();
    const int threads = pool.size();
    pool.state_ = new State;
    pool.state_->threads = threads;
    inside_task = false;
  });
}

int ThreadPool::size() const { return state_->threads.load(std::memory_order_relaxed); }

void ThreadPool::resize(int threads) {
  if (threads < 1)
    throw std::invalid_argument("a pool has at least 1 thread, not " + std::to_string(threads));
  state_->threads = std::min(threads, kMaxThreads);
}

void ThreadPool::parallel_for(std::int64_t count, std::int64_t grain, Task task, void* context) {
  if (count <= 0) return;
  const std::int64_t threads = size();
  std::unique_lock<std::mutex> turn(state_->turn, std::defer_lock);
  if (threads == 1 || count < 2 * grain || inside_task || !turn.try_lock()) {
    task(context, 0, count);
    return;
  }
  const std::int64_t pieces = threads * kChunksPerThread;
  Job job{task, context, count, std::max(grain, (count + pieces - 1) / pieces)};
  state_->run_shared(job);
  if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace needle::cpu
