// A thread that works while its owner does something else.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace bertrand::distributed {

class Background {
 public:
  Background() : thread_([this] { run(); }) {}
  /// Waits for the piece of work that has begun, and drops the rest.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Gives the thread one more piece of work. They are done one after the other; once one has thrown the others are
  /// left out until wait().
  void start(std::function<void()> work);
  /// Returns when nothing is left to do, and what the pieces held is let go. Throws what one of them threw.
  void wait();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool working_ = false, ending_ = false;
  std::exception_ptr thrown_;
  std::thread thread_;
};

}  // namespace bertrand::distributed
