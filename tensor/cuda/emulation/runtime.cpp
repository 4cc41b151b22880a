// What the emulation gives for the CUDA runtime: devices, streams, events and copies.
#include "tensor/cuda/emulation/runtime.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "io/error.h"
#include "tensor/cuda/emulation/memory.h"
#include "tensor/cuda/emulation/stream.h"

struct EmulatedPool {
  std::set<int> open_to;  // other GPUs
};

namespace {

using bertrand::cuda::emulation::Done;
using bertrand::cuda::emulation::Memory;
using bertrand::cuda::emulation::refuse_in_capture;

Memory& memory() {
  static Memory one;
  return one;
}
std::atomic<std::int64_t> stream_waits{0};
constexpr int kGpus = 4;
std::mutex tables;  // replicas on several GPUs are threads
thread_local int current_gpu = 0;
EmulatedPool pools[kGpus];

int capability[2] = {9, 0}, built_for = 8;
std::map<const void*, std::size_t>& pinned() {
  static std::map<const void*, std::size_t> blocks;
  return blocks;
}
bool is_pinned(const void* at) {
  const std::lock_guard lock(tables);
  auto block = pinned().upper_bound(at);
  if (block == pinned().begin()) return false;
  --block;
  return static_cast<const std::byte*>(at) < static_cast<const std::byte*>(block->first) + block->second;
}
std::map<const void*, std::size_t>& dynamic_shared_limits() {
  static std::map<const void*, std::size_t> limits;
  return limits;
}

std::vector<Done> under_way;  // what any stream of any GPU waits for
void forget_done(std::vector<Done>& all) {
  std::erase_if(all, [](const Done& one) { return one->load(); });
}
void wait_for_all(const std::vector<Done>& all) {
  for (const Done& one : all)
    while (!one->load()) std::this_thread::sleep_for(std::chrono::microseconds(20));
}
/// CUDA may wait for all GPUs of the process where pinned memory comes or goes, so that always happens here.
void wait_for_all_gpus() {
  std::vector<Done> all;
  {
    const std::lock_guard lock(tables);
    all = under_way;
  }
  wait_for_all(all);
}

}  // namespace

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = kGpus;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kGpus) return cudaErrorInvalidDevice;
  current_gpu = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_gpu;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"emulated on the processor", memory().limit(), capability[0], capability[1]};
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInsufficientDriver: return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorECCUncorrectable: return "uncorrectable ECC error encountered";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorNoKernelImageForDevice: return "no kernel image is available for execution on the device";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorIllegalAddress: return "a kernel wrote outside of an allocation";
    case cudaErrorStreamCaptureUnsupported: return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated: return "operation failed due to a previous error during capture";
    case cudaErrorCapturedEvent: return "operation not permitted on an event last recorded in a capturing stream";
  }
  return "unknown error";
}
cudaError_t cudaGetLastError() { return memory().state(); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new EmulatedStream;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (const cudaError_t error = refuse_in_capture(stream); error != cudaSuccess) return error;
  ++stream_waits;
  bertrand::cuda::emulation::wait_for_stream(stream);
  return memory().state();
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new EmulatedEvent;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  *event = {stream, stream->clock, stream->copies, stream->capture != nullptr, stream->waits_for};
  return memory().state();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->stream) event->stream->flush();
  for (const auto& done : event->waits_for) bertrand::cuda::emulation::add_to_stream(stream, done);
  return memory().state();
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->captured) return cudaErrorCapturedEvent;
  if (event->stream) event->stream->flush();
  return event->done() ? memory().state() : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->captured) return cudaErrorCapturedEvent;
  // A copy that is still under way comes after all that was asked for before it.
  if (event->stream && event->stream->copied < event->copies) ++stream_waits;
  if (event->stream) event->stream->flush();
  while (!event->done()) std::this_thread::sleep_for(std::chrono::microseconds(20));
  return memory().state();
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  *milliseconds = static_cast<float>(end->time - begin->time);
  return memory().state();
}
cudaError_t cudaMallocHost(void** data, std::size_t bytes) {
  if (bertrand::cuda::emulation::captures()) return cudaErrorStreamCaptureUnsupported;
  wait_for_all_gpus();
  *data = std::malloc(bytes);
  if (!*data) return cudaErrorMemoryAllocation;
  const std::lock_guard lock(tables);
  pinned()[*data] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* data) {
  wait_for_all_gpus();
  {
    const std::lock_guard lock(tables);
    pinned().erase(data);
  }
  std::free(data);
  return cudaSuccess;
}
// CUDA makes nodes of a captured stream's requests for memory. Nothing here asks for that, so it is refused.
cudaError_t cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t stream) {
  const cudaError_t error = refuse_in_capture(stream);
  return error != cudaSuccess ? error : memory().allocate(data, bytes);
}
cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  if (const cudaError_t error = refuse_in_capture(stream); error != cudaSuccess) return error;
  if (stream) stream->flush();
  return memory().free(data);
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = memory().limit();
  *free = *total - memory().in_use();
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  if (stream && stream->capture) {
    if (kind != cudaMemcpyDeviceToDevice && !is_pinned(kind == cudaMemcpyHostToDevice ? from : to))
      return refuse_in_capture(stream);
    stream->capture->work.emplace_back([=] { std::memmove(to, from, bytes); });
    return memory().state();
  }
  if (kind == cudaMemcpyHostToDevice && stream && is_pinned(from)) {
    stream->waiting.push_back({to, from, bytes});
    ++stream->copies;
    return memory().state();
  }
  bertrand::cuda::emulation::wait_for_stream(stream);
  if (bytes > 0) std::memmove(to, from, bytes);
  return memory().state();
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (stream && stream->capture) {
    stream->capture->work.emplace_back([=] { std::memset(to, value, bytes); });
    return memory().state();
  }
  bertrand::cuda::emulation::wait_for_stream(stream);
  if (bytes > 0) std::memset(to, value, bytes);
  return memory().state();
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  *pool = &pools[device];
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value) {
  *static_cast<std::uint64_t*>(value) = memory().in_use();  // nothing is kept
  return cudaSuccess;
}
cudaError_t cudaMemPoolTrimTo(cudaMemPool_t, std::size_t) {
  memory().trim();
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* access, std::size_t count) {
  const std::lock_guard lock(tables);
  for (std::size_t i = 0; i < count; ++i) pool->open_to.insert(access[i].location.id);
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = device != peer;
  return cudaSuccess;
}

