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

  /// Calls body(piece, thread) for every piece in [0, pieces) and returns when all are done; thread < threads(). Each
  /// thread begins with a range of its own, of pieces beside each other, and helps the others after that. The body must
  /// not call run(), and one thread at a time may call it. A body that throws ends the program.
  template <class Body>
  void run(std::int64_t pieces, const Body& body) noexcept {
    if (pieces <= 1 || workers_.empty()) {  // for speed alone: share_out() does the same
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

  /// The pieces with which one thread begins. In every kernel over the same rows they are about the same rows, so a
  /// thread mostly reads what it has written itself: cores that share no cache pay for each line that they exchange.
  /// Each range has a line of its own, so that a claim is cheap while nobody helps.
  struct alignas(64) Range {
    std::atomic<std::int64_t> unclaimed{0};   ///< each claim takes one off; if none is left, 0 or less
    std::atomic<std::int64_t> unfinished{0};  ///< claimed or not
    std::int64_t end = 0;                     ///< the next piece to claim is end − unclaimed
  };

  void share_out(std::int64_t pieces, Call call, const void* body);
  void work(int thread);
  bool compute_piece(int thread);

  std::vector<Range> ranges_;  // one for each thread
  // Counts jobs in twos: threads sleep until it changes, and end when it is odd. Linux can wait for words of 32 bits.
  std::atomic<unsigned> job_{0};
  Call call_ = nullptr;
  const void* body_ = nullptr;
  std::vector<std::thread> workers_;
};

}  // namespace bertrand::cpu
