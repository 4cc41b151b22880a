// What the host's side of a replica has to tell the others: a sum, a decision, a text, results of their shares.
#pragma once
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "distributed/replica.h"
#include "tensor/ops.h"

namespace bertrand::distributed {

/// Σ of what every replica gave, as the collective adds: each rank a part.
double sum(const Replica& self, double value);

/// Whether any replica says yes.
bool any(const Replica& self, bool yes);

/// The text of rank `root`, on all.
std::string broadcast(Collective& collective, Backend& backend, const std::string& text, int root);

/// The text of the first replica, on all of them.
inline std::string broadcast(const Replica& self, const std::string& text) {
  return broadcast(self.collective(), self.backend(), text, 0);
}

/// The value of the first replica, on all of them.
template <class T>
T broadcast_value(const Replica& self, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::string bytes = broadcast(self, std::string(reinterpret_cast<const char*>(&value), sizeof value));
  T result;
  std::memcpy(&result, bytes.data(), sizeof result);
  return result;
}

/// `values` belong to `items` items, equally many to each; every replica has filled in those of share_of(items, …).
/// Afterwards all have all.
template <class T>
void gather(const Replica& self, std::span<T> values, std::int64_t items) {
  if (self.size() == 1) return;
  const std::size_t width = items > 0 ? values.size() / static_cast<std::size_t>(items) : 0;
  for (int rank = 0; rank < self.size(); ++rank) {
    const Share share = share_of(items, rank, self.size());
    const auto part =
        values.subspan(static_cast<std::size_t>(share.first) * width, static_cast<std::size_t>(share.count) * width);
    if (part.empty()) continue;
    const Tensor tensor = ops::from_host(std::span<const T>(part), {static_cast<Dim>(part.size())}, self.backend());
    self.collective().broadcast(tensor, rank);
    self.backend().download(tensor, part.data());
  }
}

}  // namespace bertrand::distributed
