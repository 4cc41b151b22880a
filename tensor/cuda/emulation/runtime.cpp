#include "tensor/cuda/emulation/runtime.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

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

// Without AddressSanitizer these are not there.
extern "C" {
__attribute__((weak)) void __asan_poison_memory_region(const volatile void* begin, std::size_t bytes);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void* begin, std::size_t bytes);
}

/// Copies from pinned memory wait here until something must come after them, as they may on a card: who writes to the
/// memory before that is found out by what arrives.
struct EmulatedStream {
  struct Copy {
    void* to;
    const void* from;
    std::size_t bytes;
  };
  std::vector<Copy> waiting;
  std::uint64_t copies = 0, copied = 0;  // asked for, and ended
  double clock = 0;
  std::vector<bertrand::cuda::emulation::Done> waits_for;  // what other cards have to do first

  void flush() {
    for (const Copy& copy : waiting) std::memcpy(copy.to, copy.from, copy.bytes);
    waiting.clear();
    copied = copies;
  }
};
struct EmulatedEvent {
  EmulatedStream* stream = nullptr;
  double time = 0;
  std::uint64_t copies = 0;  // asked for before it
  std::vector<bertrand::cuda::emulation::Done> waits_for;
  bool done() const {
    return std::ranges::all_of(waits_for, [](const auto& one) { return one->load(); });
  }
};
struct EmulatedPool {
  std::set<int> open_to;  // other cards
};

namespace {

constexpr std::size_t kAlign = 16;                   // what the widest load asks for
constexpr int kGuardByte = 0xa5, kFreshByte = 0xff;  // fresh memory is NaN in every floating type

std::size_t pages(std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

/// Pages for device memory, and one behind them that nobody may touch. Those given back are kept, untouchable too,
/// since fresh ones cost more than what small kernels do.
class Pages {
 public:
  /// Null where the processor's own memory has run out.
  std::byte* take(std::size_t bytes) {
    void* begin = nullptr;
    if (const auto found = free_.find(bytes); found != free_.end()) {
      begin = found->second;
      free_.erase(found);
    } else {
      begin = mmap(nullptr, bytes + pages(1), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (begin == MAP_FAILED) return nullptr;
    }
    mprotect(begin, bytes, PROT_READ | PROT_WRITE);
    return static_cast<std::byte*>(begin);
  }
  void give_back(std::byte* begin, std::size_t bytes) {
    mprotect(begin, bytes, PROT_NONE);
    free_.emplace(bytes, begin);
  }

 private:
  std::multimap<std::size_t, std::byte*> free_;
};

/// One allocation of device memory. It ends where its pages do, but for what the alignment asks for, so that whoever
/// reads or writes behind those bytes is stopped at once; these and the bytes before it are looked at when it goes.
/// AddressSanitizer stops whoever reads or writes any of them.
class Block {
 public:
  Block(std::size_t bytes, Pages& from) : bytes_(bytes), size_(pages(bytes + kAlign)), begin_(from.take(size_)) {
    if (!begin_) return;
    std::byte* const end = begin_ + size_;
    data_ = end - (bytes + kAlign - 1) / kAlign * kAlign;
    std::memset(begin_, kGuardByte, static_cast<std::size_t>(data_ - begin_));
    std::memset(data_, kFreshByte, bytes);
    std::memset(data_ + bytes, kGuardByte, static_cast<std::size_t>(end - data_) - bytes);
    if (!__asan_poison_memory_region) return;
    __asan_poison_memory_region(begin_, static_cast<std::size_t>(data_ - begin_));
    __asan_poison_memory_region(data_ + bytes, static_cast<std::size_t>(end - data_) - bytes);
  }
  std::byte* data() const { return data_; }  ///< or null
  std::size_t bytes() const { return bytes_; }
  /// False where somebody wrote beside it.
  bool release(Pages& to) const {
    if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(begin_, size_);
    const auto untouched = [](const std::byte* from, const std::byte* end) {
      return std::all_of(from, end, [](std::byte b) { return b == std::byte{kGuardByte}; });
    };
    const bool whole = untouched(begin_, data_) && untouched(data_ + bytes_, begin_ + size_);
    to.give_back(begin_, size_);
    return whole;
  }

 private:
  std::size_t bytes_, size_;
  std::byte *begin_ = nullptr, *data_ = nullptr;
};

/// The device's memory.
class Memory {
 public:
  cudaError_t allocate(void** data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    ++allocations_;
    if (in_use_ + bytes > limit_ || fragmented_) return cudaErrorMemoryAllocation;
    if (fails_in_ > 0 && --fails_in_ <= 1) return cudaErrorMemoryAllocation;
    const Block block(bytes, pages_);
    if (!block.data()) return cudaErrorMemoryAllocation;
    *data = block.data();
    blocks_.emplace(*data, block);
    in_use_ += bytes;
    return cudaSuccess;
  }

  cudaError_t free(void* data) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(data);
    if (found == blocks_.end()) return cudaErrorInvalidValue;
    in_use_ -= found->second.bytes();
    if (!found->second.release(pages_)) broken_ = true;
    blocks_.erase(found);
    return cudaSuccess;
  }

  /// As a card does: what went wrong is told by every later call.
  cudaError_t state() const {
    return broken_ ? cudaErrorIllegalAddress : lost_ ? cudaErrorECCUncorrectable : cudaSuccess;
  }
  void launched() {
    const std::lock_guard lock(mutex_);
    ++launches_;
    if (lost_in_ > 0 && --lost_in_ == 0) lost_ = true;
  }
  void lose_in(int launches) {
    lost_ = launches == 0;
    lost_in_ = launches;
  }
  void fail_in(int allocations) { fails_in_ = allocations > 0 ? allocations + 1 : 0; }  // once more when asked again
  void fragment() { fragmented_ = true; }
  void trim() { fragmented_ = false; }
  int launches() const { return launches_; }
  int allocations() const { return allocations_; }
  std::size_t in_use() const { return in_use_; }
  std::size_t limit() const { return limit_; }
  void limit(std::size_t bytes) { limit_ = bytes; }

 private:
  std::mutex mutex_;
  Pages pages_;
  std::map<void*, Block> blocks_;
  std::size_t in_use_ = 0, limit_ = std::size_t{16} << 30;
  bool broken_ = false, lost_ = false, fragmented_ = false;
  int launches_ = 0, allocations_ = 0, fails_in_ = 0, lost_in_ = -1;
};

Memory& memory() {
  static Memory one;
  return one;
}
std::atomic<std::int64_t> stream_waits{0};
constexpr int kCards = 4;
std::mutex tables;  // replicas on several cards are threads
thread_local int current_card = 0;
EmulatedPool pools[kCards];

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

}  // namespace

cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = kCards;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= kCards) return cudaErrorInvalidDevice;
  current_card = device;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_card;
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
  *event = {stream, stream->clock, stream->copies, stream->waits_for};
  return memory().state();
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->stream) event->stream->flush();
  for (const auto& done : event->waits_for) bertrand::cuda::emulation::add_to_stream(stream, done);
  return memory().state();
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->stream) event->stream->flush();
  return event->done() ? memory().state() : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  // A copy that is still under way stands behind all that was asked for before it.
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
  *data = std::malloc(bytes);
  if (!*data) return cudaErrorMemoryAllocation;
  const std::lock_guard lock(tables);
  pinned()[*data] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFreeHost(void* data) {
  {
    const std::lock_guard lock(tables);
    pinned().erase(data);
  }
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t) { return memory().allocate(data, bytes); }
cudaError_t cudaFreeAsync(void* data, cudaStream_t stream) {
  if (stream) stream->flush();
  return memory().free(data);
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = memory().limit();
  *free = *total - memory().in_use();
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
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
  memory().launched();
  wait_for_stream(stream);
  if (stream) stream->clock += milliseconds;
  return memory().state();
}

