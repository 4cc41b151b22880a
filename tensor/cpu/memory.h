// Memory for tensors: freed blocks are kept for the next step, which asks for the same sizes again.
#pragma once
#include <atomic>
#include <cstddef>
#include <map>

#include "tensor/backend.h"
#include "tensor/control_groups.h"

namespace bertrand::cpu {

/// The least that a limit of this process's control group or of one around it leaves.
std::size_t group_left(const ControlGroups& groups = {});

/// Fresh memory costs a page fault per 4 KiB, which for a training step is a tenth of a second. What is in use and what
/// is kept are together at most most_held() (tensor/held_memory.h), but for rounding. Only
/// available() may be called while another thread uses it.
class CachingMemory {
 public:
  CachingMemory() = default;
  ~CachingMemory();
  CachingMemory(const CachingMemory&) = delete;
  CachingMemory& operator=(const CachingMemory&) = delete;

  /// 64-byte aligned. Throws Error(Failure::memory) naming `op`, bytes asked, in use and what the machine had left.
  std::byte* allocate(std::size_t bytes, const char* op);
  void deallocate(std::byte* data, std::size_t bytes);
  MemoryUse use() const { return use_; }
  /// What the machine, the control group and the limit of the process would still give, and what is kept here.
  std::size_t available() const;

 private:
  std::byte* take_small(std::size_t size);
  std::byte* take_range(std::size_t size);
  void give_range(std::byte* data, std::size_t size);
  void release_cached(std::size_t keep);

  std::multimap<std::size_t, std::byte*> small_;  // free blocks by size
  std::map<std::byte*, std::size_t> larger_;      // sizes of small blocks in use that are larger than asked
  std::map<std::byte*, std::size_t> ranges_;      // free memory of large blocks by address: neighbours are one range
  std::atomic<std::size_t> cached_{0};            // bytes in both; another thread may ask what is available
  MemoryUse use_;
};

}  // namespace bertrand::cpu
