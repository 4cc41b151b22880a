// Runs one body on several replicas: each in a thread, with a backend and an end of the collective.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "distributed/collective.h"

namespace bertrand::distributed {

/// What one replica is made of.
class Replica {
 public:
  /// The only one.
  explicit Replica(Backend& backend) : Replica(backend, std::make_unique<SoloCollective>(backend)) {}
  Replica(Backend& backend, std::unique_ptr<Collective> collective)
      : backend_(backend), collective_(std::move(collective)) {}

  Backend& backend() const { return backend_; }
  Collective& collective() const { return *collective_; }
  int rank() const { return collective_->rank(); }
  int size() const { return collective_->size(); }
  /// The one that prints and writes files.
  bool first() const { return rank() == 0; }

 private:
  Backend& backend_;
  std::unique_ptr<Collective> collective_;
};

class ReplicaGroup {
 public:
  struct Options {
    /// Of the run, if there are others: each has equally many replicas, which are numbered process by process.
    Collective* processes = nullptr;
    double timeout = 300;   ///< seconds that replicas on several cards wait for each other in one call
    bool emulated = false;  ///< cards are
  };
  /// One replica on each of these backends: on processors, all on one card, or each on a card of its own.
  ReplicaGroup(std::vector<std::unique_ptr<Backend>> backends, const Options& options)
      : backends_(std::move(backends)), options_(options) {}
  explicit ReplicaGroup(std::vector<std::unique_ptr<Backend>> backends)
      : ReplicaGroup(std::move(backends), Options{}) {}

  /// Replicas of this process.
  int size() const { return static_cast<int>(backends_.size()); }

  /// Runs `body` on every replica and returns when all have, those of other processes too. The first replica that
  /// throws makes the others' collective calls throw too; what it threw is rethrown here when all of this process have
  /// ended.
  void run(const std::function<void(const Replica&)>& body);

 private:
  void run_threads(const std::function<void(const Replica&)>& body);
  /// Whether the replicas are out of reach of each other's memory, but for NCCL.
  bool on_several_cards() const;

  std::vector<std::unique_ptr<Backend>> backends_;
  Options options_;
};

}  // namespace bertrand::distributed
