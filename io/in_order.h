// Many items, worked on by several threads a batch at a time, whose results come in order.
#pragma once
#include <algorithm>
#include <cstddef>
#include <deque>
#include <future>
#include <type_traits>

namespace bertrand::io {

struct Items {
  std::size_t count = 0;
  int threads = 1;
  std::size_t batch = 256;  ///< items that a thread works on before their result is used
};

/// Calls work(first, end) for batches of the items, and use(result) for the result of each batch in this thread, in
/// order. No more than a batch for each thread is held. Throws what they throw.
template <class Work, class Use>
void in_order(const Items& items, const Work& work, const Use& use) {
  const auto most = static_cast<std::size_t>(std::max(items.threads, 1));
  std::deque<std::future<std::invoke_result_t<Work, std::size_t, std::size_t>>> under_way;
  for (std::size_t next = 0; next < items.count || !under_way.empty();) {
    while (next < items.count && under_way.size() != most) {
      const std::size_t end = next + std::min(items.batch, items.count - next);
      under_way.push_back(std::async(std::launch::async, work, next, end));
      next = end;
    }
    use(under_way.front().get());
    under_way.pop_front();
  }
}

}  // namespace bertrand::io
