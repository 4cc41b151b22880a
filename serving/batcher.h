// The queue before the model: whenever the model is free it takes all that waits, up to so many tokens. No timer. A
// request that is larger than a batch gives a part of it and then waits behind all others.
//
// The bits of a sequence do not depend on its company, so nobody can tell from an answer with whom it was computed.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <span>
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
  std::function<void(Outcome)>
      done;  ///< called until it returns once, on the model's thread, unless nobody wants it any more
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
  /// Whether as many as may wait do. From any thread, as put().
  bool is_full();
  /// False, and the work is not taken, if the queue is full.
  bool put(Work work);

  /// The thread of the model: computes until stop() was called and nothing waits any more.
  void run();
  void stop();

 private:
  /// What a request gives to a batch.
  struct Part {
    std::size_t sequences = 0;
    std::int64_t tokens = 0;
  };
  /// A request, and what the model has said of it.
  struct Job {
    Work work;
    std::vector<io::Json> answers = {};            // to its first queries
    std::vector<inference::Outputs> outputs = {};  // of the first sequences of the query after these
    Part next = {};
  };
  void drop_unwanted();
  bool has_room();
  Part next_of(const Job& job) const;
  std::list<Job> take();
  void compute(std::list<Job>& jobs);
  bool take_in(Job& job, std::span<inference::Outputs> outputs);
  void tell_once(const ServedModel& model, const std::string& fault);

  const Options options_;
  Metrics& metrics_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Job> queue_;  // moved without memory, which may be full
  bool stopped_ = false;
  std::map<std::string, std::int64_t> told_;  // the version of each model that has failed, for the model's thread alone
};

}  // namespace bertrand::serving
