// The processes of a run as they see each other: where they run, and whether they still do.
#pragma once
#include <sched.h>

#include <string>
#include <vector>

namespace bertrand::distributed {

/// What a process tells the others about itself. Sent as bytes.
struct PeerFacts {
  char host[64] = {};
  int pid = 0;
  /// Of the process, in the kernel's ticks: tells it from a later one of its number.
  unsigned long long start_time = 0;
  cpu_set_t cores{};  ///< that it may use

  static PeerFacts own();
};

class Peers {
 public:
  Peers() = default;
  /// Facts of all processes by rank; `self` is this one's rank.
  Peers(std::vector<PeerFacts> facts, int self);

  /// "process 1 (host b, pid 4711)"
  std::string name(int rank) const;
  /// A process that can be seen from here and is no more, or -1. Those of other hosts are not seen.
  int first_dead() const;
  /// How many others can be seen from here.
  int visible() const { return static_cast<int>(visible_.size()); }
  /// How many of those may use the cores that this process may use, and no others.
  int on_own_cores() const;

 private:
  std::vector<PeerFacts> facts_;
  int self_ = 0;
  std::vector<int> visible_;
};

}  // namespace bertrand::distributed
