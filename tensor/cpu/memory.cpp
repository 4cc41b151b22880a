#include "tensor/cpu/memory.h"

#include <sanitizer/asan_interface.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace bertrand::cpu {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kLarge = std::size_t{1} << 20;
constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max() / 2;  // no limit

std::size_t round_up(std::size_t n, std::size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// Small blocks in multiples of 64 bytes; large ones in eighths of a power of two, because batches of real text differ
/// a little from step to step and should find what the last one left. What is never touched takes no memory.
std::size_t rounded(std::size_t bytes) {
  if (bytes < kLarge) return round_up(std::max<std::size_t>(bytes, 1), 64);
  return round_up(bytes, std::bit_floor(bytes) / 8);
}

/// What a tensor counts for: not what rounding adds, which is never touched.
std::size_t counted(std::size_t bytes) { return round_up(std::max<std::size_t>(bytes, 1), 64); }

std::byte* from_system(std::size_t bytes) {
  if (bytes < kLarge) return static_cast<std::byte*>(std::aligned_alloc(64, bytes));
  // Aligned for huge pages, which spare the processor most look-ups of addresses; what is over is given back.
  const std::size_t asked = bytes + kHugePage;
  void* raw = mmap(nullptr, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  const auto begin = reinterpret_cast<std::uintptr_t>(raw);
  const std::uintptr_t aligned = round_up(begin, kHugePage);
  if (aligned > begin) munmap(raw, aligned - begin);
  if (const std::size_t over = begin + asked - (aligned + bytes); over > 0)
    munmap(reinterpret_cast<void*>(aligned + bytes), over);
  madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
  return reinterpret_cast<std::byte*>(aligned);
}

void to_system(std::byte* data, std::size_t bytes) {
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
  if (bytes < kLarge) std::free(data);
  else munmap(data, bytes);
}

/// The number behind `key` in a file of lines, or `otherwise` where there is none.
std::size_t number_in(const char* file, const std::string& key, std::size_t otherwise) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::size_t number = 0;
    if (line.starts_with(key) && std::istringstream(line.substr(key.size())) >> number) return number;
  }
  return otherwise;
}

/// What is left of a limit.
std::size_t left(std::size_t limit, std::size_t used) { return limit == kMost ? kMost : limit - std::min(limit, used); }

std::size_t machine_left() {
  const std::size_t kibibytes = number_in("/proc/meminfo", "MemAvailable:", kMost);
  return kibibytes == kMost ? kMost : kibibytes << 10;
}

/// Of the control group, which counts files in the cache that it would give up.
std::size_t group_left() {
  const std::size_t used = number_in("/sys/fs/cgroup/memory.current", "", 0);
  const std::size_t files = number_in("/sys/fs/cgroup/memory.stat", "inactive_file ", 0);
  return left(number_in("/sys/fs/cgroup/memory.max", "", kMost), used - std::min(used, files));
}

std::size_t address_space_left() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMost;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return left(limit.rlim_cur, number_in("/proc/self/statm", "", 0) * page);
}

}  // namespace

CachingMemory::~CachingMemory() { release_cached(0); }

std::byte* CachingMemory::allocate(std::size_t bytes, const char* op) {
  std::size_t size = rounded(bytes);
  std::byte* data = nullptr;
  // A cached block may be a quarter larger than asked.
  if (const auto found = free_.lower_bound(size); found != free_.end() && found->first <= size + size / 4) {
    data = found->second;
    cached_ -= found->first;
    if (found->first != size) taken_[data] = found->first;
    size = found->first;
    free_.erase(found);
  } else {
    // Sizes have changed: what nobody fits goes back, as far as all we hold exceeds what was once in use.
    if (size >= kLarge) release_cached(std::max(use_.in_use / 2, use_.peak - std::min(use_.peak, use_.in_use + size)));
    data = from_system(size);
    if (!data) {
      release_cached(0);
      data = from_system(size);
    }
    if (!data)
      fail(Failure::memory, "out of memory: {}: needed {} bytes, in use {} bytes of {}", op, bytes, use_.in_use,
           use_.in_use + available());
  }
  use_.in_use += counted(bytes);
  use_.peak = std::max(use_.peak, use_.in_use);
  // A build with AddressSanitizer stops whoever reads what rounding adds, or what was given back. Else these are
  // nothing.
  ASAN_POISON_MEMORY_REGION(data, size);
  ASAN_UNPOISON_MEMORY_REGION(data, bytes);
  return data;
}

void CachingMemory::deallocate(std::byte* data, std::size_t bytes) {
  std::size_t size = rounded(bytes);
  if (const auto larger = taken_.find(data); larger != taken_.end()) {
    size = larger->second;
    taken_.erase(larger);
  }
  ASAN_POISON_MEMORY_REGION(data, size);
  use_.in_use -= counted(bytes);
  cached_ += size;
  free_.emplace(size, data);
}

std::size_t CachingMemory::available() const {
  return cached_ + std::min({machine_left(), group_left(), address_space_left()});
}

/// Gives blocks back, largest first, until at most `keep` bytes stay.
void CachingMemory::release_cached(std::size_t keep) {
  while (cached_ > keep && !free_.empty()) {
    const auto largest = std::prev(free_.end());
    to_system(largest->second, largest->first);
    cached_ -= largest->first;
    free_.erase(largest);
  }
}

}  // namespace bertrand::cpu
