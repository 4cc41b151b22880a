#include "tensor/cuda/emulation/runtime.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "tensor/error.h"

extern "C" {
__attribute__((weak)) void __asan_poison_memory_region(const volatile void* at, std::size_t bytes);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void* at, std::size_t bytes);
}

struct EmulatedStream {};
struct EmulatedEvent {};
struct EmulatedPool {};

namespace {

constexpr std::size_t kGuard = 256;  // bytes before and behind each allocation; also what a card aligns to
constexpr int kGuardByte = 0xa5, kFreshByte = 0xff;  // fresh memory is NaN in every floating type

/// The device's memory: host memory between two guards.
class Memory {
 public:
  cudaError_t allocate(void** data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    if (in_use_ + bytes > limit_) return cudaErrorMemoryAllocation;
    void* raw = nullptr;
    if (posix_memalign(&raw, kGuard, bytes + 2 * kGuard) != 0) return cudaErrorMemoryAllocation;
    auto* const begin = static_cast<std::byte*>(raw);
    std::memset(begin, kGuardByte, kGuard);
    std::memset(begin + kGuard, kFreshByte, bytes);
    std::memset(begin + kGuard + bytes, kGuardByte, kGuard);
    if (__asan_poison_memory_region) {
      __asan_poison_memory_region(begin, kGuard);
      __asan_poison_memory_region(begin + kGuard + bytes, kGuard);
    }
    *data = begin + kGuard;
    sizes_[*data] = bytes;
    in_use_ += bytes;
    return cudaSuccess;
  }

  cudaError_t free(void* data) {
    const std::lock_guard lock(mutex_);
    const auto found = sizes_.find(data);
    if (found == sizes_.end()) return cudaErrorInvalidValue;
    const std::size_t bytes = found->second;
    auto* const begin = static_cast<std::byte*>(data) - kGuard;
    if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(begin, bytes + 2 * kGuard);
    for (std::size_t i = 0; i < kGuard; ++i)
      if (begin[i] != std::byte{kGuardByte} || begin[kGuard + bytes + i] != std::byte{kGuardByte}) broken_ = true;
    in_use_ -= bytes;
    sizes_.erase(found);
    std::free(begin);
    return cudaSuccess;
  }

  /// As a card does: what went wrong is told by every later call.
  cudaError_t state() const { return broken_ ? cudaErrorIllegalAddress : cudaSuccess; }
  std::size_t in_use() const { return in_use_; }
  std::size_t limit() const { return limit_; }
  void limit(std::size_t bytes) { limit_ = bytes; }

 private:
  std::mutex mutex_;
  std::map<void*, std::size_t> sizes_;
  std::size_t in_use_ = 0, limit_ = std::size_t{16} << 30;
  bool broken_ = false;
};

Memory& memory() {
  static Memory one;
  return one;
}
std::atomic<std::int64_t> stream_waits{0};

std::map<const void*, std::size_t>& dynamic_shared_limits() {
  static std::map<const void*, std::size_t> limits;
  return limits;
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 2;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) { return device >= 0 && device < 2 ? cudaSuccess : cudaErrorInvalidDevice; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {"emulated on the processor", memory().limit(), 9, 0, 1};
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
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
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  ++stream_waits;
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
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaMallocHost(void** data, std::size_t bytes) {
  *data = std::malloc(bytes);
  return *data ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaFreeHost(void* data) {
  std::free(data);
  return cudaSuccess;
}
cudaError_t cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t) { return memory().allocate(data, bytes); }
cudaError_t cudaFreeAsync(void* data, cudaStream_t) { return memory().free(data); }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  *total = memory().limit();
  *free = *total - memory().in_use();
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t) {
  std::memmove(to, from, bytes);
  return memory().state();
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  std::memset(to, value, bytes);
  return memory().state();
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  static EmulatedPool one;
  *pool = &one;
  return cudaSuccess;
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) { return cudaSuccess; }
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value) {
  *static_cast<std::uint64_t*>(value) = memory().in_use();  // nothing is kept
  return cudaSuccess;
}

namespace bertrand::cuda::emulation {

void limit_memory(std::size_t bytes) { memory().limit(bytes); }
std::int64_t synchronizations() { return stream_waits; }

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

void set_dynamic_shared_limit(const void* function, std::size_t bytes) { dynamic_shared_limits()[function] = bytes; }
void check_dynamic_shared(const void* function, std::size_t bytes) {
  const auto found = dynamic_shared_limits().find(function);
  const std::size_t limit = found == dynamic_shared_limits().end() ? std::size_t{48} << 10 : std::min(found->second, std::size_t{227} << 10);
  check(bytes <= limit, "{}: {} bytes of dynamic shared memory, the limit is {}", name_of_function(function), bytes, limit);
}

}  // namespace bertrand::cuda::emulation
