#include "distributed/nccl/nccl_collective.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "distributed/running_time.h"
#include "tensor/ops.h"
#include "tensor/run.h"

namespace bertrand::distributed {
namespace {

constexpr double kSpin = 50e-6;  // seconds: sums of small tensors take less
constexpr std::chrono::microseconds kNap{20};
constexpr std::chrono::milliseconds kLook{100};  // between looks at the other processes
constexpr double kTelling = 2;                   // seconds beyond the timeout, to leave when it is over

/// "NCCL: invalid usage: Duplicate GPU detected : rank 0 and rank 1 both on …": NCCL tells the cause in its last error.
std::string text_of(ncclResult_t result, ncclComm_t communicator = nullptr) {
  const char* const cause = ncclGetLastError(communicator);
  return fmt::format("NCCL: {}{}{}", ncclGetErrorString(result), cause && *cause ? ": " : "", cause ? cause : "");
}

void check_nccl(ncclResult_t result, const char* call) {
  if (result != ncclSuccess && result != ncclInProgress) fail(Failure::distributed, "{}: {}", call, text_of(result));
}

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32: return ncclFloat32;
    case DType::f64: return ncclFloat64;
    case DType::f16: return ncclFloat16;
    case DType::bf16: return ncclBfloat16;
    default: fail(Failure::bug, "all_reduce_sum: expected a floating type, got {}", name_of(dtype));
  }
}

/// Streams, events and NCCL's memory are made on the calling thread's GPU.
int use_gpu(const Backend& backend) {
  cuda::check_cuda(cudaSetDevice(backend.device().index), "device");
  return backend.device().index;
}

/// Lets the other GPUs reach what this one's memory pool holds. NCCL copies between replicas of one process straight
/// from buffer to buffer, and the access it asks for itself is to cudaMalloc's memory, not to a pool's.
void open_to_peers(int gpu) {
  int gpus = 0;
  cuda::check_cuda(cudaGetDeviceCount(&gpus), "device");
  cudaMemPool_t pool{};
  cuda::check_cuda(cudaDeviceGetDefaultMemPool(&pool, gpu), "memory pool");
  for (int peer = 0; peer < gpus; ++peer) {
    int reaches = 0;
    if (peer != gpu) cuda::check_cuda(cudaDeviceCanAccessPeer(&reaches, peer, gpu), "peer access");
    if (!reaches) continue;
    cudaMemAccessDesc access{};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = peer;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    cuda::check_cuda(cudaMemPoolSetAccess(pool, &access, 1), "peer access");
  }
}

}  // namespace

NcclCollective::NcclCollective(const NcclPlace& place)
    : meeting_(place.meeting),
      thread_(place.thread),
      processes_(place.processes),
      backend_(place.backend),
      compute_stream_(static_cast<cudaStream_t>(place.stream)),
      timeout_(place.timeout),
      rank_((processes_ ? processes_->rank() * meeting_.size() : 0) + thread_),
      size_((processes_ ? processes_->size() : 1) * meeting_.size()),
      gpu_(use_gpu(backend_)) {
  meeting_.note_call(thread_, ++calls_);
  expect_return();
  if (meeting_.size() > 1) open_to_peers(gpu_);
  ncclUniqueId id;
  check(place.id.size() == sizeof id.internal, "nccl: expected an id of {} bytes, got {}", sizeof id.internal,
        place.id.size());
  std::memcpy(id.internal, place.id.data(), sizeof id.internal);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  check_nccl(ncclCommInitRankConfig(&communicator_, size_, id, rank_, &config), name_);
  settle();
  watchdog_.rest();
}

NcclCollective::~NcclCollective() {
  if (!communicator_) return;
  try {
    name_ = "leave";
    expect_return();
    check_nccl(ncclCommFinalize(communicator_), name_);
    settle();
    ncclCommDestroy(communicator_);
  } catch (const Error&) {
    leave();
  }
}

void NcclCollective::expect_return(double waited) {
  if (waited == 0) watchdog_.set_call(fmt::format("{} (call {})", name_, calls_));
  watchdog_.expect(std::max(kTelling, timeout_ + kTelling - waited));
}

void NcclCollective::leave() {
  expect_return();
  if (communicator_) ncclCommAbort(communicator_);  // also ends what waits on the GPU
  communicator_ = nullptr;
  watchdog_.rest();
}

void NcclCollective::abort(const std::string& reason, double waited) {
  if (processes_) processes_->abort(reason, std::max(waited, waited_));
  meeting_.abort(fmt::format("replica {} has failed", rank_));
}

std::string NcclCollective::trouble(double waited) {
  if (std::string reason = meeting_.aborted(); !reason.empty()) return reason;
  // NCCL does not say which replica is gone, and not always that one is. One thread asks: MPI permits only one.
  if (processes_ && thread_ == 0 && Clock::now() - looked_at_ > kLook) {
    looked_at_ = Clock::now();
    if (std::string reason = processes_->failure_of_others(); !reason.empty()) return reason;
  }
  ncclResult_t state = ncclSuccess;
  if (const ncclResult_t asked = ncclCommGetAsyncError(communicator_, &state); asked != ncclSuccess) state = asked;
  if (state != ncclSuccess && state != ncclInProgress) return text_of(state, communicator_);
  if (waited < timeout_) return "";
  std::string absent;
  for (int thread = 0; thread < meeting_.size(); ++thread)
    if (meeting_.calls(thread) < calls_)
      absent += fmt::format("{}replica {}", absent.empty() ? "" : ", ", rank_ - thread_ + thread);
  return fmt::format("{} did not come within {} seconds", absent.empty() ? "replicas of another process" : absent,
                     timeout_);
}

