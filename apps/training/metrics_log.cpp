#include "apps/training/metrics_log.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/training/tensorboard.h"
#include "bert/formats/files.h"
#include "tensor/error.h"

namespace bertrand::training {
namespace {

std::string number_text(double value) {
  if (!std::isfinite(value)) return "null";
  char text[64];
  const auto as_float = static_cast<float>(value);
  const auto end = static_cast<double>(as_float) == value ? std::to_chars(text, text + sizeof text, as_float).ptr : std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

/// The lines up to `step`, whole ones only.
std::string lines_until(const std::string& text, std::int64_t step) {
  std::string kept;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const auto line = nlohmann::json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin), text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (line.is_object() && line.value("step", std::int64_t{0}) <= step) kept += text.substr(begin, end + 1 - begin);
    begin = end + 1;
  }
  return kept;
}

}  // namespace

std::string json_line(const LogLine& line) {
  std::string text = fmt::format("{{\"step\":{}", line.step);
  for (const auto& [name, value] : line.figures) text += fmt::format(",\"{}\":{}", name, number_text(value));
  return text + "}";
}

struct MetricsLog::Sinks {
  std::filesystem::path path;
  int descriptor;
  EventWriter events;
};

MetricsLog::MetricsLog(const std::filesystem::path& directory, std::int64_t resumed_step) {
  const std::filesystem::path path = directory / "metrics.jsonl";
  if (std::filesystem::exists(path)) formats::replace_file(formats::Files::system(), path, lines_until(formats::read_file(path), resumed_step));
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) fail(Failure::io, "{}: open: {}", path.string(), std::strerror(errno));
  sinks_.reset(new Sinks{path, descriptor, EventWriter(directory)});
}

MetricsLog::~MetricsLog() { ::close(sinks_->descriptor); }

void MetricsLog::write(const LogLine& line) {
  const std::string text = json_line(line) + "\n";
  if (::write(sinks_->descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    fail(Failure::io, "{}: write: {}", sinks_->path.string(), std::strerror(errno));
  for (const auto& [name, value] : line.figures) sinks_->events.scalar(tensorboard_tag(name), line.step, value);
}

}  // namespace bertrand::training
