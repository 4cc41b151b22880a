#include "nccl.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tensor/dtype.h"

using bertrand::nccl::emulation::Fault;

namespace {

/// One call of all ranks.
struct Operation {
  struct Part {
    const void* from = nullptr;
    void* to = nullptr;
    std::shared_ptr<std::atomic<bool>> done;
  };
  std::size_t count = 0;
  ncclDataType_t type = ncclUint8;
  int root = -1;  // of a broadcast; −1: a sum
  std::vector<Part> parts;
  int present = 0;
};

/// All communicators of one id.
struct Group {
  std::vector<ncclComm_t> members;  // by rank
  std::map<std::int64_t, Operation> operations;
  int leaving = 0;
  const char* error = "";  // the last, in words
};

std::mutex mutex;  // one for everything: what is emulated is what happens, not how fast
std::map<std::string, Group> groups;
std::int64_t ids = 0;
Fault fault;
int open_count = 0;

}  // namespace

struct EmulatedCommunicator {
  Group* group;
  int rank, gpu;
  ncclResult_t state = ncclInProgress;
  std::int64_t calls = 0;
  int late_polls = 0;
  std::vector<std::shared_ptr<std::atomic<bool>>> under_way;
};

namespace {

void set_state(Group& group, ncclResult_t state) {
  for (const ncclComm_t member : group.members)
    if (member && member->state == ncclInProgress) member->state = state;
}

/// Whether each rank may write into the buffers of the others, as NCCL does if all are in one process.
bool in_reach(const Group& group) {
  for (const ncclComm_t one : group.members)
    for (const ncclComm_t other : group.members)
      if (!bertrand::cuda::emulation::reaches(one->gpu, other->gpu)) return false;
  return true;
}

/// Whether the call that is made now goes wrong.
bool goes_wrong(EmulatedCommunicator& communicator) {
  if (fault.rank != communicator.rank || fault.call != communicator.calls) return false;
  if (fault.state == ncclInProgress) {
    communicator.late_polls = fault.polls;
    return false;
  }
  communicator.state = fault.state;
  return true;
}

/// The sum of element i in the order of a ring, which begins elsewhere in each part of the elements.
template <class T>
void add_up(Operation& operation) {
  using Sum = bertrand::Compute<T>;
  const std::size_t ranks = operation.parts.size();
  std::vector<T> sums(operation.count);
  for (std::size_t i = 0; i < operation.count; ++i) {
    const std::size_t first = i * ranks / operation.count;
    T sum = static_cast<const T*>(operation.parts[first].from)[i];
    for (std::size_t k = 1; k < ranks; ++k)
      sum = T(Sum(sum) + Sum(static_cast<const T*>(operation.parts[(first + k) % ranks].from)[i]));
    sums[i] = sum;
  }
  for (const Operation::Part& part : operation.parts) std::memcpy(part.to, sums.data(), sums.size() * sizeof(T));
}

void carry_out(Operation& operation) {
  if (operation.root >= 0) {
    const Operation::Part& root = operation.parts[static_cast<std::size_t>(operation.root)];
    for (const Operation::Part& part : operation.parts)
      if (part.to != root.from) std::memmove(part.to, root.from, operation.count);
  } else if (operation.type == ncclFloat32) {
    add_up<float>(operation);
  } else if (operation.type == ncclFloat64) {
    add_up<double>(operation);
  } else if (operation.type == ncclBfloat16) {
    add_up<bertrand::BFloat16>(operation);
  } else {
    add_up<bertrand::Float16>(operation);
  }
  for (const Operation::Part& part : operation.parts) *part.done = true;
}

ncclResult_t call(const Operation& wanted, const Operation::Part& part, ncclComm_t communicator, cudaStream_t stream) {
  std::unique_lock lock(mutex);
  if (communicator->state != ncclSuccess) return ncclInvalidUsage;
  ++communicator->calls;
  if (!fault.returns && fault.rank == communicator->rank && fault.call == communicator->calls) {
    lock.unlock();
    while (true) ::pause();
  }
  Group& group = *communicator->group;
  Operation& operation = group.operations[communicator->calls];
  if (operation.parts.empty()) {
    operation = wanted;
    operation.parts.resize(group.members.size());
  }
  Operation::Part& mine = operation.parts[static_cast<std::size_t>(communicator->rank)];
  mine = part;
  mine.done = std::make_shared<std::atomic<bool>>(false);
  std::erase_if(communicator->under_way, [](const auto& done) { return done->load(); });
  communicator->under_way.push_back(mine.done);
  bertrand::cuda::emulation::add_to_stream(stream, mine.done);
  if (goes_wrong(*communicator)) return ncclSuccess;  // a later call says so
  if (operation.count != wanted.count || operation.type != wanted.type || operation.root != wanted.root) {
    communicator->state = ncclInvalidUsage;
    return ncclSuccess;
  }
  if (++operation.present == static_cast<int>(group.members.size())) {
    if (in_reach(group)) carry_out(operation);
    else
      for (const ncclComm_t member : group.members) member->state = ncclUnhandledCudaError;
    group.operations.erase(communicator->calls);
  }
  return communicator->late_polls > 0 ? ncclInProgress : ncclSuccess;
}

void close(ncclComm_t communicator) {
  for (const auto& done : communicator->under_way) *done = true;  // what waits on the GPU is ended
  for (auto& [number, operation] : communicator->group->operations)
    operation.present = -1'000'000;  // and never happens
  communicator->group->members[static_cast<std::size_t>(communicator->rank)] = nullptr;
  --open_count;
  delete communicator;
}

}  // namespace

