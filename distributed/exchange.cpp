#include "distributed/exchange.h"

#include <chrono>
#include <future>
#include <vector>

namespace bertrand::distributed {

void sum(const Replica& self, std::span<double> values) {
  if (self.size() == 1) return;
  const Tensor x = ops::from_host(std::span<const double>(values), {static_cast<Dim>(values.size())}, self.backend());
  const Addend mine{.first = self.rank(), .count = 1, .values = x};
  self.collective().all_reduce_sum({&mine, 1}, self.size(), x);
  self.backend().download(x, values.data());
}

double sum(const Replica& self, double value) {
  sum(self, {&value, 1});
  return value;
}

bool any(const Replica& self, bool yes) { return sum(self, yes ? 1 : 0) > 0; }

void work_apart(Collective& collective, Backend& backend, const std::function<void()>& work) {
  std::future<void> working = std::async(std::launch::async, work);
  for (double at_work = 1; at_work > 0;) {
    const bool ended =
        !working.valid() || working.wait_for(std::chrono::milliseconds(250)) == std::future_status::ready;
    if (ended && working.valid()) working.get();
    const Tensor x = ops::full({1}, ended ? 0 : 1, DType::f64, backend);
    const Addend mine{.first = collective.rank(), .count = 1, .values = x};
    collective.all_reduce_sum({&mine, 1}, collective.size(), x);
    at_work = ops::item(x);
  }
}

std::string broadcast(Collective& collective, Backend& backend, const std::string& text, int root) {
  if (collective.size() == 1) return text;
  const Tensor size = ops::full({1}, static_cast<double>(text.size()), DType::f64, backend);
  collective.broadcast(size, root);
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  bytes.resize(static_cast<std::size_t>(ops::item(size)));
  if (bytes.empty()) return {};
  const Tensor tensor = ops::from_host(bytes, {static_cast<Dim>(bytes.size())}, backend);
  collective.broadcast(tensor, root);
  bytes = ops::to_host<std::uint8_t>(tensor);
  return {bytes.begin(), bytes.end()};
}

}  // namespace bertrand::distributed
