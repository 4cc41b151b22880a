// Replicas that are threads of one process: they add up each other's tensors in place, each its part of the elements.
// Where the run has other processes, one thread then does with those what is to be done, for all threads of its
// process.
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

/// Where the threads meet. Shared by all of them.
class ThreadMeeting {
 public:
  explicit ThreadMeeting(int size) : seats_(static_cast<std::size_t>(size)), calls_(seats_.size()) {}

  /// What a replica brings to a call, for the others to read between arriving and departing.
  struct Seat {
    const char* call = "";
    std::span<const Addend> addends;
    std::int64_t parts = 0;
    Tensor tensor;  ///< what is to be filled
  };
  int size() const { return static_cast<int>(seats_.size()); }
  Seat& seat(int rank) { return seats_[static_cast<std::size_t>(rank)]; }

  /// Returns when all have arrived. Throws Error(Failure::distributed) where it was aborted before.
  void arrive();
  /// Returns when all are done with each other's seats, also where it was aborted meanwhile: until then nobody may let
  /// go of the memory that he brought.
  void depart();
  /// One for all, between arriving and departing: when all have come to this place, the one that is `chosen` does
  /// `work`, and when it is done all go on, or throw what it threw.
  void let_one(bool chosen, const std::function<void()>& work);
  void abort(const std::string& reason);
  /// Why it was aborted, or "".
  std::string aborted() const;
  /// How many calls a replica has made of a collective that is not this meeting: who stays away has made fewer.
  void note_call(int thread, std::uint64_t number) { calls_[static_cast<std::size_t>(thread)] = number; }
  std::uint64_t calls(int thread) const { return calls_[static_cast<std::size_t>(thread)]; }

 private:
  bool last_to_come();  // under the lock

  std::vector<Seat> seats_;
  std::vector<std::atomic<std::uint64_t>> calls_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int present_ = 0;
  std::uint64_t meetings_ = 0;
  std::string aborted_;  // why, or empty
  std::exception_ptr thrown_;
};

class ThreadCollective : public Collective {
 public:
  struct Place {
    ThreadMeeting& meeting;
    int thread = 0;                   ///< of this process's replicas
    Collective* processes = nullptr;  ///< of this run, or null where this is the only one
  };
  /// Of the replica that computes on `backend`; the memory of all replicas of the process must be within its reach.
  ThreadCollective(const Place& place, Backend& backend);

  int rank() const override { return (processes_ ? processes_->rank() * threads() : 0) + thread_; }
  int size() const override { return (processes_ ? processes_->size() : 1) * threads(); }
  void all_reduce_sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out) override;
  /// Between processes there is time to gain: messages travel while this replica computes. Between threads of one there
  /// is none, because what adds up is what computes.
  bool overlaps() const override { return processes_ != nullptr; }
  void start_sum(std::vector<Addend> mine, std::int64_t parts, const Tensor& out) override;
  void finish_sums() override;
  void broadcast(const Tensor& x, int root) override;
  void barrier() override;
  using Collective::abort;
  void abort(const std::string& reason, double waited) override;
  int processes_on_this_host() const override { return processes_ ? processes_->processes_on_this_host() : 1; }
  void set_standing(const std::string& before, const std::string& after) override {
    if (processes_ && thread_ == 0) processes_->set_standing(before, after);
  }

 private:
  /// Calls `work` when all replicas have come with the same call and sizes; returns when all have finished theirs.
  void together(const ThreadMeeting::Seat& mine, const std::function<void()>& work);
  void check_equal_calls() const;
  std::vector<Addend> everybodys_addends() const;
  /// Calls work(first element, shape) for the blocks of this thread's part of `elements` elements.
  void for_my_blocks(Dim elements, const std::function<void(Dim, const Shape&)>& work) const;
  /// Gives every thread of the process the elements [begin, begin + block) of `sum`.
  void spread(const Tensor& sum, Dim begin, const Shape& block);
  int threads() const { return meeting_.size(); }
  /// What sums are added up with.
  Backend& adder() const { return aside_ ? *aside_ : backend_; }
  void sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out);

  ThreadMeeting& meeting_;
  int thread_;
  Collective* processes_;
  Backend& backend_;
  std::unique_ptr<Backend> aside_;  // of the thread that sums are made in where there are other processes
  std::unique_ptr<Background> background_;
};

}  // namespace bertrand::distributed