const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclInvalidArgument: return "invalid argument";
    case ncclInvalidUsage: return "invalid usage";
    case ncclRemoteError: return "remote process exited or there was a network error";
    case ncclUnhandledCudaError: return "unhandled cuda error";
    case ncclSystemError: return "unhandled system error";
    default: return "internal error";
  }
}

const char* ncclGetLastError(ncclComm_t communicator) {
  const std::lock_guard lock(mutex);
  return communicator ? communicator->group->error : "";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const std::lock_guard lock(mutex);
  std::memset(id, 0, sizeof *id);
  const std::string name = "emulated group " + std::to_string(++ids);
  std::copy(name.begin(), name.end(), id->internal);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  const std::lock_guard lock(mutex);
  if (config->blocking != 0 || rank < 0 || rank >= size) return ncclInvalidArgument;
  Group& group = groups[id.internal];
  group.members.resize(static_cast<std::size_t>(size));
  int gpu = 0;
  cudaGetDevice(&gpu);
  const bool taken =
      std::ranges::any_of(group.members, [&](ncclComm_t member) { return member && member->gpu == gpu; });
  *communicator = group.members[static_cast<std::size_t>(rank)] = new EmulatedCommunicator{&group, rank, gpu};
  ++open_count;
  if (goes_wrong(**communicator)) return ncclInProgress;
  if (taken) {
    set_state(group, ncclInvalidUsage);
    group.error = "Duplicate GPU detected";
  }
  if (std::ranges::count(group.members, nullptr) == 0) set_state(group, ncclSuccess);
  return ncclInProgress;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  const std::lock_guard lock(mutex);
  *state = communicator->state;
  if (communicator->state == ncclSuccess && communicator->late_polls > 0) {
    --communicator->late_polls;
    *state = ncclInProgress;
  }
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  const std::lock_guard lock(mutex);
  if (communicator->state != ncclSuccess) return ncclInvalidUsage;
  communicator->state = ncclInProgress;
  Group& group = *communicator->group;
  if (++group.leaving == static_cast<int>(group.members.size())) set_state(group, ncclSuccess);
  return ncclInProgress;
}

ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  const std::lock_guard lock(mutex);
  close(communicator);
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  const std::lock_guard lock(mutex);
  close(communicator);
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type, ncclRedOp_t,
                           ncclComm_t communicator, cudaStream_t stream) {
  return call({.count = count, .type = type}, {.from = from, .to = to}, communicator, stream);
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type, int root,
                           ncclComm_t communicator, cudaStream_t stream) {
  return call({.count = count, .type = type, .root = root}, {.from = from, .to = to}, communicator, stream);
}

namespace bertrand::nccl::emulation {

void inject(const Fault& wanted) {
  const std::lock_guard lock(mutex);
  fault = wanted;
}

int open_communicators() {
  const std::lock_guard lock(mutex);
  return open_count;
}

}  // namespace bertrand::nccl::emulation
