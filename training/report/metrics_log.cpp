#include "training/report/metrics_log.h"

#include <charconv>
#include <cmath>

#include "io/json.h"

namespace bertrand::training {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSamples = "samples.jsonl";

std::string number_text(double value) {
  if (!std::isfinite(value)) return "null";
  if (value == std::trunc(value) && std::abs(value) < 1e15) return fmt::format("{}", static_cast<std::int64_t>(value));
  char text[64];
  const auto as_float = static_cast<float>(value);
  const auto end = static_cast<double>(as_float) == value ? std::to_chars(text, text + sizeof text, as_float).ptr
                                                          : std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

/// The lines up to `step`, whole ones only.
std::string lines_until(const std::string& text, std::int64_t step) {
  std::string kept;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const auto line = io::try_parse_json(std::string_view(text).substr(begin, end - begin));
    if (line && line->is_object() && line->contains("step") && (*line)["step"].is_number_integer() &&
        (*line)["step"].get<std::int64_t>() <= step)
      kept += text.substr(begin, end + 1 - begin);
    begin = end + 1;
  }
  return kept;
}

/// The file, cut back to `step`.
fs::path cut_back(const fs::path& path, std::int64_t step, io::Files& files) {
  if (fs::exists(path)) io::replace_file(files, path, lines_until(io::read_file(path), step));
  return path;
}

/// Whether there are events of before: of an earlier process of this run, which may have saved nothing.
bool has_events_beside(const fs::path& own) {
  for (const auto& entry : fs::directory_iterator(own.parent_path()))
    if (entry.path() != own && entry.path().filename().string().starts_with("events.out.tfevents.")) return true;
  return false;
}

}  // namespace

std::string json_line(const LogLine& line) {
  std::string text = fmt::format("{{\"step\":{}", line.step);
  for (const auto& [name, value] : line.figures) text += fmt::format(",\"{}\":{}", name, number_text(value));
  return text + "}";
}

MetricsLog::MetricsLog(const fs::path& directory, std::int64_t resumed_step, io::Files& files)
    : directory_(directory),
      files_(files),
      lines_(files, cut_back(directory / "metrics.jsonl", resumed_step, files), io::FileWriter::Opening::append),
      events_(directory, files) {
  cut_back(directory / kSamples, resumed_step, files);
  if (has_events_beside(events_.path())) events_.resume(resumed_step + 1);
  if (const fs::path config = directory / "run_config.json"; fs::exists(config))
    events_.text("run_config", resumed_step, "```json\n" + io::read_file(config) + "```\n");
}

void MetricsLog::write(const LogLine& line) {
  lines_.write(json_line(line) + "\n");
  for (const auto& [name, value] : line.figures) events_.scalar(tensorboard_tag(name), line.step, value);
}

void MetricsLog::write(std::int64_t step, const Samples& samples) {
  if (!samples.json.empty()) {
    if (!samples_) samples_.emplace(files_, directory_ / kSamples, io::FileWriter::Opening::append);
    samples_->write(fmt::format("{{\"step\":{},\"examples\":{}}}\n", step, samples.json));
  }
  events_.text("samples", step, samples.markdown);
}

}  // namespace bertrand::training
