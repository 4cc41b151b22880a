#include "distributed/replica_group.h"

#include <exception>
#include <mutex>
#include <thread>

#include "distributed/thread_collective.h"

namespace bertrand::distributed {
namespace {

/// The first failure of any replica.
class FirstFailure {
 public:
  /// Keeps the exception being handled if it is the first.
  void keep() {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

void ReplicaGroup::run(const std::function<void(const Replica&)>& body) {
  if (size() == 1 && !processes_) {
    body(Replica(*backends_[0]));
    return;
  }
  try {
    run_threads(body);
  } catch (const Error& error) {
    if (error.failure() != Failure::interrupted) throw;
    if (processes_) processes_->barrier();  // stopping is something that all processes do together
    throw;
  }
  if (processes_) processes_->barrier();
}

void ReplicaGroup::run_threads(const std::function<void(const Replica&)>& body) {
  ThreadMeeting meeting(size());
  FirstFailure failure;
  const auto run_one = [&](int thread) {
    Backend& backend = *backends_[static_cast<std::size_t>(thread)];
    const Replica replica(
        backend, std::make_unique<ThreadCollective>(
                     ThreadCollective::Place{.meeting = meeting, .thread = thread, .processes = processes_}, backend));
    try {
      body(replica);
    } catch (const Error& error) {
      failure.keep();
      if (error.failure() == Failure::interrupted)
        meeting.abort(error.what());
      else
        replica.collective().abort(error.what());
    } catch (const std::exception& error) {
      failure.keep();
      replica.collective().abort(error.what());
    }
  };
  {
    std::vector<std::jthread> others;
    for (int thread = 1; thread < size(); ++thread) others.emplace_back(run_one, thread);
    run_one(0);
  }
  failure.rethrow();
}

}  // namespace bertrand::distributed
