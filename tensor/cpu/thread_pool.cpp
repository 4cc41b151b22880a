#include "tensor/cpu/thread_pool.h"

#include <algorithm>
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

std::uint64_t pieces_of(std::uint64_t ticket) { return (ticket >> 24) & 0xffffff; }
std::uint64_t next_of(std::uint64_t ticket) { return ticket & 0xffffff; }

}  // namespace

/// The destructor undoes what the other constructor has finished: if one thread cannot be had, the others end.
ThreadPool::ThreadPool(int threads) : ThreadPool() {
  try {
    for (int t = 1; t < threads; ++t) workers_.emplace_back([this, t] { work(t); });
  } catch (const std::system_error& error) {
    fail(Failure::usage, "threads: expected {} to start, got {}: {}; hint: --threads", threads, this->threads(),
         error.code().message());
  }
}

ThreadPool::~ThreadPool() {
  stop_ = true;
  ticket_ += std::uint64_t{1} << 48;  // a new job number without pieces wakes the sleepers
  ticket_.notify_all();
  for (auto& worker : workers_) worker.join();
}

void ThreadPool::share_out(std::int64_t pieces, Call call, const void* body) {
  // More pieces than the ticket can count are run in several jobs; no kernel comes near.
  for (std::int64_t first = 0; first < pieces; first += kMostPieces) {
    const std::int64_t count = std::min(kMostPieces, pieces - first);
    struct Shifted {
      Call call;
      const void* body;
      std::int64_t first;
    } shifted{call, body, first};
    call_ = [](const void* b, std::int64_t piece, int thread) {
      const auto* s = static_cast<const Shifted*>(b);
      s->call(s->body, s->first + piece, thread);
    };
    body_ = &shifted;
    completed_.store(0, std::memory_order_relaxed);
    const std::uint64_t job = (ticket_.load(std::memory_order_relaxed) >> 48) + 1;
    ticket_.store(job << 48 | static_cast<std::uint64_t>(count) << 24);
    if (sleepers_.load() > 0) ticket_.notify_all();
    while (claim_and_compute(0)) {
    }
    for (int spins = 0; completed_.load(std::memory_order_acquire) < count; ++spins) {
      if (spins < kSpins) pause();
      else std::this_thread::yield();  // more threads than cores: let the others finish
    }
  }
}

/// Computes one piece of the current job, if there is one left. The job's fields cannot change before a claimed piece
/// is counted as completed, so reading them after the claim is safe.
bool ThreadPool::claim_and_compute(int thread) {
  std::uint64_t ticket = ticket_.load(std::memory_order_acquire);
  do {
    if (next_of(ticket) >= pieces_of(ticket)) return false;
  } while (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel, std::memory_order_acquire));
  call_(body_, static_cast<std::int64_t>(next_of(ticket)), thread);
  completed_.fetch_add(1, std::memory_order_release);
  return true;
}

void ThreadPool::work(int thread) {
  while (true) {
    if (claim_and_compute(thread)) continue;
    const std::uint64_t idle = ticket_.load();
    if (stop_) return;  // after the ticket: one that is seen with it is the last, and no other would wake this thread
    if (next_of(idle) < pieces_of(idle)) continue;
    int spins = 0;
    while (ticket_.load(std::memory_order_relaxed) == idle && spins < kSpins) {
      pause();
      ++spins;
    }
    if (spins < kSpins) continue;
    sleepers_.fetch_add(1);
    ticket_.wait(idle);
    sleepers_.fetch_sub(1);
  }
}

}  // namespace bertrand::cpu
