// Runs one body on several replicas: each in a thread of its own, with a backend and an end of the collective.
#pragma once
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "distributed/replica.h"

namespace bertrand::distributed {

class ReplicaGroup {
 public:
  struct Options {
    /// The processes of the run; null if this is the only one. Each has equally many replicas, which are numbered
    /// process by process.
    Collective* processes = nullptr;
    double timeout = 300;   ///< seconds that replicas on several GPUs wait for each other in one call
    bool emulated = false;  ///< the GPUs are emulated ones
  };
  /// One replica on each of these backends: all on CPUs, all on one GPU, or each on a GPU of its own.
  ReplicaGroup(std::vector<std::unique_ptr<Backend>> backends, const Options& options)
      : backends_(std::move(backends)), options_(options) {}
  explicit ReplicaGroup(std::vector<std::unique_ptr<Backend>> backends)
      : ReplicaGroup(std::move(backends), Options{}) {}

  /// The number of replicas in this process.
  int size() const { return static_cast<int>(backends_.size()); }

  /// Runs `body` on every replica and returns when it has returned in all replicas of all processes. If one throws, the
  /// collective calls of the others throw too. When all replicas of this process have ended, run() throws what the
  /// first of them threw.
  void run(const std::function<void(const Replica&)>& body);

 private:
  void run_threads(const std::function<void(const Replica&)>& body);
  /// Whether the replicas cannot reach each other's memory, so that NCCL must join them.
  bool on_several_gpus() const;

  std::vector<std::unique_ptr<Backend>> backends_;
  Options options_;
};

}  // namespace bertrand::distributed
