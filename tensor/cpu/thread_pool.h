// A few threads that share out the pieces of one kernel. Which thread computes a piece never changes a result.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace bertrand::cpu {

class ThreadPool {
 public:
  /// `threads` in all: the caller is one of them. Throws Error(Failure::usage) if the system allows fewer.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(piece, thread) for every piece in [0, pieces) and returns when all are done; thread < threads(). The
  /// body must not throw and must not call run().
  template <class Body>
  void run(std::int64_t pieces, const Body& body) {
    if (pieces <= 1 || workers_.empty()) {
      for (std::int64_t piece = 0; piece < pieces; ++piece) body(piece, 0);
      return;
    }
    share_out(
        pieces, [](const void* b, std::int64_t piece, int thread) { (*static_cast<const Body*>(b))(piece, thread); },
        &body);
  }

 private:
  ThreadPool() = default;
  using Call = void (*)(const void* body, std::int64_t piece, int thread);
  static constexpr std::int64_t kMostPieces = (1 << 24) - 1;

  void share_out(std::int64_t pieces, Call call, const void* body);
  void work(int thread);
  bool claim_and_compute(int thread);

  // The job's number, how many pieces it has and the next one to claim stand in one word, so that a claim is one
  // compare-and-swap and a thread that comes late can never mix two jobs: [job:16 | pieces:24 | next:24].
  std::atomic<std::uint64_t> ticket_{0};
  std::atomic<std::int64_t> completed_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  Call call_ = nullptr;
  const void* body_ = nullptr;
  std::vector<std::thread> workers_;
};

}  // namespace bertrand::cpu
