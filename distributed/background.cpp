#include "distributed/background.h"

#include <utility>

namespace bertrand::distributed {

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  thread_.join();
}

void Background::start(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (thrown_) return;
  waiting_.push_back(std::move(work));
  changed_.notify_all();
}

void Background::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.empty() && !working_; });
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void Background::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    std::function<void()> work = std::move(waiting_.front());
    waiting_.pop_front();
    working_ = true;
    lock.unlock();
    std::exception_ptr thrown;
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    work = {};
    lock.lock();
    working_ = false;
    if (thrown) {
      thrown_ = thrown;
      waiting_.clear();
    }
    changed_.notify_all();
  }
}

}  // namespace bertrand::distributed
