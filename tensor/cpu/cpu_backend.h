// Backend and Kernels (tensor/backend.h, kernels.h) on the processor. One file per family of kernels implements its
// members; each is a template over T, the type in memory, and one line picks it; Compute<T> is the type that it
// computes in.
#pragma once
#include <string>

#include "tensor/backend.h"
#include "tensor/cpu/memory.h"
#include "tensor/cpu/thread_pool.h"
#include "tensor/index_check.h"
#include "tensor/update.h"
#include "tensor/workspace.h"

namespace bertrand::cpu {

class CpuBackend final : public Backend, public Kernels {
 public:
  CpuBackend(int threads, std::string kernels) : kernel_set_(std::move(kernels)), pool_(threads) {}

  // this file and backend.cpp
  Device device() const override { return {}; }
  std::string description() const override;
  std::byte* allocate(std::size_t bytes) override { return memory_.allocate(bytes, current_op); }
  void deallocate(std::byte* data, std::size_t bytes) override { memory_.deallocate(data, bytes); }
  MemoryUse memory() const override { return memory_.use(); }
  std::size_t available_memory() const override { return memory_.available(); }
  void synchronize() override {}
  void upload(const void* host, const Tensor& out) override;
  void download(const Tensor& x, void* host) override;
  std::function<void(void* host)> download_later(const Tensor& x) override;
  Kernels* kernels() override { return this; }

  // elementwise.cpp
  void fill(const Tensor& out, double value) override;
  void cast(const Tensor& x, const Tensor& out) override;
  void copy_past_caches(const Tensor& x, const Tensor& out) override;
  void unary(Unary op, const Tensor& x, const Tensor& out) override;
  void unary_backward(Unary op, const Tensor& x, const Tensor& dy, const Tensor& dx,
                      const Tensor& sum_of_rows) override;
  void binary(Binary op, const Tensor& a, const Tensor& b, const Tensor& out) override;
  void scale(const Tensor& x, double factor, const Tensor& out) override;
  void expand(const Tensor& scalar, double factor, const Tensor& out) override;
  void copy_block(const Tensor& x, Dim x_stride, const Tensor& out, Dim out_stride, Dim rows, Dim columns) override;
  void dropout(const Tensor& x, const Dropout& dropout, const Tensor& out) override;

  // reduce.cpp
  void sum(const Tensor& x, double factor, const Tensor& out) override;
  void sum_rows(const Tensor& x, const Tensor& out) override;
  void norm(const Tensor& x, const Tensor& out) override;
  Dim first_non_finite(const Tensor& x) override;

  // gemm.cpp
  void gemm(const Tensor& a, const Tensor& b, const Tensor& out, const Gemm& options) override;
  std::size_t gemm_workspace(const Tensor& a, const Tensor& out, const Gemm& options) const override;

  // softmax.cpp
  void softmax(const Tensor& x, const Tensor& y) override;
  void softmax_backward(const Tensor& y, const Tensor& dy, const Tensor& dx) override;

  // norm.cpp
  void layer_norm(const Tensor& x, const Tensor& residual, const LayerNorm& options, const Tensor& sum, const Tensor& y,
                  const Tensor& statistics) override;
  void layer_norm_backward(const Tensor& sum, const Tensor& statistics, const LayerNorm& options, const Tensor& dy,
                           const Tensor& dsum, const Tensor& dx, const Tensor& dgamma, const Tensor& dbeta) override;

  // embedding.cpp
  void gather(const Tensor& table, const Tensor& rows, const Tensor& out) override;
  void scatter_add(const Tensor& dy, const Tensor& rows, const Tensor& dtable, bool accumulate) override;

  // attention.cpp
  void attention(const Tensor& qkv, const Attention& options, const Tensor& context, const Tensor& log_sum) override;
  void attention_backward(const Tensor& qkv, const Attention& options, const Tensor& context, const Tensor& log_sum,
                          const Tensor& dcontext, const Tensor& dqkv) override;
  std::size_t attention_backward_workspace(const Tensor& qkv, const Attention& options) const override;

  // loss.cpp
  void cross_entropy(const Tensor& logits, const Tensor& labels, double denominator, const Tensor& log_sum,
                     const Tensor& out) override;
  void cross_entropy_backward(const Tensor& logits, const Tensor& labels, double denominator, const Tensor& log_sum,
                              const Tensor& dy, const Tensor& dlogits) override;
  void point_loss(PointLoss loss, const Tensor& x, const Tensor& target, double denominator,
                  const Tensor& out) override;
  void point_loss_backward(PointLoss loss, const Tensor& x, const Tensor& target, double denominator, const Tensor& dy,
                           const Tensor& dx) override;
  void argmax(const Tensor& x, const Tensor& out) override;

  // update.cpp
  void update(const UpdateTensors& tensors, const Update& update, std::span<const UpdateSegment> segments) override;

 private:
  /// Calls body(begin, end) for fixed blocks of [0, count), on all threads.
  template <class Body>
  void parallel(Dim count, Dim block, const Body& body) {
    pool_.run((count + block - 1) / block,
              [&](Dim piece, int) { body(piece * block, std::min(count, (piece + 1) * block)); });
  }
  /// Rows for parallel(): some 16k elements a block, whatever the threads.
  static Dim row_block(Dim columns) { return std::max<Dim>(1, 16384 / std::max<Dim>(1, columns)); }

  template <class T, class Add>
  double sum_of(const Tensor& x, const Add& add);
  template <class V, class G>
  void update_typed(const UpdateTensors& tensors, const Update& update, std::span<const UpdateSegment> segments);
  template <class T>
  struct Product;
  template <class T>
  void multiply_few_rows(const Product<T>& product);
  template <class T>
  void multiply_blocks(const Product<T>& product);
  template <class T>
  void gemm_typed(const Tensor& a, const Tensor& b, const Tensor& out, const Gemm& options);

  std::string kernel_set_;
  CachingMemory memory_;
  ThreadPool pool_;
};

}  // namespace bertrand::cpu
