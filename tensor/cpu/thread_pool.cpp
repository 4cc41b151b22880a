#include "tensor/cpu/thread_pool.h"

#include <system_error>

#include "io/error.h"

namespace bertrand::cpu {
namespace {

// Kernels follow each other within microseconds, so an idle thread spins this many times before it sleeps.
constexpr int kSpins = 4000;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

/// The destructor undoes what the other constructor has finished: if one thread cannot be had, the others end.
ThreadPool::ThreadPool(int threads) : ThreadPool() {
  ranges_ = std::vector<Range>(static_cast<std::size_t>(threads));
  try {
    for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { work(t); });
  } catch (const std::system_error& error) {
    fail(Failure::usage, "threads: expected {} to start, got {}: {}; hint: --threads", threads, this->threads(),
         error.code().message());
  }
}

ThreadPool::~ThreadPool() {
  ++job_;
  job_.notify_all();
  for (auto& worker : workers_) worker.join();
}

// Why no thread mixes two jobs, however late it comes: what makes a job (call_, body_, `end` and `unfinished` of
// ranges) is written before `unclaimed` is released, and read only by who has claimed a piece, which acquires it. It is
// written again when no piece is unfinished, so when nobody has a claim. Who slept between looking at a range and
// claiming from it has a piece of the job that is there now, or none.

void ThreadPool::share_out(std::int64_t pieces, Call call, const void* body) {
  call_ = call;
  body_ = body;
  const auto threads = std::ssize(ranges_);
  // Rounded up: the caller, who begins at once, has a piece more rather than one less.
  const auto end = [&](std::int64_t range) { return (pieces * range + threads - 1) / threads; };
  for (std::int64_t t = 0; t < threads; ++t) {
    Range& range = ranges_[static_cast<std::size_t>(t)];
    const std::int64_t count = end(t + 1) - end(t);
    range.end = end(t + 1);
    range.unfinished.store(count, std::memory_order_relaxed);
    range.unclaimed.store(count, std::memory_order_release);
  }
  job_ += 2;
  job_.notify_all();  // calls the system only if somebody sleeps

  while (compute_piece(0)) {
  }
  int spins = 0;
  for (const Range& range : ranges_)
    while (range.unfinished.load(std::memory_order_acquire) > 0) {  // what its pieces wrote can be read now
      // To spin at first is for speed alone.
      if (spins < kSpins) ++spins, pause();
      else std::this_thread::yield();  // more threads than cores: let the others finish
    }
}

/// Computes a piece of the thread's own range, or if that has none left, of the next that has.
bool ThreadPool::compute_piece(int thread) {
  const auto own = static_cast<std::size_t>(thread);
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    Range& range = ranges_[(own + i) % ranges_.size()];
    if (range.unclaimed.load(std::memory_order_relaxed) <= 0) continue;  // for speed alone: a look takes no line
    const std::int64_t unclaimed = range.unclaimed.fetch_sub(1, std::memory_order_acquire);
    if (unclaimed <= 0) continue;
    call_(body_, range.end - unclaimed, thread);
    range.unfinished.fetch_sub(1, std::memory_order_release);
    return true;
  }
  return false;
}

void ThreadPool::work(int thread) {
  while (true) {
    const unsigned job = job_;  // before the search for pieces: if one begins after that, it has changed
    if (job % 2 == 1) return;
    while (compute_piece(thread)) {
    }
    // To spin before it sleeps is for speed alone.
    for (int spins = 0; spins < kSpins && job_.load(std::memory_order_relaxed) == job; ++spins) pause();
    job_.wait(job);  // not at all if it has changed
  }
}

}  // namespace bertrand::cpu
