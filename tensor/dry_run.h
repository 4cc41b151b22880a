// A device that computes nothing and counts memory: what a program would take on another one, without taking it.
#pragma once
#include <algorithm>

#include "tensor/backend.h"
#include "tensor/held_memory.h"

namespace bertrand {

/// Stands in for `device`, which must outlive it. Tensors have no memory; what is read of them is 0.
class DryRun : public Backend {
 public:
  explicit DryRun(Backend& device) : device_(device) {}

  Device device() const override { return device_.device(); }
  std::string description() const override { return "a dry run of " + device_.description(); }
  std::byte* allocate(std::size_t bytes) override {
    need(counted_bytes(bytes));
    use_.in_use += counted_bytes(bytes);
    return nullptr;
  }
  void deallocate(std::byte*, std::size_t bytes) override { use_.in_use -= counted_bytes(bytes); }
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

  Kernels* kernels() override { return nullptr; }
  void plan_scratch(const std::function<std::size_t(const Kernels&)>& bytes) override {
    if (const Kernels* planned = device_.kernels()) need(bytes(*planned));
  }

 private:
  /// So much beside what is in use.
  void need(std::size_t bytes) { use_.peak = std::max(use_.peak, use_.in_use + bytes); }

  Backend& device_;
  MemoryUse use_;
};

}  // namespace bertrand
