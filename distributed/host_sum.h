// The sum of the addends of processes of one host, in memory that they share. A message would be copied into such
// memory and out of it, and then added: here each process adds what lies there.
//
// The elements are cut into blocks, and a block into slices, one for each process. Three things are done with a block:
//   put   every process copies its addends into the shared memory, but for its own slice
//   add   every process adds up its slice, in the tree of pairwise_tree.h, and puts the sum into the shared memory
//   take  every process copies the sums of the others out of it
// A process puts one block, adds the one before it, and takes the one before that. So it seldom waits, and what it
// works on is in its cache. The memory has room for a few blocks, however long the sum is.
//
// What a process puts is in the cache of its core. A core beside it reads that faster than memory, one of another
// socket several times as slowly. So each process finds out whether it should write past its cache.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "distributed/faster_way.h"
#include "distributed/pairwise_tree.h"
#include "distributed/shared_memory.h"
#include "tensor/backend.h"

namespace bertrand::distributed {

class HostSum {
 public:
  /// Bytes of the memory that `processes` processes share.
  static constexpr std::size_t bytes(int processes) { return static_cast<std::size_t>(processes) * kBytes; }

  /// For process `rank` of `size`, all of which share `memory`, of at least bytes(size). `backend` adds.
  HostSum(std::unique_ptr<SharedMemory> memory, int rank, int size, Backend& backend);
  ~HostSum();
  HostSum(const HostSum&) = delete;
  HostSum& operator=(const HostSum&) = delete;

  /// Returns the processes that are waited for: none when the wait is over.
  using Behind = std::function<std::vector<int>()>;
  /// Returns when the wait is over, or throws.
  using Wait = std::function<void(const Behind&)>;

  /// Writes the sum of all addends into `out`, in each process. `addends` are by rank and alike in all processes, but
  /// only those of this one have values; these are overwritten. When a process calls it, all have returned from the
  /// call before. After a call that threw there is no other: the processes do not count the same blocks any more.
  void sum(const std::vector<std::vector<Addend>>& addends, std::int64_t parts, const Tensor& out, const Wait& wait);

 private:
  static constexpr std::size_t kBytes = std::size_t{2} << 20;  // of each process
  class Room;
  class Call;

  std::unique_ptr<SharedMemory> memory_;
  const int rank_, size_;
  Backend& backend_;
  std::unique_ptr<Room> room_;
  std::uint64_t blocks_ = 0;  // of all calls before this one
  bool broken_ = false;       // a call is under way, or threw
  FasterWay past_caches_;     // 1: past the caches
};

}  // namespace bertrand::distributed
