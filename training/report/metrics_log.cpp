#include "training/report/metrics_log.h"

#include <charconv>
#include <cmath>

#include "io/json.h"
#include "training/run/run_files.h"

namespace bertrand::training {
namespace {

namespace fs = std::filesystem;

std::string number_text(double value) {
  if (!std::isfinite(value)) return "null";
  if (value == std::trunc(value) && std::abs(value) < 1e15) return fmt::format("{}", static_cast<std::int64_t>(value));
  char text[64];
  const auto as_float = static_cast<float>(value);
  const auto end = static_cast<double>(as_float) == value ? std::to_chars(text, text + sizeof text, as_float).ptr
                                                          : std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

/// Whether the line is one that is written again when the run goes on from there.
bool comes_again(const io::Json& line, const LogPosition& from) {
  const std::int64_t step = line["step"].get<std::int64_t>();
  if (step != from.step || !from.evaluation_due) return step > from.step;
  for (const auto& [name, value] : line.items())
    if (name.starts_with("eval_") || name == "examples") return true;
  return false;
}

/// The lines of before, whole ones only.
std::string lines_until(const std::string& text, const LogPosition& from) {
  std::string kept;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto line = io::try_parse_json(std::string_view(text).substr(begin, end - begin));
    if (line && line->is_object() && line->contains("step") && (*line)["step"].is_number_integer() &&
        !comes_again(*line, from))
      kept += text.substr(begin, end + 1 - begin);
  }
  return kept;
}

/// The file, cut back.
fs::path cut_back(const fs::path& path, const LogPosition& from, io::Files& files) {
  if (fs::exists(path)) io::replace_file(files, path, lines_until(io::read_file(path), from));
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
  if (line.seconds) text += fmt::format(",\"seconds\":{:.3f}", *line.seconds);
  return text + "}";
}

MetricsLog::MetricsLog(const fs::path& directory, const LogPosition& from, io::Files& files)
    : directory_(directory),
      files_(files),
      lines_(files, cut_back(directory / kMetricsLog, from, files), io::Opening::append),
      events_(directory, files) {
  cut_back(directory / kSamples, from, files);
  if (has_events_beside(events_.path())) events_.resume(from.step + 1);
  if (const fs::path config = directory / kRunConfig; fs::exists(config))
    events_.text("run_config", from.step, "```json\n" + io::read_file(config) + "```\n");
}

void MetricsLog::write(const LogLine& line) {
  lines_.write(json_line(line) + "\n");
  for (const auto& [name, value] : line.figures) events_.scalar(tensorboard_tag(name), line.step, value);
}

void MetricsLog::write(std::int64_t step, const Samples& samples) {
  if (!samples.json.empty()) {
    if (!samples_) samples_.emplace(files_, directory_ / kSamples, io::Opening::append);
    samples_->write(fmt::format("{{\"step\":{},\"examples\":{}}}\n", step, samples.json));
  }
  events_.text("samples", step, samples.markdown);
}

}  // namespace bertrand::training
