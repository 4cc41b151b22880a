// Values that the hosts of replicas exchange: a sum, a decision, a text, the results of shares.
#pragma once
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <type_traits>

#include "distributed/replica.h"
#include "tensor/ops.h"

namespace bertrand::distributed {

/// Makes each value the sum of its values on all replicas, in the tree whose parts are the ranks.
void sum(const Replica& self, std::span<double> values);

/// The sum of the values of all replicas.
double sum(const Replica& self, double value);

/// Whether any replica says yes.
bool any(const Replica& self, bool yes);

/// Calls work(first, end) for the items of this replica's share_of(items, …), in parts of at most `part`. After each
/// part all replicas ask each other whether one was asked to stop (io/signals.h): that one never waits until another
/// has done its whole share. Returns whether all did theirs.
bool work_on_share(const Replica& self, std::int64_t items, std::int64_t part,
                   const std::function<void(std::int64_t first, std::int64_t end)>& work);

/// Calls `work` on a thread of its own, as all others do theirs, and returns when all have ended. However long that
/// takes, no replica waits longer than a moment in one call, so no time limit ends it. Throws what `work` throws; if
/// the work of one is interrupted, that of all counts as interrupted, so that all end together. If another replica
/// fails or dies, the work is asked to leave (io/signals.h), and what is thrown is the failure of that replica.
void work_apart(Collective& collective, Backend& backend, const std::function<void()>& work);
/// The same in processes that read what they train on: hosts may differ in how long that takes. Null: there is one
/// process, which just works.
void work_apart(Collective* processes, const std::function<void()>& work);

/// Returns the text of rank `root` on all.
std::string broadcast(Collective& collective, Backend& backend, const std::string& text, int root);

/// Returns the text of the first replica on all.
inline std::string broadcast(const Replica& self, const std::string& text) {
  return broadcast(self.collective(), self.backend(), text, 0);
}

/// Returns the value of the first replica on all.
template <class T>
T broadcast_value(const Replica& self, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::string bytes = broadcast(self, std::string(reinterpret_cast<const char*>(&value), sizeof value));
  T result;
  std::memcpy(&result, bytes.data(), sizeof result);
  return result;
}

/// The values of item i lie in `values` from begin_of(i) up to begin_of(i + 1). Before the call every replica has
/// filled in those of its share_of(items, …); after it every replica has all of them.
template <class T, class BeginOf>
void gather(const Replica& self, std::span<T> values, std::int64_t items, const BeginOf& begin_of) {
  if (self.size() == 1) return;  // for speed alone: the only one has all
  for (int rank = 0; rank < self.size(); ++rank) {
    const Share share = share_of(items, rank, self.size());
    const auto begin = static_cast<std::size_t>(begin_of(share.first));
    const auto part = values.subspan(begin, static_cast<std::size_t>(begin_of(share.end())) - begin);
    if (part.empty()) continue;  // for speed alone: nothing is sent
    const Tensor tensor = ops::from_host(std::span<const T>(part), {static_cast<Dim>(part.size())}, self.backend());
    self.collective().broadcast(tensor, rank);
    self.backend().download(tensor, part.data());
  }
}

/// The same if every item has equally many values.
template <class T>
void gather(const Replica& self, std::span<T> values, std::int64_t items) {
  const std::int64_t width = items > 0 ? std::ssize(values) / items : 0;
  gather<T>(self, values, items, [width](std::int64_t item) { return item * width; });
}

}  // namespace bertrand::distributed