void NcclCollective::give_up(const std::string& reason) {
  leave();
  fail(Failure::distributed, "{} (call {}): {}", name_, calls_, reason);
}

void NcclCollective::wait(const std::function<bool()>& done) {
  RunningTime since;
  while (!done()) {
    waited_ = since.seconds();
    expect_return(waited_);
    if (const std::string reason = trouble(waited_); !reason.empty()) give_up(reason);
    if (waited_ > kSpin) std::this_thread::sleep_for(kNap);
  }
  waited_ = 0;
}

void NcclCollective::settle() {
  wait([&] {
    ncclResult_t state = ncclSuccess;
    return ncclCommGetAsyncError(communicator_, &state) == ncclSuccess && state == ncclSuccess;
  });
}

void NcclCollective::enqueue(const char* name, const Tensor& x, const std::function<ncclResult_t()>& call) {
  check(communicator_, "{}: this replica has left the others", name);
  use_gpu(backend_);
  name_ = name;
  meeting_.note_call(thread_, ++calls_);
  expect_return();
  computed_.record(compute_stream_);
  computed_.hold(stream_.get());
  const Clock::time_point begin = Clock::now();
  check_nccl(call(), name);
  settle();  // only then the call is surely in the stream
  std::unique_ptr<Call> one = finished_.empty() ? std::make_unique<Call>() : std::move(finished_.back());
  if (!finished_.empty()) finished_.pop_back();
  one->event = {name, begin, {}, {.bytes = static_cast<double>(x.bytes())}, Profiler::Kind::collective};
  one->done.record(stream_.get());
  under_way_.push_back(std::move(one));
}

bool NcclCollective::is_done(Call& call) {
  if (!call.done.is_done()) return false;
  if (call.event.end == Clock::time_point{}) call.event.end = Clock::now();
  return true;
}

void NcclCollective::finish_calls(bool overlapped) {
  while (!under_way_.empty()) {  // after a wait that throws, the rest is still under way
    Call& call = *under_way_.front();
    wait([&] { return is_done(call); });
    call.event.overlapped = overlapped;
    if (backend_.profiler) backend_.profiler->add(call.event);
    finished_.push_back(std::move(under_way_.front()));
    under_way_.erase(under_way_.begin());
  }
  watchdog_.rest();
}

void NcclCollective::start_sum(std::vector<Addend> mine, std::int64_t parts, const Tensor& out) {
  for (auto& call : under_way_) is_done(*call);  // for the profile: notes when it was first seen as done
  const auto add = [&](const Tensor& left, const Tensor& right) { add_to_right(backend_, left, right); };
  const std::vector<Addend> nodes = add_siblings(mine, parts, add);
  for (std::size_t i = 1; i < nodes.size(); ++i) add(nodes[i - 1].values, nodes[i].values);
  run(backend_, [&](Kernels& k) {
    if (nodes.empty()) k.fill(out, 0);
    else if (!nodes.back().values.same_memory(out)) k.cast(nodes.back().values, out);
  });
  enqueue("all_reduce_sum", out, [&] {
    return ncclAllReduce(out.data(), out.data(), static_cast<std::size_t>(out.elements()), type_of(out.dtype()),
                         ncclSum, communicator_, stream_.get());
  });
}

void NcclCollective::finish_sums() { finish_calls(true); }

void NcclCollective::all_reduce_sum(std::span<const Addend> mine, std::int64_t parts, const Tensor& out) {
  start_sum({mine.begin(), mine.end()}, parts, out);
  finish_calls(false);
}

void NcclCollective::broadcast(const Tensor& x, int root) {
  enqueue("broadcast", x,
          [&] { return ncclBroadcast(x.data(), x.data(), x.bytes(), ncclUint8, root, communicator_, stream_.get()); });
  finish_calls(false);
}

void NcclCollective::barrier() {
  const Tensor one = ops::full({1}, 0, DType::f32, backend_);
  enqueue("barrier", one,
          [&] { return ncclAllReduce(one.data(), one.data(), 1, ncclFloat32, ncclSum, communicator_, stream_.get()); });
  finish_calls(false);
}

}  // namespace bertrand::distributed

extern "C" __attribute__((visibility("default"))) std::string* bertrand_nccl_id() {
  ncclUniqueId id;
  bertrand::distributed::check_nccl(ncclGetUniqueId(&id), "join");
  return new std::string(id.internal, sizeof id.internal);
}

extern "C" __attribute__((visibility("default"))) bertrand::distributed::Collective* bertrand_join_nccl(
    const bertrand::distributed::NcclPlace& place) {
  return new bertrand::distributed::NcclCollective(place);
}
