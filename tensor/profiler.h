// Times every op of a backend: a table per op, and a trace for chrome://tracing. Costs one pointer test when off.
// A collective may run while the replica computes. Then the table says how much of its time was hidden.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
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
  enum class Kind : std::uint8_t { op, collective, wait };  ///< wait: for collectives that run meanwhile
  struct Event {
    const char* name;  ///< must outlive the profiler
    Clock::time_point begin, end;
    Work work;
    Kind kind = Kind::op;
    bool overlapped = false;  ///< the replica computed meanwhile
  };

  /// Keeps at most so many events for the trace, about 64 bytes each. The table counts all ops.
  explicit Profiler(std::size_t most_events = std::size_t{1} << 20) : most_events_(most_events) {}

  /// From any thread.
  void add(const Event& event);
  /// op, calls, total ms, share of the whole, GFLOP/s, GB/s, bytes; the longest first. Then, if there were
  /// collectives, of each the calls, total ms, those in which the replica did nothing else, and bytes.
  std::string table() const;
  /// {"seconds", "ops": [{"name", "calls", "seconds", "flops", "bytes"}]}: the time since the beginning, and the totals
  /// of table(), the longest first.
  std::string totals() const;
  /// The Trace Event Format that chrome://tracing and Perfetto open.
  std::string chrome_trace() const;

 private:
  struct Total {
    std::size_t calls = 0;
    Clock::duration time{};
    Work work;
  };
  std::vector<std::pair<std::string, Total>> sorted_totals() const;  ///< the longest first; the lock is held
  std::string collectives() const;

  std::size_t most_events_;
  std::size_t dropped_ = 0;              // events beyond most_events_, which the trace lacks
  std::map<std::string, Total> totals_;  // by name, without what overlapped
  std::vector<Event> events_;
  mutable std::mutex mutex_;
  Clock::time_point start_ = Clock::now();
};

/// Times its own life as one event of backend's profiler, if there is one. On a device, waits for it to finish.
class Span {
 public:
  Span(Backend& backend, const char* name, const Work& work = {}, Profiler::Kind kind = Profiler::Kind::op,
       bool overlapped = false)
      : backend_(backend) {
    if (backend.profiler) event_ = {name, Profiler::Clock::now(), {}, work, kind, overlapped};
  }
  ~Span() {
    if (!backend_.profiler) return;
    try {
      backend_.synchronize();
    } catch (const Error&) {  // a device that is lost says so again at the next call
      return;
    }
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
