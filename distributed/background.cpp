#include "distributed/background.h"

#include <utility>

namespace bertrand::distributed {

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Background::start(std::function<void()> work) {
  Pieces piece, destroyed;
  piece.push_back(std::move(work));
  const std::lock_guard lock(mutex_);
  destroyed.swap(done_);
  if (thrown_) return;
  waiting_.splice(waiting_.end(), piece);
  changed_.notify_all();
}

void Background::wait() {
  Pieces destroyed;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return waiting_.empty() && working_.empty(); });
  destroyed.swap(done_);
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

void Background::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ending_ || !waiting_.empty(); });
    if (ending_) return;
    working_.splice(working_.end(), waiting_, waiting_.begin());
    lock.unlock();
    std::exception_ptr thrown;
    try {
      working_.front()();
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    done_.splice(done_.end(), working_);
    if (thrown) {
      thrown_ = thrown;
      done_.splice(done_.end(), waiting_);
    }
    changed_.notify_all();
  }
}

}  // namespace bertrand::distributed