void add_to_stream(cudaStream_t stream, Done done) {
  std::erase_if(stream->waits_for, [](const Done& one) { return one->load(); });
  stream->waits_for.push_back(std::move(done));
}

void wait_for_stream(cudaStream_t stream) {
  if (!stream) return;
  stream->flush();
  for (const Done& done : stream->waits_for)
    while (!done->load()) std::this_thread::sleep_for(std::chrono::microseconds(20));
  stream->waits_for.clear();
}

bool reaches(int card, int other) {
  const std::lock_guard lock(tables);
  return card == other || pools[other].open_to.contains(card);
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
void lose_card(int launches) { memory().lose_in(launches); }
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

void set_dynamic_shared_limit(const void* function, std::size_t bytes) {
  const std::lock_guard lock(tables);
  dynamic_shared_limits()[function] = bytes;
}
void check_dynamic_shared(const void* function, std::size_t bytes) {
  const std::lock_guard lock(tables);
  const auto found = dynamic_shared_limits().find(function);
  const std::size_t limit =
      found == dynamic_shared_limits().end() ? std::size_t{48} << 10 : std::min(found->second, std::size_t{227} << 10);
  check(bytes <= limit, "{}: {} bytes of dynamic shared memory, the limit is {}", name_of_function(function), bytes,
        limit);
}

}  // namespace bertrand::cuda::emulation

// For tests of whole programs, which load the emulation as a module.
extern "C" void bertrand_lose_card(int launches) { bertrand::cuda::emulation::lose_card(launches); }
extern "C" int bertrand_launches() { return bertrand::cuda::emulation::counts().launches; }
