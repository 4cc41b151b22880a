// The memory of the emulated GPU: a read or write outside an allocation is found.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>

#include "tensor/cuda/emulation/runtime.h"

// Without AddressSanitizer these are not there.
extern "C" {
__attribute__((weak)) void __asan_poison_memory_region(const volatile void* begin, std::size_t bytes);
__attribute__((weak)) void __asan_unpoison_memory_region(const volatile void* begin, std::size_t bytes);
}

namespace bertrand::cuda::emulation {

inline constexpr std::size_t kAlign = 16;                   // what the widest load asks for
inline constexpr int kGuardByte = 0xa5, kFreshByte = 0xff;  // fresh memory is NaN in every floating type

inline std::size_t pages(std::size_t bytes) {
  static const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

/// Pages for device memory, and one after them that no code may touch. Freed pages are kept, untouchable too,
/// since fresh ones cost more than what small kernels do.
class Pages {
 public:
  /// Null if the host has no memory left.
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

/// One allocation of device memory. It ends where its pages end, but for the padding of its alignment, so that a
/// read or write after the padding stops at once. The padding and the bytes before are checked when it is freed.
/// AddressSanitizer stops a read or write of any of them.
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
  /// False if something was written beside it.
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

  /// As on a GPU, every later call reports an error.
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

}  // namespace bertrand::cuda::emulation
