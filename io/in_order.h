// Many items, worked on by several threads, whose results come in order.
#pragma once
#include <algorithm>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <optional>
#include <type_traits>
#include <utility>

namespace bertrand::io {

/// Calls work(item, slot) on a thread for each item that next() gives, a std::optional that is empty at the end, and
/// use(result) for each result, in the order of the items. next() and use() are called in this thread: while the
/// threads work, the result before is used and the item after is read. As many items as `threads` are under way at
/// most, each in a slot of its own, 0 to threads - 1; one more that was read waits. The first exception in the order of
/// the items ends all: it is thrown after the results before it were used and all work has ended.
template <class Next, class Work, class Use>
void in_order(const Next& next, int threads, const Work& work, const Use& use) {
  using Item = typename std::invoke_result_t<const Next&>::value_type;
  using Result = std::invoke_result_t<const Work&, Item, std::size_t>;
  const auto most = static_cast<std::size_t>(std::max(threads, 1));
  std::exception_ptr failure;  // of next(): an item before it may fail too
  const auto read = [&]() -> std::optional<Item> {
    try {
      return next();
    } catch (...) {
      failure = std::current_exception();
      return {};
    }
  };
  std::deque<std::future<Result>> under_way;
  std::size_t begun = 0;
  std::optional<Item> item = read();
  while (item || !under_way.empty()) {
    std::optional<Result> result;
    if (!item || under_way.size() == most) {
      result = under_way.front().get();
      under_way.pop_front();
    }
    if (item) under_way.push_back(std::async(std::launch::async, std::cref(work), *std::move(item), begun++ % most));
    if (result) use(*std::move(result));
    if (item) item = read();
  }
  if (failure) std::rethrow_exception(failure);
}

struct Items {
  std::size_t count = 0;
  int threads = 1;
  std::size_t batch = 256;  ///< items that a thread works on before their result is used
};

/// The same for batches of numbered items: work(first, end).
template <class Work, class Use>
void in_order(const Items& items, const Work& work, const Use& use) {
  using Batch = std::pair<std::size_t, std::size_t>;
  std::size_t begin = 0;
  const auto next = [&]() -> std::optional<Batch> {
    if (begin == items.count) return {};
    const std::size_t first = begin;
    begin += std::min(items.batch, items.count - begin);
    return Batch{first, begin};
  };
  in_order(
      next, items.threads, [&](const Batch& batch, std::size_t) { return work(batch.first, batch.second); }, use);
}

}  // namespace bertrand::io
