// What the server counts, in Prometheus' text format. The names are those of text-embeddings-inference, so that its
// dashboards show this server too.
#pragma once
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace bertrand::serving {

/// How often a value lay below each of some bounds.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void add(double value);
  std::string text(const std::string& name, const std::string& help) const;

 private:
  std::vector<double> bounds_;         // ascending
  std::vector<std::uint64_t> counts_;  // values up to each bound and above the one before, then those above all
  double sum_ = 0;
};

/// Safe to use from several threads.
class Metrics {
 public:
  void request();  ///< one for a model, or one that did not arrive whole
  /// A request whose answer had this status; `seconds` from its last byte to its answer.
  void response(int status, double seconds);
  void refused(int status);            ///< a request that the sockets refused: cut, too large, too late or failed
  void dropped(std::size_t requests);  ///< that had no answer of a model when nobody waited any more
  void encoded(double seconds);        ///< a request read and tokenized
  void queued(double seconds);         ///< a request that waited for the model
  void batch(std::size_t requests, std::size_t sequences, std::size_t tokens, double seconds);

  /// `waiting` requests are in the queue now, and all hold `bytes`.
  std::string text(std::size_t waiting, std::size_t bytes) const;

 private:
  mutable std::mutex mutex_;
  std::uint64_t requests_ = 0, dropped_ = 0, sequences_ = 0, tokens_ = 0;
  std::map<int, std::uint64_t> responses_;  // of each status
  Histogram whole_{seconds()}, encoding_{seconds()}, queue_{seconds()}, inference_{seconds()};
  Histogram batch_requests_{powers(512)}, batch_tokens_{powers(65536)};

  static std::vector<double> seconds();
  static std::vector<double> powers(int most);
};

}  // namespace bertrand::serving
