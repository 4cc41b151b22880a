// Work that is asked for again at once: a CUDA graph. Its kernels have fixed arguments, so what they work in keeps its
// addresses. The graph allocates nothing: its memory is a block of the pool, which is counted like all other.
#include <algorithm>

#include "tensor/cuda/cuda_backend.h"

namespace bertrand::cuda {
namespace {

class CapturedGraph final : public CapturedWork {
 public:
  CapturedGraph(CudaBackend& backend, cudaGraph_t graph, std::shared_ptr<const Workspace> block)
      : backend_(backend), stream_(backend.stream()), block_(std::move(block)), graph_(graph) {}
  /// Waits: what is under way must not lose its graph. It throws nothing, also on a GPU that is lost.
  ~CapturedGraph() override {
    backend_.select();
    cudaStreamSynchronize(stream_);
  }
  void run() override { graph_.launch(backend_.stream()); }

 private:
  CudaBackend& backend_;
  const cudaStream_t stream_;
  std::shared_ptr<const Workspace> block_;
  LaunchableGraph graph_;
};

}  // namespace

std::unique_ptr<CapturedWork> CudaBackend::capture(const std::function<void()>& work) {
  // This run also loads the kernels and decides how products are multiplied, which no capture may do.
  const std::size_t bytes = memory_->block_for(work);
  // All captured work runs one after the other in one stream, so it can share a block. What needs more gets twice as
  // much as the last one has: so there are few blocks.
  std::shared_ptr<const Workspace> block = block_.lock();
  if (!block || block->bytes() < bytes) {
    current_op = "capture";
    block_ = block = std::make_shared<Workspace>(*this, std::max(bytes, block ? 2 * block->bytes() : 0));
  }
  std::unique_ptr<CapturedWork> captured;
  memory_->run_within(block->as<std::byte>(), block->bytes(), [&] {
    Capture capture(stream());
    work();
    captured = std::make_unique<CapturedGraph>(*this, capture.end(), block);
  });
  return captured;
}

}  // namespace bertrand::cuda
