// The door of the module: the one function that the loader looks up.
#include <fmt/format.h>

#include <algorithm>

#include "tensor/cpu/cpu_backend.h"

namespace bertrand::cpu {

std::string CpuBackend::description() const {
  return fmt::format("cpu, {} kernels, {} thread{}", kernel_set_, pool_.threads(), pool_.threads() == 1 ? "" : "s");
}

void CpuBackend::upload(const void* host, const Tensor& out) {
  std::copy_n(static_cast<const std::byte*>(host), out.bytes(), out.data());
}
void CpuBackend::download(const Tensor& x, void* host) {
  std::copy_n(x.data(), x.bytes(), static_cast<std::byte*>(host));
}
std::function<void(void* host)> CpuBackend::download_later(const Tensor& x) {
  return [bytes = std::vector<std::byte>(x.data(), x.data() + x.bytes())](void* host) {
    std::copy(bytes.begin(), bytes.end(), static_cast<std::byte*>(host));
  };
}

}  // namespace bertrand::cpu

extern "C" __attribute__((visibility("default"))) bertrand::Backend* bertrand_open_cpu(int threads) {
  return new bertrand::cpu::CpuBackend(threads, BERTRAND_KERNELS);
}
