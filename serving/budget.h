// The bytes that requests may hold all together: bodies that are read, sequences that wait, answers that leave.
#pragma once
#include <atomic>
#include <cstddef>

namespace bertrand::serving {

/// Safe to use from several threads.
class Budget {
 public:
  explicit Budget(std::size_t bytes) : bytes_(bytes) {}

  std::size_t bytes() const { return bytes_; }
  std::size_t held() const { return held_; }

  /// Bytes that are held as long as this lives, or until reset().
  class Share {
   public:
    explicit Share(Budget& budget) : budget_(budget) {}
    ~Share() { reset(); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    /// Holds `bytes` in all; false, and nothing changes, if the budget has no such room.
    bool grow_to(std::size_t bytes) {
      if (bytes <= held_) return true;
      const std::size_t more = bytes - held_;
      if (budget_.held_.fetch_add(more) + more > budget_.bytes_) {
        budget_.held_ -= more;
        return false;
      }
      held_ = bytes;
      return true;
    }
    void reset() {
      budget_.held_ -= held_;
      held_ = 0;
    }

   private:
    Budget& budget_;
    std::size_t held_ = 0;
  };

 private:
  const std::size_t bytes_;
  std::atomic<std::size_t> held_ = 0;
};

}  // namespace bertrand::serving
