#include "apps/training/tensorboard.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <cstring>

#include "bert/formats/crc32c.h"
#include "tensor/error.h"

namespace bertrand::training {
namespace {

// Just enough of protocol buffers: tag = field number · 8 + wire type.
void put_varint(std::string& to, std::uint64_t value) {
  for (; value >= 128; value >>= 7) to.push_back(static_cast<char>(value | 128));
  to.push_back(static_cast<char>(value));
}
template <class T>
void put_fixed(std::string& to, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof value);
}
void put_bytes(std::string& to, int field, std::string_view bytes) {
  put_varint(to, static_cast<std::uint64_t>(field * 8 + 2));
  put_varint(to, bytes.size());
  to += bytes;
}

/// Event { wall_time = 1 double } and what every event begins with.
std::string begin_event() {
  std::string event(1, static_cast<char>(1 * 8 + 1));
  put_fixed(event, std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  return event;
}

}  // namespace

EventWriter::EventWriter(const std::filesystem::path& directory) {
  char host[256] = "localhost";
  ::gethostname(host, sizeof host - 1);
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  path_ = directory / fmt::format("events.out.tfevents.{:010}.{}.{}", seconds, host, ::getpid());
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail(Failure::io, "{}: open: {}", path_.string(), std::strerror(errno));
  std::string event = begin_event();
  put_bytes(event, 3, "brain.Event:2");  // file_version
  record(event);
}

EventWriter::~EventWriter() { ::close(descriptor_); }

void EventWriter::scalar(const std::string& tag, std::int64_t step, double value) {
  std::string summary_value;  // Summary.Value { tag = 1, simple_value = 2 float }
  put_bytes(summary_value, 1, tag);
  summary_value.push_back(static_cast<char>(2 * 8 + 5));
  put_fixed(summary_value, static_cast<float>(value));
  std::string summary;  // Summary { value = 1 }
  put_bytes(summary, 1, summary_value);
  std::string event = begin_event();
  event.push_back(static_cast<char>(2 * 8 + 0));  // step
  put_varint(event, static_cast<std::uint64_t>(step));
  put_bytes(event, 5, summary);
  record(event);
}

/// One TFRecord: length, its masked crc, the bytes, their masked crc; one write, so that a killed run leaves whole records.
void EventWriter::record(const std::string& event) {
  std::string framed;
  put_fixed(framed, static_cast<std::uint64_t>(event.size()));
  put_fixed(framed, formats::masked(formats::crc32c(framed)));
  framed += event;
  put_fixed(framed, formats::masked(formats::crc32c(event)));
  if (::write(descriptor_, framed.data(), framed.size()) != static_cast<ssize_t>(framed.size()))
    fail(Failure::io, "{}: write: {}", path_.string(), std::strerror(errno));
}

std::string tensorboard_tag(const std::string& metric) {
  if (metric.starts_with("eval_")) return "eval/" + metric.substr(5);
  if (metric.ends_with("_per_second") || metric == "memory_bytes") return "perf/" + metric;
  return "train/" + metric;
}

}  // namespace bertrand::training
