// One replica of the training: the device that it computes on, and its end of the collective.
#pragma once
#include <memory>
#include <utility>

#include "distributed/collective.h"

namespace bertrand::distributed {

class Replica {
 public:
  /// The only replica of a run. `backend` must outlive it.
  explicit Replica(Backend& backend) : Replica(backend, std::make_unique<SoloCollective>(backend)) {}
  /// `backend` must outlive it.
  Replica(Backend& backend, std::unique_ptr<Collective> collective)
      : backend_(backend), collective_(std::move(collective)) {}

  Backend& backend() const { return backend_; }
  Collective& collective() const { return *collective_; }
  int rank() const { return collective_->rank(); }
  int size() const { return collective_->size(); }
  /// The first replica prints and writes the files.
  bool first() const { return rank() == 0; }

 private:
  Backend& backend_;
  std::unique_ptr<Collective> collective_;
};

}  // namespace bertrand::distributed
