// Memory of the GPU, in the order of one stream, and copies to it from the host.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "tensor/backend.h"
#include "tensor/cuda/handles.h"

namespace bertrand::cuda {

/// Memory from the driver's stream-ordered pool, which keeps what it has: the next request gets freed memory.
class DeviceMemory {
 public:
  DeviceMemory(int device, cudaStream_t stream);
  std::byte* allocate(std::size_t bytes, const char* op);
  void deallocate(std::byte* data, std::size_t bytes);
  MemoryUse use() const { return use_; }
  std::size_t available() const;  ///< free on the GPU, and what the pool keeps

 private:
  cudaStream_t stream_;
  cudaMemPool_t pool_{};
  MemoryUse use_;
};

/// Copies from the host without waiting for the GPU: through pinned buffers that take turns. A batch is about ten
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
  std::array<std::unique_ptr<Buffer>, 32> buffers_;
  std::size_t next_ = 0;
};

/// Copies of a few numbers to the host; the host waits for each by itself.
class Landing {
 public:
  std::function<void(void* host)> download(const std::byte* device, std::size_t bytes, cudaStream_t stream);

 private:
  static constexpr std::size_t kBytes = 1024;
  struct Buffer {
    Pinned memory{kBytes};
    Event copied;
  };
  std::vector<std::shared_ptr<Buffer>> buffers_;  // free if no copy holds it
};

}  // namespace bertrand::cuda
