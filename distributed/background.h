// A thread that works while its owner does something else.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace bertrand::distributed {

/// The owner's thread destroys the pieces of work, in start(), wait() or the destructor: what they hold may be memory
/// of an allocator that is for one thread (tensor/cpu/memory.h).
class Background {
 public:
  Background() : thread_([this] { run(); }) {}
  /// Waits for the piece of work that has begun, and drops the rest.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Gives the thread one more piece of work. Pieces are done one after the other. After one that throws, the others
  /// are dropped until wait().
  void start(std::function<void()> work);
  /// Returns when no piece is left and all are destroyed. Throws what one of them threw.
  void wait();

 private:
  using Pieces = std::list<std::function<void()>>;  // they move from list to list without an allocation

  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  Pieces waiting_, working_, done_;
  bool ending_ = false;
  std::exception_ptr thrown_;
  std::thread thread_;
};

}  // namespace bertrand::distributed
