// A device that computes nothing and counts memory: what a program would take on another one, without taking it.
#pragma once
#include <algorithm>

#include "tensor/backend.h"

namespace bertrand {

/// Stands in for `device`, which must outlive it. Tensors have no memory; what is read of them is 0.
class DryRun final : public Backend {
 public:
  explicit DryRun(const Backend& device) : device_(device) {}

  Device device() const override { return device_.device(); }
  std::string description() const override { return "a dry run of " + device_.description(); }
  std::byte* allocate(std::size_t bytes) override {
    need(counted(bytes));
    use_.in_use += counted(bytes);
    return nullptr;
  }
  void deallocate(std::byte*, std::size_t bytes) override { use_.in_use -= counted(bytes); }
  MemoryUse memory() const override { return use_; }
  std::size_t available_memory() const override { return device_.available_memory(); }
  void synchronize() override {}
  void upload(const void*, const Tensor&) override {}
  void download(const Tensor& x, void* host) override {
    std::fill_n(static_cast<std::byte*>(host), x.bytes(), std::byte{0});
  }
  std::function<void(void* host)> download_later(const Tensor& x) override {
    return [this, x](void* host) { download(x, host); };
  }

  void fill(const Tensor&, double) override {}
  void cast(const Tensor&, const Tensor&) override {}
  void unary(Unary, const Tensor&, const Tensor&) override {}
  void unary_backward(Unary, const Tensor&, const Tensor&, const Tensor&) override {}
  void binary(Binary, const Tensor&, const Tensor&, const Tensor&) override {}
  void scale(const Tensor&, double, const Tensor&) override {}
  void expand(const Tensor&, double, const Tensor&) override {}
  void copy_block(const Tensor&, Dim, const Tensor&, Dim, Dim, Dim) override {}
  void dropout(const Tensor&, const Dropout&, const Tensor&) override {}
  void sum(const Tensor&, double, const Tensor&) override {}
  void sum_rows(const Tensor&, const Tensor&) override {}
  void norm(const Tensor&, const Tensor&) override {}
  Dim first_non_finite(const Tensor&) override { return -1; }
  void gemm(const Tensor& a, const Tensor&, const Tensor& out, const Gemm& options) override {
    need(device_.gemm_workspace(a, out, options));
  }
  void softmax(const Tensor&, const Tensor&) override {}
  void softmax_backward(const Tensor&, const Tensor&, const Tensor&) override {}
  void layer_norm(const Tensor&, const Tensor&, const LayerNorm&, const Tensor&, const Tensor&,
                  const Tensor&) override {}
  void layer_norm_backward(const Tensor&, const Tensor&, const LayerNorm&, const Tensor&, const Tensor&, const Tensor&,
                           const Tensor&, const Tensor&) override {}
  void gather(const Tensor&, const Tensor&, const Tensor&) override {}
  void scatter_add(const Tensor&, const Tensor&, const Tensor&, bool) override {}
  void attention(const Tensor&, const Attention&, const Tensor&, const Tensor&) override {}
  void attention_backward(const Tensor& qkv, const Attention& options, const Tensor&, const Tensor&, const Tensor&,
                          const Tensor&) override {
    need(device_.attention_backward_workspace(qkv, options));
  }
  void cross_entropy(const Tensor&, const Tensor&, double, const Tensor&, const Tensor&) override {}
  void cross_entropy_backward(const Tensor&, const Tensor&, double, const Tensor&, const Tensor&,
                              const Tensor&) override {}
  void point_loss(PointLoss, const Tensor&, const Tensor&, double, const Tensor&) override {}
  void point_loss_backward(PointLoss, const Tensor&, const Tensor&, double, const Tensor&, const Tensor&) override {}
  void argmax(const Tensor&, const Tensor&) override {}
  void update(const UpdateTensors&, const Update&, std::span<const UpdateSegment>) override {}

 private:
  /// Devices give out memory in pieces of 64 bytes at least.
  static std::size_t counted(std::size_t bytes) { return (std::max<std::size_t>(bytes, 1) + 63) / 64 * 64; }
  /// So much beside what is in use.
  void need(std::size_t bytes) { use_.peak = std::max(use_.peak, use_.in_use + bytes); }

  const Backend& device_;
  MemoryUse use_;
};

}  // namespace bertrand
