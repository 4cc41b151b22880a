// What replicas do together. Every replica makes the same calls in the same order with tensors of the same sizes.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "distributed/pairwise_tree.h"
#include "distributed/share.h"
#include "tensor/backend.h"

namespace bertrand::distributed {

/// One replica's end of it. On failure of any replica the calls of all the others throw Error(Failure::distributed).
class Collective {
 public:
  virtual ~Collective() = default;

  virtual int rank() const = 0;  ///< which replica this is, from 0
  virtual int size() const = 0;  ///< how many there are

  /// Adds up the addends of all replicas in the tree over `parts` parts and puts the sum into `out` on each. Together
  /// the addends cover all parts, those of a lower rank first; a replica may have none. Their values are spent: `out`
  /// may be one of them, and no copy of them is made.
  virtual void all_reduce_sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out) = 0;

  /// Whether a sum that was started goes on while this replica computes.
  virtual bool overlaps() const { return false; }
  /// all_reduce_sum that may return before it is done. Until finish_sums() nobody touches the tensors, and this replica
  /// makes no call but this one.
  virtual void start_sum(std::vector<Addend> mine, std::int64_t parts, const Tensor& out) {
    all_reduce_sum(mine, parts, out);
  }
  /// Returns when all sums that were started are done.
  virtual void finish_sums() {}

  /// Everybody's x becomes that of rank `root`, bit for bit.
  virtual void broadcast(const Tensor& x, int root) = 0;

  /// Returns when every replica has come here.
  virtual void barrier() = 0;

  /// Makes all replicas' calls, waiting ones and later ones, throw Error(Failure::distributed) with this reason. From
  /// any thread; only the first reason counts. `waited`: for how many seconds this replica has waited for the others in
  /// vain, and will not wait again for them to hear of it.
  virtual void abort(const std::string& reason, double waited) = 0;
  void abort(const std::string& reason) { abort(reason, 0); }

  /// What can be seen without a call: which of the others has failed or died, and why; "" where nothing is known of it.
  /// For those that wait for them by other means.
  virtual std::string failure_of_others() { return ""; }

  /// How many processes of the run share the memory of this one's host, its own included.
  virtual int processes_on_this_host() const { return 1; }
  /// How many of those were given the same cores, because nobody bound them to some of their own.
  virtual int processes_on_these_cores() const { return 1; }
  /// What is said before and after a failure that ends the process from within a call.
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

/// right += left, on `backend`; what add_siblings wants.
void add_to_right(Backend& backend, const Tensor& left, const Tensor& right);

}  // namespace bertrand::distributed
