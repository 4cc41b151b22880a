// Which of two ways to do the same work is the faster one on this machine, found out while the work is done.
#pragma once

namespace bertrand::distributed {

/// Both ways are tried first, and the slower one again at every 16th turn: the system may have moved the process to
/// other cores.
class FasterWay {
 public:
  /// That of the next turn, 0 or 1.
  int next() const {
    if (turn_ < 2) return turn_;
    const int faster = cost_[1] < cost_[0] ? 1 : 0;
    return turn_ % 16 == 0 ? 1 - faster : faster;
  }
  /// The turn is over. `cost` is its time for a unit of work.
  void took(double cost) {
    cost_[next()] = cost;
    ++turn_;
  }

 private:
  double cost_[2] = {0, 0};  // of the last turn of each way
  int turn_ = 0;
};

}  // namespace bertrand::distributed
