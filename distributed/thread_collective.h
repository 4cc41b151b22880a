// Replicas that are threads of one process: they add up each other's tensors in place, each its share of the elements.
// If the run has several processes, one thread then calls the collective of the processes for all threads of its own.
#pragma once
#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "distributed/background.h"
#include "distributed/collective.h"

namespace bertrand::distributed {

/// Where the threads meet. All of them share it. A call is: arrive, work in which let_one may be used, depart.
class ThreadMeeting {
 public:
  explicit ThreadMeeting(int size) : seats_(static_cast<std::size_t>(size)), calls_(seats_.size()) {}

  /// What a replica brings to a call. The others read it between arrive() and depart().
  struct Seat {
    const char* call = "";
    std::span<const Addend> addends;
    std::int64_t parts = 0;
    Tensor tensor;  ///< is filled by the call
  };
  int size() const { return static_cast<int>(seats_.size()); }
  Seat& seat(int rank) { return seats_[static_cast<std::size_t>(rank)]; }

  /// Returns when all have arrived. Throws Error(Failure::distributed) if the meeting was aborted before.
  void arrive();
  /// When all have come to this place, the thread that is `chosen` does `work`. The others return when it is done.
  /// Throws in all threads that wait here when one of them has failed.
  void let_one(bool chosen, const std::function<void()>& work);
  /// This thread cannot go on with the call. It must still depart.
  void fail(std::exception_ptr failure);
  /// Returns when all have departed, also if the meeting was aborted meanwhile: no thread may free the memory that it
  /// brought while others read it. Returns the first failure of any of them, on all; null if there is none.
  std::exception_ptr depart();
  void abort(const std::string& reason);
  /// Why it was aborted, or "".
  std::string aborted() const;
  /// How many calls a replica has made of a collective that is not this meeting. One that stays away has made fewer.
  void note_call(int thread, std::uint64_t number) { calls_[static_cast<std::size_t>(thread)] = number; }
  std::uint64_t calls(int thread) const { return calls_[static_cast<std::size_t>(thread)]; }

 private:
  /// Counts the caller, who holds the lock. If all have come now, they have met, and the others are woken.
  void come();
  /// Returns when all threads have called it. Throws if one of them has failed.
  void come_together();

  std::vector<Seat> seats_;
  std::vector<std::atomic<std::uint64_t>> calls_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int present_ = 0, departed_ = 0;
  std::uint64_t meetings_ = 0, departures_ = 0;  // how often all have come, and how often all have departed
  std::string aborted_;                          // why, or empty
  std::exception_ptr failed_;                    // the first failure within a call
};

class ThreadCollective : public Collective {
 public:
  struct Place {
    ThreadMeeting& meeting;
    int thread = 0;                   ///< of this process's replicas
    Collective* processes = nullptr;  ///< of this run; null if there is one process only
  };
  /// For the replica that computes on `backend`, which must be able to reach the memory of all replicas of the process.
  ThreadCollective(const Place& place, Backend& backend);

  int rank() const override { return (processes_ ? processes_->rank() * threads() : 0) + thread_; }
  int size() const override { return (processes_ ? processes_->size() : 1) * threads(); }
  void all_reduce_sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out) override;
  /// True between processes: messages travel while this replica computes. Between threads of one process nothing is
  /// gained, because the cores that add up are the cores that compute.
  bool overlaps() const override { return processes_ != nullptr; }
  void start_sum(std::vector<Addend> mine, std::int64_t parts, const Tensor& out) override;
  void finish_sums() override;
  void broadcast(const Tensor& x, int root) override;
  void barrier() override;
  using Collective::abort;
  void abort(const std::string& reason, double waited) override;
  int processes_on_this_host() const override { return processes_ ? processes_->processes_on_this_host() : 1; }
  std::size_t bytes_of_sums(DType dtype, std::size_t addends_of_others) const override {
    return processes_ ? processes_->bytes_of_sums(dtype, addends_of_others) : 0;
  }
  std::string way_of_sums() const override { return processes_ ? processes_->way_of_sums() : ""; }
  void set_standing(const std::string& before, const std::string& after) override {
    if (processes_ && thread_ == 0) processes_->set_standing(before, after);
  }

 private:
  /// Calls `work` when all replicas have come with the same call and sizes; returns when all have finished theirs.
  void together(const ThreadMeeting::Seat& mine, const std::function<void()>& work);
  void check_equal_calls() const;
  std::vector<Addend> everybodys_addends() const;
  /// Calls work(first element, shape) for the blocks of this thread's share of `elements` elements.
  void for_my_blocks(Dim elements, const std::function<void(Dim, const Shape&)>& work) const;
  /// Gives every thread of the process the elements [begin, begin + block) of `sum`.
  void spread(const Tensor& sum, Dim begin, const Shape& block);
  int threads() const { return meeting_.size(); }
  /// The backend that adds up.
  Backend& adder() const { return aside_ ? *aside_ : backend_; }
  void sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out);

  ThreadMeeting& meeting_;
  int thread_;
  Collective* processes_;
  Backend& backend_;
  std::unique_ptr<Backend> aside_;  // of background_; both only if there are other processes
  std::unique_ptr<Background> background_;
};

}  // namespace bertrand::distributed
