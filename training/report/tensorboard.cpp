#include "training/report/tensorboard.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "io/machine.h"
#include "io/protobuf.h"
#include "io/tfrecord.h"

namespace bertrand::training {
namespace {

namespace fs = std::filesystem;

using io::append_bytes;
using io::append_number;

constexpr std::uint64_t kDouble = 2, kString = 7;  // DataType.DT_DOUBLE, DT_STRING
constexpr std::uint64_t kStart = 1;                // SessionLog.SessionStatus.START

/// Event { wall_time = 1 double } and what every event begins with.
std::string begin_event() {
  std::string event;
  io::append_double(event, 1,
                    std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  return event;
}

/// Event { step = 2 int64, summary = 5 { value = 1 } }
std::string summary_event(std::int64_t step, const std::string& summary_value) {
  std::string summary, event = begin_event();
  append_bytes(summary, 1, summary_value);
  append_number(event, 2, static_cast<std::uint64_t>(step));
  append_bytes(event, 5, summary);
  return event;
}

/// TensorShapeProto { dim = 2 { size = 1 } }
std::string shape_of(std::initializer_list<std::uint64_t> sizes) {
  std::string shape;
  for (const std::uint64_t size : sizes) {
    std::string dimension;
    append_number(dimension, 1, size);
    append_bytes(shape, 2, dimension);
  }
  return shape;
}

/// Summary.Value { tag = 1, tensor = 8, metadata = 9 SummaryMetadata { plugin_data = 1 { plugin_name = 1 } } }
std::string tensor_value(const std::string& tag, std::string_view plugin_name, const std::string& tensor) {
  std::string plugin, metadata, value;
  append_bytes(plugin, 1, plugin_name);
  append_bytes(metadata, 1, plugin);
  append_bytes(value, 1, tag);
  append_bytes(value, 8, tensor);
  append_bytes(value, 9, metadata);
  return value;
}

fs::path free_name(const fs::path& directory) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  for (int number = 0;; ++number) {
    fs::path path =
        directory / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", seconds, io::host_name(), ::getpid(), number);
    if (!fs::exists(fs::symlink_status(path))) return path;
  }
}

}  // namespace

EventWriter::EventWriter(const fs::path& directory, io::Files& files)
    : file_(files, free_name(directory), io::Opening::create_new) {
  std::string event = begin_event();
  append_bytes(event, 3, "brain.Event:2");  // file_version
  record(event);
}

void EventWriter::scalar(const std::string& tag, std::int64_t step, double value) {
  std::string summary_value;  // Summary.Value { tag = 1, simple_value = 2 float }
  append_bytes(summary_value, 1, tag);
  io::append_float(summary_value, 2, static_cast<float>(value));
  record(summary_event(step, summary_value));
}

void EventWriter::text(const std::string& tag, std::int64_t step, const std::string& markdown) {
  std::string tensor;  // TensorProto { dtype = 1, tensor_shape = 2, string_val = 8 }
  append_number(tensor, 1, kString);
  append_bytes(tensor, 2, shape_of({1}));
  append_bytes(tensor, 8, markdown);
  record(summary_event(step, tensor_value(tag, "text", tensor)));
}

void EventWriter::histogram(const std::string& tag, std::int64_t step, std::span<const double> values) {
  constexpr std::size_t kBuckets = 30;
  double least = 0, most = 0;
  bool any = false;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    least = any ? std::min(least, x) : x;
    most = any ? std::max(most, x) : x;
    any = true;
  }
  const double width = (most - least) / kBuckets;
  struct Row {
    double left, right, count;
  };
  std::array<Row, kBuckets> rows;
  double bucket = 0;
  for (Row& row : rows) {
    row = {.left = least + bucket * width, .right = least + (bucket + 1) * width, .count = 0};
    ++bucket;
  }
  rows.back().right = most;
  for (const double x : values) {
    if (!std::isfinite(x)) continue;
    // Values that are all alike (0 / 0, which fmin leaves out) are in the last bucket, as TensorBoard has it.
    ++rows[static_cast<std::size_t>(std::fmin((x - least) / width, kBuckets - 1))].count;
  }
  std::string tensor;  // TensorProto { dtype = 1, tensor_shape = 2, tensor_content = 4 }
  append_number(tensor, 1, kDouble);
  append_bytes(tensor, 2, shape_of({kBuckets, 3}));
  append_bytes(tensor, 4, {reinterpret_cast<const char*>(rows.data()), sizeof rows});
  record(summary_event(step, tensor_value(tag, "histograms", tensor)));
}

void EventWriter::resume(std::int64_t step) {
  std::string session, event = begin_event();  // Event { step = 2, session_log = 7 { status = 1 } }
  append_number(session, 1, kStart);
  append_number(event, 2, static_cast<std::uint64_t>(step));
  append_bytes(event, 7, session);
  record(event);
}

/// One write, so that a killed run leaves whole records.
void EventWriter::record(const std::string& event) {
  std::string framed;
  io::append_record(framed, event);
  file_.write(framed);
}

std::string tensorboard_tag(const std::string& metric) {
  if (metric.starts_with("eval_")) return "eval/" + metric.substr(5);
  if (metric.ends_with("_per_second") || metric == "memory_bytes") return "perf/" + metric;
  return "train/" + metric;
}

}  // namespace bertrand::training
