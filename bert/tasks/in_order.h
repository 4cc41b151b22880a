// Many items, worked on by several threads a batch at a time, whose results come in order.
#pragma once
#include <algorithm>
#include <cstddef>
#include <deque>
#include <future>
#include <type_traits>

namespace bertrand::tasks {

/// Calls work(first, end) for batches of the items 0 .. count on at most `threads` threads, and use(result) for the
/// result of each batch in this thread, in order. No more than a batch for each thread is held. Throws what they throw.
template <class Work, class Use>
void in_order(std::size_t count, int threads, const Work& work, const Use& use) {
  constexpr std::size_t kBatch = 256;
  const auto most = static_cast<std::size_t>(std::max(threads, 1));
  std::deque<std::future<std::invoke_result_t<Work, std::size_t, std::size_t>>> under_way;
  for (std::size_t next = 0; next < count || !under_way.empty();) {
    while (next < count && under_way.size() != most) {
      const std::size_t end = next + std::min(kBatch, count - next);
      under_way.push_back(std::async(std::launch::async, work, next, end));
      next = end;
    }
    use(under_way.front().get());
    under_way.pop_front();
  }
}

}  // namespace bertrand::tasks
