// The collective of replicas on GPUs of their own, over NCCL. Nothing blocks: NCCL works on a stream beside the one
// that computes. The host looks at that stream, at the clock, at the other replicas of its process and at what the
// other processes say, so that it leaves when one of them has failed. From the start of a sum to its end a watchdog
// looks whether this thread comes back: a call of NCCL or a launch of a kernel may wait in the driver for ever.
//
// NCCL adds up in an order of its own, which depends on the number of replicas: with two replicas the sum has the bits
// of the pairwise tree, with more it is only close. Each replica adds up its own addends in the tree.
#pragma once
#include <nccl.h>

#include <chrono>
#include <functional>
#include <vector>

#include "distributed/nccl_place.h"
#include "distributed/watchdog.h"
#include "tensor/cuda/handles.h"
#include "tensor/profiler.h"

namespace bertrand::distributed {

class NcclCollective : public Collective {
 public:
  /// Returns when all replicas have joined.
  explicit NcclCollective(const NcclPlace& place);
  /// Leaves together with the others, or at once if one of them has failed.
  ~NcclCollective() override;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_reduce_sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out) override;
  bool overlaps() const override { return true; }
  void start_sum(std::vector<Addend> mine, std::int64_t parts, const Tensor& out) override;
  void finish_sums() override;
  void broadcast(const Tensor& x, int root) override;
  void barrier() override;
  using Collective::abort;
  void abort(const std::string& reason, double waited) override;
  void set_standing(const std::string& before, const std::string& after) override {
    watchdog_.set_standing(before, after);
    if (processes_ && thread_ == 0) processes_->set_standing(before, after);
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// A call that is in the stream.
  struct Call {
    Profiler::Event event;
    cuda::Event done;
  };
  /// Puts `call` into NCCL's stream, after everything that the backend was asked for so far.
  void enqueue(const char* name, const Tensor& x, const std::function<ncclResult_t()>& call);
  /// Returns when all calls are done.
  void finish_calls(bool overlapped);
  bool is_done(Call& call);
  /// Returns when NCCL has accepted the last call.
  void settle();
  /// Returns when done() is true. Throws if one of the others fails or stays away.
  void wait(const std::function<bool()>& done);
  /// Why a wait that has lasted `waited` seconds must end, or "".
  std::string trouble(double waited);
  /// The process ends unless this thread is back within the timeout, of which `waited` seconds are over.
  void expect_return(double waited = 0);
  [[noreturn]] void give_up(const std::string& reason);
  void leave();

  ThreadMeeting& meeting_;
  const int thread_;
  Collective* const processes_;
  Backend& backend_;
  const cudaStream_t compute_stream_;
  const double timeout_;
  const int rank_, size_;
  const int gpu_;
  Watchdog watchdog_{"NCCL or CUDA"};
  ncclComm_t communicator_ = nullptr;  // null when this replica has left
  cuda::Stream stream_;
  cuda::Event computed_;
  std::vector<std::unique_ptr<Call>> under_way_, finished_;  // the latter to be used again
  const char* name_ = "join";                                // of the last call
  std::uint64_t calls_ = 0;
  Clock::time_point looked_at_;  // the other processes
  double waited_ = 0;            // for the others, before it gave up
};

}  // namespace bertrand::distributed
