// Counters and histograms as text.
#include "serving/metrics.h"

#include <fmt/format.h>

#include <algorithm>

namespace bertrand::serving {
namespace {

std::string number(const std::string& name, const char* type, const std::string& help, std::uint64_t value) {
  return fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, type, value);
}

}  // namespace

void Histogram::add(double value) {
  const auto bound = std::ranges::lower_bound(bounds_, value);
  ++counts_[static_cast<std::size_t>(bound - bounds_.begin())];
  sum_ += value;
}

std::string Histogram::text(const std::string& name, const std::string& help) const {
  std::string text = fmt::format("# HELP {0} {1}\n# TYPE {0} histogram\n", name, help);
  std::uint64_t up_to = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    up_to += counts_[i];
    const std::string bound = i < bounds_.size() ? fmt::format("{}", bounds_[i]) : "+Inf";
    text += fmt::format("{}_bucket{{le=\"{}\"}} {}\n", name, bound, up_to);
  }
  return text + fmt::format("{0}_sum {1}\n{0}_count {2}\n", name, sum_, up_to);
}

std::vector<double> Metrics::seconds() {
  std::vector<double> bounds;
  for (const double power : {1e-4, 1e-3, 1e-2, 1e-1, 1.0})
    for (const double step : {1.0, 2.0, 5.0}) bounds.push_back(power * step);
  bounds.insert(bounds.end(), {10, 20, 50});
  return bounds;
}

std::vector<double> Metrics::powers(int most) {
  std::vector<double> bounds;
  for (int bound = 1; bound <= most; bound *= 2) bounds.push_back(bound);
  return bounds;
}

void Metrics::request() {
  const std::lock_guard lock(mutex_);
  ++requests_;
}

void Metrics::response(int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++responses_[status];
  if (status < 300) whole_.add(seconds);
}

void Metrics::refused(int status) {
  const std::lock_guard lock(mutex_);
  ++responses_[status];
}

void Metrics::dropped(std::size_t requests) {
  const std::lock_guard lock(mutex_);
  dropped_ += requests;
}

void Metrics::encoded(double seconds) {
  const std::lock_guard lock(mutex_);
  encoding_.add(seconds);
}

void Metrics::queued(double seconds) {
  const std::lock_guard lock(mutex_);
  queue_.add(seconds);
}

void Metrics::batch(std::size_t requests, std::size_t sequences, std::size_t tokens, double seconds) {
  const std::lock_guard lock(mutex_);
  sequences_ += sequences;
  tokens_ += tokens;
  batch_requests_.add(static_cast<double>(requests));
  batch_tokens_.add(static_cast<double>(tokens));
  inference_.add(seconds);
}

std::string Metrics::text(std::size_t waiting, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  std::uint64_t successes = 0;
  std::string failures =
      "# HELP te_request_failure Requests refused or failed, by status.\n"
      "# TYPE te_request_failure counter\n";
  for (const auto& [status, count] : responses_) {
    if (status < 300) successes += count;
    else failures += fmt::format("te_request_failure{{err=\"{}\"}} {}\n", status, count);
  }
  return number("te_request_count", "counter", "Requests for a model, and those that did not arrive whole.",
                requests_) +
         number("te_request_success", "counter", "Requests answered with what they asked for.", successes) + failures +
         number("te_request_dropped", "counter",
                "Requests without an answer of a model when their client left or had status 504.", dropped_) +
         number("te_queue_size", "gauge", "Requests that wait for the model.", waiting) +
         number("te_held_bytes", "gauge", "Bytes that requests and answers hold.", bytes) +
         number("te_sequences", "counter", "Sequences computed.", sequences_) +
         number("te_tokens", "counter", "Tokens computed.", tokens_) +
         whole_.text("te_request_duration", "Seconds from the last byte of a request to its answer.") +
         encoding_.text("te_request_tokenization_duration", "Seconds to read and tokenize a request.") +
         queue_.text("te_request_queue_duration", "Seconds that a request waits for the model.") +
         inference_.text("te_request_inference_duration", "Seconds that the model takes for a batch.") +
         batch_requests_.text("te_batch_next_size", "Requests of a batch.") +
         batch_tokens_.text("te_batch_next_tokens", "Tokens of a batch.");
}

}  // namespace bertrand::serving
