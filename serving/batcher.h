// The queue before the model: whenever the model is free it takes all that waits, up to so many tokens. No timer.
//
// The bits of a sequence do not depend on its company, so nobody can tell from an answer with whom it was computed.
#pragma once
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "serving/metrics.h"
#include "serving/models.h"

namespace bertrand::serving {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point time) {
  return std::chrono::duration<double>(Clock::now() - time).count();
}

/// What became of a request: an answer to each of its queries, or why there is none.
struct Outcome {
  std::vector<io::Json> answers = {};
  int status = 200;
  std::string error = "";
};

/// A request on its way through the model.
struct Work {
  ModelPointer model;
  std::vector<inference::Query> queries;  ///< at least one
  std::function<bool()> is_wanted;        ///< false: whoever asked has left
  std::function<void(Outcome)> done;      ///< called once, on the model's thread, unless nobody wants it any more
  Clock::time_point since = Clock::now();
};

class Batcher {
 public:
  struct Options {
    std::int64_t max_tokens = 4096;
    std::size_t max_waiting = 512;  ///< requests
  };
  Batcher(const Options& options, Metrics& metrics) : options_(options), metrics_(metrics) {}

  std::size_t waiting() const;
  bool is_full() const { return waiting() >= options_.max_waiting; }
  /// From any thread. False, and the work is not taken, if as many as may wait do.
  bool put(Work work);

  /// The thread of the model: computes until stop() was called and nothing waits any more.
  void run();
  void stop();

 private:
  std::vector<Work> take();
  void compute(std::vector<Work> works);
  void tell_once(const ServedModel& model, const std::string& fault);

  const Options options_;
  Metrics& metrics_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  bool stopped_ = false;
  std::map<std::string, std::int64_t> told_;  // the version of each model that has failed, for the model's thread alone
};

}  // namespace bertrand::serving
