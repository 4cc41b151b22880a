#include "tensor/cpu/memory.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "tensor/held_memory.h"

namespace bertrand::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLarge = std::size_t{32} << 10;
constexpr std::size_t kSmallest = 64;
/// Of whole pages, as the system takes memory back in nothing less.
const std::size_t kPiece = std::max(std::size_t{4} << 10, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 2;  // no limit

std::size_t round_up(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// Large blocks are cut from ranges, which pieces keep from being cut into slivers.
std::size_t rounded(std::size_t bytes) {
  return round_up(std::max<std::size_t>(bytes, 1), bytes < kLarge ? kSmallest : kPiece);
}

std::byte* from_system(std::size_t bytes) {
  if (bytes < kLarge) return static_cast<std::byte*>(std::aligned_alloc(64, bytes));
  // Aligned for huge pages, which spare the processor most look-ups of addresses; what is over is given back.
  const std::size_t asked = bytes + kHugePage;
  void* raw = mmap(nullptr, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(raw);
  const std::size_t before = round_up(begin, kHugePage) - begin;
  std::byte* const aligned = static_cast<std::byte*>(raw) + before;
  munmap(raw, before);  // does nothing if that is 0
  munmap(aligned + bytes, asked - before - bytes);
  madvise(aligned, bytes, MADV_HUGEPAGE);  // for speed alone: other pages do as well
  return aligned;
}

void free_small(std::byte* data, std::size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
  std::free(data);
}

void unmap(std::byte* data, std::size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
  munmap(data, bytes);
}

/// The number after `key` in a file of lines, or `otherwise` if there is none.
std::size_t number_in(const std::filesystem::path& file, const std::string& key, std::size_t otherwise) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::size_t number = 0;
    if (line.starts_with(key) && std::istringstream(line.substr(key.size())) >> number) return number;
  }
  return otherwise;
}

/// What is left of a limit.
std::size_t left(std::size_t limit, std::size_t used) { return limit - std::min(limit, used); }

std::size_t machine_left() {
  return number_in("/proc/meminfo", "MemAvailable:", kMost >> 10) << 10;  // in KiB
}

/// What is left of a control group's own limit. It counts cached files as used, although it would give them up.
std::size_t left_of_group(const std::filesystem::path& group) {
  const auto number = [&](const char* file, const char* key, std::size_t otherwise) {
    return number_in(group / file, key, otherwise);
  };
  // Of version 2, or of version 1.
  const std::size_t limit = number("memory.max", "", number("memory.limit_in_bytes", "", kMost));
  const std::size_t used = number("memory.current", "", number("memory.usage_in_bytes", "", 0));
  const std::size_t files = number("memory.stat", "total_inactive_file ", number("memory.stat", "inactive_file ", 0));
  return left(limit, used - std::min(used, files));
}

std::size_t address_space_left() {
  rlimit limit{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};  // if the system does not say
  getrlimit(RLIMIT_AS, &limit);
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return left(limit.rlim_cur, number_in("/proc/self/statm", "", 0) * page);
}

}  // namespace

std::size_t group_left(const ControlGroups& groups) {
  std::size_t least = kMost;
  for_each_control_group(groups, "memory",
                         [&](const std::filesystem::path& group) { least = std::min(least, left_of_group(group)); });
  return least;
}

CachingMemory::~CachingMemory() { release_cached(0); }

std::byte* CachingMemory::allocate(std::size_t bytes, const char* op) {
  const std::size_t size = rounded(bytes);
  const bool large = size >= kLarge;
  std::byte* data = large ? take_range(size) : take_small(size);
  if (!data) {
    // No free block fits, so the system is asked, for whole huge pages if it has them. First so much of the free memory
    // goes back to it that, with the new block, no more than most_held() is held.
    std::size_t chunk = large ? round_up(size, kHugePage) : size;
    release_cached(most_held(use_.peak) - std::min(most_held(use_.peak), use_.in_use + chunk));
    data = from_system(chunk);
    if (!data) {
      release_cached(0);
      chunk = size;
      data = from_system(chunk);
    }
    if (data && large) {
      ASAN_POISON_MEMORY_REGION(data, chunk);
      cached_ += chunk;
      give_range(data, chunk);
      data = take_range(size);
    }
    if (!data)
      fail(Failure::memory, "out of memory: {}: needed {} bytes, in use {} bytes of {}", op, bytes, use_.in_use,
           use_.in_use + available());
  }
  use_.in_use += counted_bytes(bytes);
  use_.peak = std::max(use_.peak, use_.in_use);
  // A build with AddressSanitizer stops a read of what rounding adds, or of what was given back. Other builds do
  // nothing here.
  ASAN_POISON_MEMORY_REGION(data, size);
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
  return data;
}

void CachingMemory::deallocate(std::byte* data, std::size_t bytes) {
  std::size_t size = rounded(bytes);
  if (const auto larger = larger_.extract(data)) size = larger.mapped();
  ASAN_POISON_MEMORY_REGION(data, size);
  use_.in_use -= counted_bytes(bytes);
  cached_ += size;
  if (rounded(bytes) < kLarge) small_.emplace(size, data);
  else give_range(data, size);
}

std::size_t CachingMemory::available() const {
  return cached_ + std::min({machine_left(), group_left(), address_space_left()});
}

/// A free small block, which may be a quarter larger than asked; null if there is none.
std::byte* CachingMemory::take_small(std::size_t size) {
  const auto found = small_.lower_bound(size);
  if (found == small_.end() || found->first > size + size / 4) return nullptr;
  std::byte* data = found->second;
  cached_ -= found->first;
  if (found->first != size) larger_[data] = found->first;
  small_.erase(found);
  return data;
}

/// The end of the smallest range that has `size` bytes; null if there is none.
std::byte* CachingMemory::take_range(std::size_t size) {
  auto best = ranges_.end();
  for (auto range = ranges_.begin(); range != ranges_.end(); ++range)
    if (range->second >= size && (best == ranges_.end() || range->second < best->second)) best = range;
  if (best == ranges_.end()) return nullptr;
  cached_ -= size;
  best->second -= size;
  std::byte* data = best->first + best->second;
  if (best->second == 0) ranges_.erase(best);
  return data;
}

void CachingMemory::give_range(std::byte* data, std::size_t size) {
  const auto next = ranges_.lower_bound(data);
  if (next != ranges_.end() && next->first == data + size) {
    size += next->second;
    ranges_.erase(next);
  }
  const auto after = ranges_.lower_bound(data);
  if (after != ranges_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == data) {
      before->second += size;
      return;
    }
  }
  ranges_.emplace(data, size);
}

/// Gives memory back until at most `keep` bytes stay: of the largest range as much as it takes, and small blocks last.
void CachingMemory::release_cached(std::size_t keep) {
  while (cached_ > keep && !ranges_.empty()) {
    const auto largest = std::ranges::max_element(ranges_, {}, &std::pair<std::byte* const, std::size_t>::second);
    const std::size_t size = std::min(largest->second, round_up(cached_ - keep, kPiece));
    largest->second -= size;
    cached_ -= size;
    unmap(largest->first + largest->second, size);
    if (largest->second == 0) ranges_.erase(largest);
  }
  while (cached_ > keep && !small_.empty()) {
    const auto largest = std::prev(small_.end());
    free_small(largest->second, largest->first);
    cached_ -= largest->first;
    small_.erase(largest);
  }
}

}  // namespace bertrand::cpu
