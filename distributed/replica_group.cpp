#include "distributed/replica_group.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "distributed/exchange.h"
#include "distributed/gpus.h"
#include "distributed/thread_collective.h"
#include "tensor/backends.h"

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
  if (size() == 1 && !options_.processes) {
    body(Replica(*backends_[0]));
    return;
  }
  try {
    run_threads(body);
  } catch (const std::exception& error) {
    // Stopping is something that all processes do together.
    if (options_.processes && is_interruption(error)) options_.processes->barrier();
    throw;
  }
  if (options_.processes) options_.processes->barrier();
}

bool ReplicaGroup::on_several_gpus() const {
  const Device first = backends_[0]->device();
  return first.kind == Device::Kind::cuda && (options_.processes || std::ranges::any_of(backends_, [&](const auto& b) {
                                                return b->device().index != first.index;
                                              }));
}

void ReplicaGroup::run_threads(const std::function<void(const Replica&)>& body) {
  ThreadMeeting meeting(size());
  FirstFailure failure;
  std::unique_ptr<NcclModule> nccl;
  std::string id;
  if (on_several_gpus()) {
    nccl = std::make_unique<NcclModule>(options_.emulated);
    if (!options_.processes || options_.processes->rank() == 0) id = nccl->new_id();
    if (options_.processes) id = broadcast(*options_.processes, *open_cpu({.threads = 1}), id, 0);
  }
  const auto join = [&](int thread, Backend& backend) -> std::unique_ptr<Collective> {
    if (nccl) return nccl->join({meeting, thread, options_.processes, backend, nullptr, id, options_.timeout});
    return std::make_unique<ThreadCollective>(ThreadCollective::Place{meeting, thread, options_.processes}, backend);
  };
  const auto tell_others = [&](const std::optional<Replica>& replica, const char* reason) {
    if (replica) return replica->collective().abort(reason);
    meeting.abort(reason);
    if (options_.processes) options_.processes->abort(reason);
  };
  const auto run_one = [&](int thread) {
    Backend& backend = *backends_[static_cast<std::size_t>(thread)];
    std::optional<Replica> replica;
    try {
      replica.emplace(backend, join(thread, backend));
      body(*replica);
    } catch (const std::exception& error) {
      failure.keep();
      if (is_interruption(error)) meeting.abort(error.what());
      else tell_others(replica, error.what());
    }
  };
  {
    std::vector<std::jthread> others;
    try {
      for (int thread = 1; thread < size(); ++thread) others.emplace_back(run_one, thread);
    } catch (const std::system_error& error) {  // no thread can be started: the others must not wait for it
      failure.keep();
      tell_others({}, error.what());
    }
    run_one(0);
  }
  failure.rethrow();
}

}  // namespace bertrand::distributed
