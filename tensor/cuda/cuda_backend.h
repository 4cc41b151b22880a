// Backend and Kernels (tensor/backend.h, kernels.h) on a GPU. One file per family of kernels implements its members,
// under the name that the family has in tensor/cpu; each is a template over f32, f64, bf16 and f16, and one line picks
// the type.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tensor/backends.h"
#include "tensor/cuda/index_check.h"
#include "tensor/cuda/memory.h"
#include "tensor/cuda/numbers.h"
#include "tensor/random.h"
#include "tensor/update.h"
#include "tensor/workspace.h"

namespace bertrand::cuda {

class Products;
class UpdatePlan;

/// What a kernel needs of a Dropout; the empty one keeps everything.
struct DropoutArguments {
  std::uint32_t threshold = 0;
  PhiloxKeys keys{};  ///< where every instruction may read them: a kernel's arguments are constants
  const std::int64_t* row_keys = nullptr;
  double scale = 1;
};

class CudaBackend final : public Backend, public Kernels {
 public:
  explicit CudaBackend(const CudaOptions& options);
  ~CudaBackend() override;

  // backend.cu
  Device device() const override { return {Device::Kind::cuda, index_}; }
  std::string description() const override { return description_; }
  std::byte* allocate(std::size_t bytes) override;
  void deallocate(std::byte* data, std::size_t bytes) override;
  MemoryUse memory() const override { return memory_->use(); }
  std::size_t available_memory() const override;
  void synchronize() override;
  /// The stream everything runs in; makes this the calling thread's GPU.
  cudaStream_t stream();
  /// Makes this the calling thread's GPU and throws nothing: for destructors, which may run on any thread.
  void select() const;
  void upload(const void* host, const Tensor& out) override;
  void download(const Tensor& x, void* host) override;
  std::function<void(void* host)> download_later(const Tensor& x) override;
  std::unique_ptr<CapturedWork> capture(const std::function<void()>& work) override;
  Kernels* kernels() override { return this; }

  // elementwise.cu
  void fill(const Tensor& out, double value) override;
  void cast(const Tensor& x, const Tensor& out) override;
  void unary(Unary op, const Tensor& x, const Tensor& out) override;
  void unary_backward(Unary op, const Tensor& x, const Tensor& dy, const Tensor& dx,
                      const Tensor& sum_of_rows) override;
  void binary(Binary op, const Tensor& a, const Tensor& b, const Tensor& out) override;
  void scale(const Tensor& x, double factor, const Tensor& out) override;
  void expand(const Tensor& scalar, double factor, const Tensor& out) override;
  void copy_block(const Tensor& x, Dim x_stride, const Tensor& out, Dim out_stride, Dim rows, Dim columns) override;
  void dropout(const Tensor& x, const Dropout& dropout, const Tensor& out) override;

  // reduce.cu
  void sum(const Tensor& x, double factor, const Tensor& out) override;
  void sum_rows(const Tensor& x, const Tensor& out) override;
  void norm(const Tensor& x, const Tensor& out) override;
  Dim first_non_finite(const Tensor& x) override;

  // gemm.cu
  void gemm(const Tensor& a, const Tensor& b, const Tensor& out, const Gemm& options) override;

  // softmax.cu
  void softmax(const Tensor& x, const Tensor& y) override;
  void softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) override;

  // norm.cu
  void layer_norm(const Tensor& x, const Tensor& residual, const LayerNorm& options, const Tensor& sum, const Tensor& y,
                  const Tensor& statistics) override;
  void layer_norm_backward(const Tensor& sum, const Tensor& statistics, const LayerNorm& options, const Tensor& dy,
                           const Tensor& dsum, const Tensor& dx, const Tensor& dgamma, const Tensor& dbeta) override;

  // embedding.cu
  void gather(const Tensor& table, const Tensor& rows, const Tensor& out) override;
  void scatter_add(const Tensor& dy, const Tensor& rows, const Tensor& dtable, bool accumulate) override;

  // attention.cu
  void attention(const Tensor& qkv, const Attention& options, const Tensor& context, const Tensor& log_sum) override;
  void attention_backward(const Tensor& qkv, const Attention& options, const Tensor& context, const Tensor& log_sum,
                          const Tensor& dcontext, const Tensor& dqkv) override;

  // loss.cu
  void cross_entropy(const Tensor& logits, const Tensor& labels, double denominator, const Tensor& log_sum,
                     const Tensor& out) override;
  void cross_entropy_backward(const Tensor& logits, const Tensor& labels, double denominator, const Tensor& log_sum,
                              const Tensor& dy, const Tensor& dlogits) override;
  void point_loss(PointLoss loss, const Tensor& x, const Tensor& target, double denominator,
                  const Tensor& out) override;
  void point_loss_backward(PointLoss loss, const Tensor& x, const Tensor& target, double denominator, const Tensor& dy,
                           const Tensor& dx) override;
  void argmax(const Tensor& x, const Tensor& out) override;

  // update.cu
  void update(const UpdateTensors& tensors, const Update& update, std::span<const UpdateSegment> segments) override;

  /// Copies to a workspace; what `host` points to may go at once.
  void copy_to_gpu(const void* host, const Workspace& to, std::size_t bytes) {
    staging_.upload(host, to.as<std::byte>(), bytes, stream_for("an upload"));
  }

 private:
  DropoutArguments arguments(const Dropout& dropout) const;
  /// The stream, for copies between it and the host, and to wait for it. Throws Error(Failure::bug) while
  /// work is captured.
  cudaStream_t stream_for(const char* what);
  /// What a kernel needs to report a number that is out of range.
  IndexCheck reports(const IndexKind& kind) const { return {&kind, fault_}; }
  /// Throws what a kernel reported, if one did, and forgets it.
  void refuse_reported(const IndexFault& fault);
  /// *out = factor · Σ values, or its root, by one block in a fixed order.
  template <class T>
  void finish_sum(const double* values, Dim count, double factor, bool root, T* out);

  int index_;
  bool tf32_;
  std::string description_;
  Stream stream_;
  std::unique_ptr<DeviceMemory> memory_;
  std::weak_ptr<const Workspace> block_;  // that the next captured work may share
  Staging staging_;
  Landing landing_;
  IndexFault* fault_ = nullptr;  // on the device
  std::unique_ptr<Products> products_;
  std::unique_ptr<UpdatePlan> update_plan_;
};

/// The type of sums, statistics and losses of elements of T: what they are computed in.
template <class T>
Compute<T>* in_compute(const Tensor& x) {
  check(x.dtype() == dtype_of<Compute<T>>(), "cuda: sums and statistics of {} are {}, expected a tensor of it, got {}",
        name_of(dtype_of<T>()), name_of(dtype_of<Compute<T>>()), name_of(x.dtype()));
  return x.as<Compute<T>>();
}

}  // namespace bertrand::cuda
