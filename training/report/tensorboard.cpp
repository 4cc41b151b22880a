#include "training/report/tensorboard.h"

#include <unistd.h>

#include <chrono>
#include <cstring>

#include "io/crc32c.h"
#include "io/error.h"
#include "io/host_name.h"

namespace bertrand::training {
namespace {

namespace fs = std::filesystem;

// Just enough of protocol buffers: tag = field number · 8 + wire type.
enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
constexpr std::uint64_t kString = 7;  // DataType.DT_STRING
constexpr std::uint64_t kStart = 1;   // SessionLog.SessionStatus.START

void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 128; value >>= 7) to.push_back(static_cast<char>(value | 128));
  to.push_back(static_cast<char>(value));
}
void put_tag(std::string& to, int field, WireType type) {
  put_varint(to, static_cast<std::uint64_t>(field * 8 + type));
}
template <class T>
void put_fixed(std::string& to, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof value);
}
void put_bytes(std::string& to, int field, std::string_view bytes) {
  put_tag(to, field, kBytes);
  put_varint(to, bytes.size());
  to += bytes;
}
void put_number(std::string& to, int field, std::uint64_t value) {
  put_tag(to, field, kVarint);
  put_varint(to, value);
}

/// Event { wall_time = 1 double } and what every event begins with.
std::string begin_event() {
  std::string event;
  put_tag(event, 1, kFixed64);
  put_fixed(event, std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  return event;
}

/// Event { step = 2 int64, summary = 5 { value = 1 } }
std::string summary_event(std::int64_t step, const std::string& summary_value) {
  std::string summary, event = begin_event();
  put_bytes(summary, 1, summary_value);
  put_number(event, 2, static_cast<std::uint64_t>(step));
  put_bytes(event, 5, summary);
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
  put_bytes(event, 3, "brain.Event:2");  // file_version
  record(event);
}

void EventWriter::scalar(const std::string& tag, std::int64_t step, double value) {
  std::string summary_value;  // Summary.Value { tag = 1, simple_value = 2 float }
  put_bytes(summary_value, 1, tag);
  put_tag(summary_value, 2, kFixed32);
  put_fixed(summary_value, static_cast<float>(value));
  record(summary_event(step, summary_value));
}

void EventWriter::text(const std::string& tag, std::int64_t step, const std::string& markdown) {
  std::string plugin, metadata;  // SummaryMetadata { plugin_data = 1 { plugin_name = 1 } }
  put_bytes(plugin, 1, "text");
  put_bytes(metadata, 1, plugin);
  std::string dimension, shape;  // TensorShapeProto { dim = 2 { size = 1 } }
  put_number(dimension, 1, 1);
  put_bytes(shape, 2, dimension);
  std::string tensor;  // TensorProto { dtype = 1, tensor_shape = 2, string_val = 8 }
  put_number(tensor, 1, kString);
  put_bytes(tensor, 2, shape);
  put_bytes(tensor, 8, markdown);
  std::string summary_value;  // Summary.Value { tag = 1, tensor = 8, metadata = 9 }
  put_bytes(summary_value, 1, tag);
  put_bytes(summary_value, 8, tensor);
  put_bytes(summary_value, 9, metadata);
  record(summary_event(step, summary_value));
}

void EventWriter::resume(std::int64_t step) {
  std::string session, event = begin_event();  // Event { step = 2, session_log = 7 { status = 1 } }
  put_number(session, 1, kStart);
  put_number(event, 2, static_cast<std::uint64_t>(step));
  put_bytes(event, 7, session);
  record(event);
}

/// One TFRecord: length, its masked crc, the bytes, their masked crc; one write, so that a killed run leaves whole
/// records.
void EventWriter::record(const std::string& event) {
  std::string framed;
  put_fixed(framed, static_cast<std::uint64_t>(event.size()));
  put_fixed(framed, io::masked(io::crc32c(framed)));
  framed += event;
  put_fixed(framed, io::masked(io::crc32c(event)));
  file_.write(framed);
}

std::string tensorboard_tag(const std::string& metric) {
  if (metric.starts_with("eval_")) return "eval/" + metric.substr(5);
  if (metric.ends_with("_per_second") || metric == "memory_bytes") return "perf/" + metric;
  return "train/" + metric;
}

}  // namespace bertrand::training
