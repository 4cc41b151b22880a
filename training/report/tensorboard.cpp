#include "training/report/tensorboard.h"

#include <unistd.h>

#include <chrono>

#include "io/host_name.h"
#include "io/protobuf.h"
#include "io/tfrecord.h"

namespace bertrand::training {
namespace {

namespace fs = std::filesystem;

using io::append_bytes;
using io::append_number;

constexpr std::uint64_t kString = 7;  // DataType.DT_STRING
constexpr std::uint64_t kStart = 1;   // SessionLog.SessionStatus.START

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

fs::path free_name(const fs::path& directory) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  for (int number = 0;; ++number) {
    fs::path path =
        directory / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", seconds, io::host_name(), ::getpid(), number);
    if (!fs::exists(path)) return path;
  }
}

}  // namespace

EventWriter::EventWriter(const fs::path& directory, io::Files& files) : file_(files, free_name(directory)) {
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
  std::string plugin, metadata;  // SummaryMetadata { plugin_data = 1 { plugin_name = 1 } }
  append_bytes(plugin, 1, "text");
  append_bytes(metadata, 1, plugin);
  std::string dimension, shape;  // TensorShapeProto { dim = 2 { size = 1 } }
  append_number(dimension, 1, 1);
  append_bytes(shape, 2, dimension);
  std::string tensor;  // TensorProto { dtype = 1, tensor_shape = 2, string_val = 8 }
  append_number(tensor, 1, kString);
  append_bytes(tensor, 2, shape);
  append_bytes(tensor, 8, markdown);
  std::string summary_value;  // Summary.Value { tag = 1, tensor = 8, metadata = 9 }
  append_bytes(summary_value, 1, tag);
  append_bytes(summary_value, 8, tensor);
  append_bytes(summary_value, 9, metadata);
  record(summary_event(step, summary_value));
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
