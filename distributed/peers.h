// The processes of a run as they see each other: where they run, and whether they are still alive.
#pragma once
#include <sched.h>

#include <string>
#include <vector>

namespace bertrand::distributed {

/// What a process tells the others about itself. It travels as bytes.
struct PeerFacts {
  char host[64] = {};
  int pid = 0;
  /// In ticks of the kernel. It tells the process apart from a later one with the same number.
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
  /// A process that was visible from here and has died, or -1. Processes of other hosts are not visible.
  int first_dead() const;
  /// How many other processes are visible from here.
  int visible() const { return static_cast<int>(visible_.size()); }
  /// Whether all processes are, by name and number, on the host of this one.
  bool on_one_host() const;
  /// How many of them may use the same cores as this process and no others.
  int on_own_cores() const;

 private:
  std::vector<PeerFacts> facts_;
  int self_ = 0;
  std::vector<int> visible_;
};

}  // namespace bertrand::distributed
