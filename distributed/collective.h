// What replicas do together. All replicas make the same calls in the same order with tensors of the same sizes.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "distributed/pairwise_tree.h"
#include "distributed/share.h"
#include "tensor/backend.h"

namespace bertrand::distributed {

/// One replica's end of the collective. If a replica fails, the calls of all others throw Error(Failure::distributed).
class Collective {
 public:
  virtual ~Collective() = default;

  virtual int rank() const = 0;  ///< which replica this is, from 0
  virtual int size() const = 0;  ///< how many there are

  /// Adds up the addends of all replicas in the tree over `parts` parts (pairwise_tree.h) and writes the sum into `out`
  /// on each replica. Together the addends cover all parts, those of a lower rank first; a replica may have none. Their
  /// values are overwritten: no copy of them is made, and `out` may be one of them.
  virtual void all_reduce_sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out) = 0;

  /// Whether a sum that was started runs while this replica computes.
  virtual bool overlaps() const { return false; }
  /// all_reduce_sum, but may return before the sum is there. Until finish_sums() this replica does not touch the
  /// tensors and makes no other call than this one.
  virtual void start_sum(std::vector<Addend> mine, std::int64_t parts, const Tensor& out) {
    all_reduce_sum(mine, parts, out);
  }
  /// Returns when all sums that were started are done.
  virtual void finish_sums() {}

  /// Copies the bits of x of rank `root` into x of all replicas.
  virtual void broadcast(const Tensor& x, int root) = 0;

  /// Returns when all replicas have called it.
  virtual void barrier() = 0;

  /// Makes the waiting and all later calls of all replicas throw Error(Failure::distributed) with this reason. Any
  /// thread may call it; only the first reason counts. `waited`: seconds that this replica has waited for the others
  /// already; telling them takes at most the rest of the timeout.
  virtual void abort(const std::string& reason, double waited) = 0;
  void abort(const std::string& reason) { abort(reason, 0); }
  /// Somebody asked this replica to stop, and it leaves. Unless all have agreed on it, which ends with a barrier, the
  /// calls of the others throw Error(Failure::interrupted). It is for what comes before training, where all agree.
  virtual void interrupt() {}

  /// Which of the others has failed or died and why, as far as it is known without a call; "" if nothing is known. For
  /// collectives that wait for the others by other means.
  virtual std::string failure_of_others() { return ""; }

  /// How many processes of the run share the memory of this one's host, its own included.
  virtual int processes_on_this_host() const { return 1; }
  /// How many of them may use the same cores, because the launcher did not bind them to cores of their own.
  virtual int processes_on_these_cores() const { return 1; }
  /// Bytes of the host that a sum of `dtype` takes at most, with so many addends of other processes.
  virtual std::size_t bytes_of_sums(DType, std::size_t /*addends_of_others*/) const { return 0; }
  /// How processes add up, for the plan; "" if there is one process only.
  virtual std::string way_of_sums() const { return ""; }
  /// The beginning and the end of the line with which a watchdog ends the process.
  virtual void set_standing(const std::string& before, const std::string& after) {
    static_cast<void>(before), static_cast<void>(after);
  }
};

/// The only replica: adds up its own addends.
class SoloCollective : public Collective {
 public:
  explicit SoloCollective(Backend& backend) : backend_(backend) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce_sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out) override;
  void broadcast(const Tensor&, int) override {}
  void barrier() override {}
  void abort(const std::string&, double) override {}

 private:
  Backend& backend_;
};

/// right += left, on `backend`: an `add` for add_siblings.
void add_to_right(Backend& backend, const Tensor& left, const Tensor& right);

}  // namespace bertrand::distributed
