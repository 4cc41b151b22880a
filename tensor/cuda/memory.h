// Memory of the GPU, in the order of one stream, and copies to it from the host.
#pragma once
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "tensor/backend.h"
#include "tensor/cuda/handles.h"

namespace bertrand::cuda {

/// Places within one block of memory, each time the same ones for the same requests.
class Places {
 public:
  std::size_t take(std::size_t bytes);  ///< the first byte of the first gap that is wide enough
  void give_back(std::size_t first) { taken_.erase(first); }
  std::size_t most() const { return most_; }  ///< the end of the last place that was ever taken

 private:
  std::map<std::size_t, std::size_t> taken_;  // first byte → end
  std::size_t most_ = 0;
};

/// Memory from the driver's stream-ordered pool, which keeps what it has: the next request gets freed memory.
class DeviceMemory {
 public:
  DeviceMemory(int device, cudaStream_t stream);
  std::byte* allocate(std::size_t bytes, const char* op);
  void deallocate(std::byte* data, std::size_t bytes);

  /// The size of a block that has room for all that `work` takes while it runs.
  std::size_t block_for(const std::function<void()>& work);
  /// Meanwhile `work` takes memory from a block of so many bytes, and nothing is taken from the pool or given back to
  /// it. Throws Error(Failure::memory) if the block has no room.
  void run_within(std::byte* block, std::size_t bytes, const std::function<void()>& work);
  /// Whether run_within() is under way.
  bool is_within() const { return block_ != nullptr; }
  MemoryUse use() const { return use_; }
  std::size_t available() const;  ///< free on the GPU, and what the pool keeps

 private:
  std::byte* take(std::size_t bytes, const char* op);
  void run_with_places(const std::function<void()>& work);

  cudaStream_t stream_;
  cudaMemPool_t pool_{};
  MemoryUse use_;
  // While work runs for which places are kept:
  std::optional<Places> places_;
  std::map<const std::byte*, std::size_t> place_of_;
  std::byte* block_ = nullptr;  // that they are in, if there is one already
  std::size_t block_bytes_ = 0;
  std::vector<std::pair<std::byte*, std::size_t>> freed_;  // meanwhile, but not from the block
};

// cudaMallocHost may wait for every GPU of the process: for a kernel of NCCL too that waits for a replica, whose thread
// may be the caller. So all pinned memory is there before the first sum.

/// Copies from the host without waiting for the GPU: through pinned buffers that take turns. A batch is some five
/// copies, so there are buffers for the batches of a few steps. A host that is further ahead waits.
class Staging {
 public:
  void upload(const void* host, std::byte* device, std::size_t bytes, cudaStream_t stream);

 private:
  static constexpr std::size_t kBytes = std::size_t{1} << 18;
  struct Buffer {
    Pinned memory{kBytes};
    Event copied;
  };
  std::array<Buffer, 32> buffers_;
  std::size_t next_ = 0;
};

/// Copies of a few numbers to the host; the host waits for each by itself.
class Landing {
 public:
  Landing();
  std::function<void(void* host)> download(const std::byte* device, std::size_t bytes, cudaStream_t stream);

 private:
  static constexpr std::size_t kBytes = 1024;
  struct Buffer {
    Pinned memory{kBytes};
    Event copied;
  };
  std::array<std::shared_ptr<Buffer>, 16> buffers_;  // free if no copy holds it; two steps under way hold eight
};

}  // namespace bertrand::cuda
