#include "distributed/exchange.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <future>
#include <vector>

#include "io/error.h"
#include "io/signals.h"
#include "tensor/backends.h"

namespace bertrand::distributed {

namespace {

void sum_over(Collective& collective, Backend& backend, std::span<double> values) {
  const Tensor x = ops::from_host(std::span<const double>(values), {static_cast<Dim>(values.size())}, backend);
  const Addend mine{.first = collective.rank(), .count = 1, .values = x};
  collective.all_reduce_sum({&mine, 1}, collective.size(), x);
  backend.download(x, values.data());
}

}  // namespace

void sum(const Replica& self, std::span<double> values) {
  if (self.size() > 1) sum_over(self.collective(), self.backend(), values);  // for speed alone: that of one is itself
}

double sum(const Replica& self, double value) {
  sum(self, {&value, 1});
  return value;
}

namespace {

/// The interruption that ended the work, null if it is done. Throws what else it throws.
std::exception_ptr interruption_of(std::future<void>& working) {
  try {
    working.get();
  } catch (const std::exception& error) {
    if (!is_interruption(error)) throw;
    return std::current_exception();
  }
  return {};
}

}  // namespace

bool any(const Replica& self, bool yes) { return sum(self, yes ? 1 : 0) > 0; }

bool work_on_share(const Replica& self, std::int64_t items, std::int64_t part,
                   const std::function<void(std::int64_t first, std::int64_t end)>& work) {
  const Share mine = share_of(items, self.rank(), self.size()), longest = share_of(items, 0, self.size());
  for (std::int64_t done = 0; done == 0 || done < longest.count; done += part) {
    if (done < mine.count) work(mine.first + done, mine.first + std::min(done + part, mine.count));
    if (any(self, io::stop_requested())) return false;
  }
  return true;
}

void work_apart(Collective& collective, Backend& backend, const std::function<void()>& work) {
  std::future<void> working = std::async(std::launch::async, work);
  std::exception_ptr interruption;     // of this one
  std::array<double, 2> all = {1, 0};  // how many are at work, and how many were interrupted
  try {
    while (all[0] > 0) {
      if (working.valid() && working.wait_for(std::chrono::milliseconds(250)) == std::future_status::ready)
        interruption = interruption_of(working);  // which makes it invalid
      all = {working.valid() ? 1.0 : 0.0, interruption ? 1.0 : 0.0};
      sum_over(collective, backend, all);
    }
  } catch (...) {
    if (working.valid()) {  // another has failed, and the work refers to what the caller has
      const io::LeaveRequest leave;
      working.wait();
    }
    throw;
  }
  if (interruption) std::rethrow_exception(interruption);
  if (all[1] > 0) fail(Failure::interrupted, "interrupted in another process: nothing was written");
}

void work_apart(Collective* processes, const std::function<void()>& work) {
  if (processes) work_apart(*processes, *open_cpu({.threads = 1}), work);
  else work();
}

std::string broadcast(Collective& collective, Backend& backend, const std::string& text, int root) {
  if (collective.size() == 1) return text;  // for speed alone: the only one would get its own
  const Tensor size = ops::full({1}, static_cast<double>(text.size()), DType::f64, backend);
  collective.broadcast(size, root);
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  bytes.resize(static_cast<std::size_t>(ops::item(size)));
  if (bytes.empty()) return {};  // for speed alone: nothing is sent
  const Tensor tensor = ops::from_host(bytes, {static_cast<Dim>(bytes.size())}, backend);
  collective.broadcast(tensor, root);
  bytes = ops::to_host<std::uint8_t>(tensor);
  return {bytes.begin(), bytes.end()};
}

}  // namespace bertrand::distributed
