#include "tensor/profiler.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <span>

namespace bertrand {
namespace {

using Event = Profiler::Event;

double seconds(Profiler::Clock::duration d) { return std::chrono::duration<double>(d).count(); }

/// Seconds in which the replica did nothing else: of a collective that ran meanwhile, those in which it waited.
double not_hidden(const Event& event, std::span<const Event> waits) {
  if (!event.overlapped) return seconds(event.end - event.begin);
  Profiler::Clock::duration waited{};
  for (const Event& e : waits)
    waited += std::max(Profiler::Clock::duration{}, std::min(e.end, event.end) - std::max(e.begin, event.begin));
  return seconds(waited);
}

}  // namespace

void Profiler::add(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (!event.overlapped) {
    Total& total = totals_[event.name];
    ++total.calls;
    total.time += event.end - event.begin;
    total.work.flops += event.work.flops;
    total.work.bytes += event.work.bytes;
  }
  if (events_.size() < most_events_) events_.push_back(event);
  else ++dropped_;
}

std::string Profiler::collectives() const {
  struct Row {
    std::size_t calls = 0;
    double bytes = 0, time = 0, not_hidden = 0;
  };
  std::map<std::string, Row> rows;
  std::vector<Event> waits;
  std::ranges::copy_if(events_, std::back_inserter(waits), [](const Event& e) { return e.kind == Kind::wait; });
  for (const Event& e : events_) {
    if (e.kind != Kind::collective) continue;
    Row& row = rows[e.name];
    ++row.calls;
    row.bytes += e.work.bytes;
    row.time += seconds(e.end - e.begin);
    row.not_hidden += not_hidden(e, waits);
  }
  if (rows.empty()) return {};
  std::string text =
      fmt::format("{:<28} {:>8} {:>12} {:>14} {:>14}\n", "collective", "calls", "time ms", "not hidden ms", "bytes");
  for (const auto& [name, row] : rows)
    text += fmt::format("{:<28} {:>8} {:>12.3f} {:>14.3f} {:>14.0f}\n", name, row.calls, 1e3 * row.time,
                        1e3 * row.not_hidden, row.bytes);
  return text;
}

std::vector<std::pair<std::string, Profiler::Total>> Profiler::sorted_totals() const {
  std::vector<std::pair<std::string, Total>> sorted(totals_.begin(), totals_.end());
  std::ranges::stable_sort(sorted, std::greater{}, [](const auto& each) { return each.second.time; });
  return sorted;
}

std::string Profiler::table() const {
  const std::lock_guard lock(mutex_);
  Total all;
  for (const auto& [name, total] : totals_) {
    all.calls += total.calls;
    all.time += total.time;
  }
  std::string text = fmt::format("{:<28} {:>8} {:>12} {:>7} {:>9} {:>9} {:>12}\n", "op", "calls", "time ms", "share",
                                 "GFLOP/s", "GB/s", "bytes");
  for (const auto& [name, total] : sorted_totals()) {
    const double time = seconds(total.time);
    const auto rate = [&](double amount) {
      return amount > 0 && time > 0 ? fmt::format("{:.1f}", amount / time / 1e9) : std::string("-");
    };
    text += fmt::format("{:<28} {:>8} {:>12.3f} {:>6.1f}% {:>9} {:>9} {:>12.0f}\n", name, total.calls, 1e3 * time,
                        all.time > Clock::duration() ? 100 * time / seconds(all.time) : 0.0, rate(total.work.flops),
                        rate(total.work.bytes), total.work.bytes);
  }
  text += fmt::format("{:<28} {:>8} {:>12.3f} {:>6.1f}%\n", "all ops", all.calls, 1e3 * seconds(all.time), 100.0) +
          collectives();
  if (dropped_ > 0)
    text += fmt::format("the trace has the first {} events; {} later ones are in the rows of ops alone\n",
                        events_.size(), dropped_);
  return text;
}

std::string Profiler::totals() const {
  const std::lock_guard lock(mutex_);
  const auto sorted = sorted_totals();
  std::string json = fmt::format("{{\"seconds\":{:.6f},\"ops\":[", seconds(Clock::now() - start_));
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const auto& [name, total] = sorted[i];
    json += fmt::format("{}\n{{\"name\":\"{}\",\"calls\":{},\"seconds\":{:.6f},\"flops\":{:.0f},\"bytes\":{:.0f}}}",
                        i ? "," : "", name, total.calls, seconds(total.time), total.work.flops, total.work.bytes);
  }
  return json + "\n]}\n";
}

std::string Profiler::chrome_trace() const {
  const std::lock_guard lock(mutex_);
  std::string json = "{\"traceEvents\":[";
  for (std::size_t i = 0; i < events_.size(); ++i) {
    const Event& e = events_[i];
    json += fmt::format(
        "{}\n{{\"name\":\"{}\",\"ph\":\"X\",\"pid\":0,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"args\":{{\"flops\":{:."
        "0f},\"bytes\":{:.0f}}}}}",
        i ? "," : "", e.name, e.overlapped ? 1 : 0, 1e6 * seconds(e.begin - start_), 1e6 * seconds(e.end - e.begin),
        e.work.flops, e.work.bytes);
  }
  return json + "\n],\"displayTimeUnit\":\"ms\"}\n";
}

}  // namespace bertrand
