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
  /// One replica on each of these backends, whose memory all of them can reach. With `processes`, every process of the
  /// run has equally many, which are numbered process by process.
  explicit ReplicaGroup(std::vector<std::unique_ptr<Backend>> backends, Collective* processes = nullptr)
      : backends_(std::move(backends)), processes_(processes) {}

  /// Replicas of this process.
  int size() const { return static_cast<int>(backends_.size()); }

  /// Runs `body` on every replica and returns when all have, those of other processes too. The first replica that
  /// throws makes the others' collective calls throw too; what it threw is rethrown here when all of this process have
  /// ended.
  void run(const std::function<void(const Replica&)>& body);

 private:
  void run_threads(const std::function<void(const Replica&)>& body);

  std::vector<std::unique_ptr<Backend>> backends_;
  Collective* processes_;
};

}  // namespace bertrand::distributed
