// Times every op of a backend: a table per op, and a trace for chrome://tracing. Costs one pointer test when off.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "tensor/backend.h"

namespace bertrand {

/// What one op does, for rates: floating-point operations and bytes that must move.
struct Work {
  double flops = 0;
  double bytes = 0;
};

class Profiler {
 public:
  using Clock = std::chrono::steady_clock;
  struct Event {
    const char* name;  ///< of static life
    Clock::time_point begin, end;
    Work work;
  };

  void add(const Event& event) { events_.push_back(event); }
  /// op, calls, total ms, share of the whole, GFLOP/s, GB/s; the longest first.
  std::string table() const;
  /// The Trace Event Format that chrome://tracing and Perfetto open.
  std::string chrome_trace() const;

 private:
  std::vector<Event> events_;
  Clock::time_point start_ = Clock::now();
};

/// Times its own life as one event of backend's profiler, if there is one. On a device, waits for it to finish.
class Span {
 public:
  Span(Backend& backend, const char* name, const Work& work = {}) : backend_(backend) {
    if (backend.profiler) event_ = {name, Profiler::Clock::now(), {}, work};
  }
  ~Span() {
    if (!backend_.profiler) return;
    backend_.synchronize();
    event_.end = Profiler::Clock::now();
    backend_.profiler->add(event_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Backend& backend_;
  Profiler::Event event_{};
};

}  // namespace bertrand
