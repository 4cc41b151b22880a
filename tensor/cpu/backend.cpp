// The door of the module: the one function that the loader looks up.
#include <fmt/format.h>

#include "tensor/cpu/cpu_backend.h"

namespace bertrand::cpu {

std::string CpuBackend::description() const {
  return fmt::format("cpu, {} kernels, {} thread{}", kernels_, pool_.threads(), pool_.threads() == 1 ? "" : "s");
}

void CpuBackend::upload(const void* host, const Tensor& out) { std::memcpy(out.data(), host, out.bytes()); }
void CpuBackend::download(const Tensor& x, void* host) { std::memcpy(host, x.data(), x.bytes()); }
std::function<void(void* host)> CpuBackend::download_later(const Tensor& x) {
  return [bytes = std::vector<std::byte>(x.data(), x.data() + x.bytes())](void* host) {
    std::memcpy(host, bytes.data(), bytes.size());
  };
}

}  // namespace bertrand::cpu

extern "C" __attribute__((visibility("default"))) bertrand::Backend* bertrand_open_cpu(int threads) {
  return new bertrand::cpu::CpuBackend(threads, BERTRAND_KERNELS);
}