namespace bertrand::cuda::emulation {

cudaError_t begin_work(cudaStream_t stream, double milliseconds) {
  if (const cudaError_t error = refuse_in_capture(stream); error != cudaSuccess) return error;
  memory().launched();
  wait_for_stream(stream);
  if (stream) stream->clock += milliseconds;
  return memory().state();
}

void add_to_stream(cudaStream_t stream, Done done) {
  forget_done(stream->waits_for);
  stream->waits_for.push_back(done);
  const std::lock_guard lock(tables);
  forget_done(under_way);
  under_way.push_back(std::move(done));
}

void wait_for_stream(cudaStream_t stream) {
  if (!stream) return;
  stream->flush();
  wait_for_all(stream->waits_for);
  stream->waits_for.clear();
}

bool reaches(int gpu, int other) {
  const std::lock_guard lock(tables);
  return gpu == other || pools[other].open_to.contains(gpu);
}

void limit_memory(std::size_t bytes) { memory().limit(bytes); }
std::int64_t synchronizations() { return stream_waits; }
void fail_allocation(int number) { memory().fail_in(number); }
void fragment_memory() { memory().fragment(); }
void set_capability(int major, int minor) {
  capability[0] = major;
  capability[1] = minor;
}
void build_for(int major) { built_for = major; }
bool has_kernels() { return capability[0] >= built_for; }
void lose_gpu(int launches) { memory().lose_in(launches); }
Counts counts() { return {memory().launches(), memory().allocations(), memory().in_use()}; }

std::string name_of_function(const void* function) {
  Dl_info info{};
  if (dladdr(function, &info) == 0 || !info.dli_sname) return "kernel";
  int status = 0;
  char* const readable = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
  std::string name = readable ? readable : info.dli_sname;
  std::free(readable);
  name = name.substr(0, name.find('('));
  const std::string scope = "bertrand::cuda::";
  if (const std::size_t at = name.find(scope); at != std::string::npos) name = name.substr(at + scope.size());
  return name;
}

bool set_dynamic_shared_limit(const void* function, std::size_t bytes) {
  const bool is_small = capability[0] == 12 || (capability[0] == 8 && (capability[1] == 6 || capability[1] == 9));
  const std::size_t most = is_small ? 99 : capability[0] == 8 ? 163 : 227;  // KiB
  if (bytes > most << 10) return false;
  const std::lock_guard lock(tables);
  dynamic_shared_limits()[function] = bytes;
  return true;
}
void check_dynamic_shared(const void* function, std::size_t bytes) {
  const std::lock_guard lock(tables);
  const auto found = dynamic_shared_limits().find(function);
  const std::size_t limit = found == dynamic_shared_limits().end() ? std::size_t{48} << 10 : found->second;
  check(bytes <= limit, "{}: {} bytes of dynamic shared memory, the limit is {}", name_of_function(function), bytes,
        limit);
}

}  // namespace bertrand::cuda::emulation

// For tests of whole programs, which load the emulation as a module.
extern "C" void bertrand_lose_gpu(int launches) { bertrand::cuda::emulation::lose_gpu(launches); }
extern "C" int bertrand_launches() { return bertrand::cuda::emulation::counts().launches; }
