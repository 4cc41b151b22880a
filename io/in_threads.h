// Many items, worked on by several threads in any order.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace bertrand::io {

/// Calls body(0) to body(count - 1) in this thread and threads - 1 others. After one throws, no further one begins;
/// what is thrown for the lowest number is thrown here.
template <class Body>
void in_threads(std::size_t count, int threads, const Body& body) {
  std::vector<std::exception_ptr> failures(count);
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> failed = false;
  const auto work = [&] {
    for (std::size_t i; !failed && (i = next++) < count;) try {
        body(i);
      } catch (...) {
        failures[i] = std::current_exception();
        failed = true;  // all lower numbers have begun, and end
      }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < std::min(count, static_cast<std::size_t>(std::max(threads, 1))); ++i)
      others.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace bertrand::io
