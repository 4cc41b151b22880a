#include "training/run/run_state.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>

#include "io/crc32c.h"
#include "io/error.h"
#include "io/signals.h"
#include "io/units.h"

namespace bertrand::training {

namespace {

constexpr const char* kRandomNumbers = "philox4x32-10";
// 3: the order of examples is a keyed permutation, and products of bf16 are those of tiles. A run of before would go on
// with other examples and other bits.
constexpr int kStateVersion = 3;

std::string value_of(const std::vector<std::pair<std::string, std::string>>& settings, const std::string& name) {
  for (const auto& [flag, value] : settings)
    if (flag == name) return value;
  return "";
}

constexpr const char* kNotGiven = "not given";

/// The value for people.
std::string said(const std::string& flag, const std::string& value) {
  static const std::vector<std::pair<std::string, std::string>> absent = {
      {"--steps", "0"}, {"--epochs", "0"}, {"--eval-every", "0"}, {"--warmup-ratio", "-1"}};
  return value.empty() || std::ranges::find(absent, std::pair(flag, value)) != absent.end() ? kNotGiven : value;
}

/// What a change that a resumed run may make does to it; null if the run may not make it.
const char* effect_of_change(const std::string& flag, const std::string& before, const std::string& now) {
  if (flag == "--patience") return "";  // says how long a run goes on, not what a step does
  // All types but f64 keep the same masters and moments, so a run may go on in another of them.
  if (flag == "--precision" && before != "f64" && now != "f64") return ": from here on steps are rounded as it says";
  double was = 0, is = 0;
  const auto read = [](const std::string& text, double& value) {
    return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc{} && value > 0;
  };
  if (!read(before, was) || !read(now, is)) return nullptr;
  if ((flag == "--steps" || flag == "--epochs") && is > was) return "";
  if (flag == "--micro-batch-size" && is < was)
    return ": gradients are added up in another order, so the last bits of the result change";
  return nullptr;
}

/// A figure that was not finite is null in the file.
double figure(const io::Json& value) { return value.is_number() ? value.get<double>() : std::nan(""); }

Metrics figures(const io::Json& object) {
  Metrics metrics;
  for (const auto& [name, value] : object.items()) metrics.push_back({name, figure(value)});
  return metrics;
}

io::Json json_of(const Metrics& metrics) {
  io::Json object = io::Json::object();
  for (const Metric& metric : metrics) object[metric.name] = metric.value;
  return object;
}

}  // namespace

InputFile InputFile::of(const std::filesystem::path& path) {
  InputFile result{.path = path.string()};
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(Failure::io, "{}: open: {}", path.string(), std::strerror(errno));
  std::string block(std::size_t{1} << 20, '\0');
  while (in) {
    io::leave_if_requested("reading " + result.path);
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    if (in.bad()) fail(Failure::io, "{}: read: {}", path.string(), std::strerror(errno));
    const std::string_view read(block.data(), static_cast<std::size_t>(in.gcount()));
    result.crc32c = io::crc32c(read, result.crc32c);
    result.bytes += read.size();
  }
  return result;
}

std::vector<std::string> Conditions::changes_since(const Conditions& checkpoint,
                                                   const std::string& checkpoint_name) const {
  std::vector<std::string> changes, differences;
  for (const auto& [flag, value] : settings) {
    const std::string before = value_of(checkpoint.settings, flag);
    if (before == value || (before.empty() && !is_given(flag, command))) continue;
    const std::string text = fmt::format("{} was {}, now {}", flag, said(flag, before), said(flag, value));
    if (const char* effect = effect_of_change(flag, before, value)) changes.push_back(text + effect);
    else differences.push_back(text);
  }
  for (std::size_t i = 0; i < std::max(inputs.size(), checkpoint.inputs.size()); ++i) {
    if (i >= inputs.size() || i >= checkpoint.inputs.size()) {
      differences.push_back(
          fmt::format("{}, now {}", io::counted(checkpoint.inputs.size(), "input file"), inputs.size()));
      break;
    }
    const InputFile &before = checkpoint.inputs[i], &now = inputs[i];
    if (before.bytes != now.bytes || before.crc32c != now.crc32c)
      differences.push_back(fmt::format("{} has other contents than {} had", now.path, before.path));
  }
  if (!differences.empty()) {
    const bool in_epochs = said("--epochs", value_of(checkpoint.settings, "--epochs")) != kNotGiven;
    fail(Failure::usage,
         "--resume: expected the settings and files of {}, got others: {}; hint: --resume with --output alone takes "
         "all from run_config.json, {} may be raised, and another --output begins a new run",
         checkpoint_name, fmt::join(differences, "; "), in_epochs ? "--epochs" : "--steps");
  }
  return changes;
}

void LossSums::add(const Metrics& losses) {
  if (!std::ranges::equal(sums, losses, {}, &Metric::name, &Metric::name)) *this = {.steps = 0, .sums = losses};
  else
    for (std::size_t i = 0; i < losses.size(); ++i) sums[i].value += losses[i].value;
  ++steps;
}

Metrics LossSums::means() const {
  Metrics means = sums;
  for (Metric& mean : means) mean.value /= static_cast<double>(steps);
  return means;
}

bool RunState::note_evaluation(const Metrics& metrics, std::optional<double> score) {
  // A score that is no number is not better than any, and the first that is one is better than it.
  const bool better = score && (best.score ? *score > *best.score : !std::isnan(*score));
  if (better || !best.score) evaluation = metrics;
  if (better) {
    best = {.score = score, .step = steps_done};
    evaluations_since_best = 0;
  } else if (score) {
    ++evaluations_since_best;
  }
  return better;
}

io::Json RunState::to_json(const Conditions& conditions) const {
  io::Json json{{"format_version", kStateVersion},
                {"step", steps_done},
                {"epoch", next.epoch},
                {"step_in_epoch", next.step},
                {"random_numbers", kRandomNumbers},
                {"loss_scale",
                 {{"scale", loss_scale.scale},
                  {"good_steps", loss_scale.good_steps},
                  {"skipped_steps", loss_scale.skipped_steps}}},
                {"evaluation_due", evaluation_due},
                {"best_step", best.step},
                {"best_model_crc32c", best.crc32c},
                {"evaluations_since_best", evaluations_since_best}};
  if (best.score) json["best_score"] = *best.score;
  json["evaluation"] = json_of(evaluation);
  json["unlogged"] = {{"steps", unlogged.steps}, {"loss_sums", json_of(unlogged.sums)}};
  json["settings"] = io::Json::object();
  for (const auto& [flag, value] : conditions.settings) json["settings"][flag] = value;
  json["inputs"] = io::Json::array();
  for (const InputFile& input : conditions.inputs)
    json["inputs"].push_back({{"path", input.path}, {"bytes", input.bytes}, {"crc32c", input.crc32c}});
  return json;
}

RunState parse_run_state(const io::Json& json, const std::string& file) {
  io::JsonReader reader(json, {file});
  if (const std::int64_t version = reader.whole("format_version", {}); version != kStateVersion)
    fail(Failure::model,
         "{}: format_version: expected {}, got {}; hint: the version of bertrand that began a run goes on with it; its "
         "model may be loaded for a new one",
         file, kStateVersion, version);
  if (const std::string numbers = reader.text("random_numbers"); numbers != kRandomNumbers)
    fail(Failure::model, "{}: random_numbers: expected {}, got {}", file, kRandomNumbers, numbers);
  io::JsonReader scale = reader.object("loss_scale");
  constexpr io::JsonReader::Whole kCrc{0, std::numeric_limits<std::uint32_t>::max()};
  const std::int64_t steps_done = reader.whole("step", {});
  const io::JsonReader::Whole done{0, steps_done};  // nothing has come more often than steps
  RunState state{.steps_done = steps_done,
                 .loss_scale = {.scale = scale.real("scale", {.least = 0x1p-10, .most = LossScaling().largest}),
                                .good_steps = scale.whole("good_steps", done),
                                .skipped_steps = scale.whole("skipped_steps", done)},
                 .next = {.epoch = reader.whole("epoch", done), .step = reader.whole("step_in_epoch", done)},
                 .evaluation_due = reader.flag("evaluation_due"),
                 .best = {.step = reader.whole("best_step", done),
                          .crc32c = static_cast<std::uint32_t>(reader.whole("best_model_crc32c", kCrc, 0))},
                 .evaluations_since_best = reader.whole("evaluations_since_best", done, 0)};
  if (const io::Json* score = reader.find("best_score")) state.best.score = figure(*score);
  state.evaluation = figures(reader.object("evaluation").json());
  if (reader.find("unlogged")) {  // an older version wrote none
    io::JsonReader unlogged = reader.object("unlogged");
    state.unlogged = {.steps = unlogged.whole("steps", done), .sums = figures(unlogged.object("loss_sums").json())};
  }
  return state;
}

Conditions parse_conditions(const io::Json& json, const std::string& file) {
  io::JsonReader reader(json, {file});
  Conditions conditions;
  io::JsonReader settings = reader.object("settings");
  for (const auto& [flag, value] : settings.json().items()) {
    if (!value.is_string()) settings.refuse(flag, "a string", &value);
    conditions.settings.emplace_back(flag, value.get<std::string>());
  }
  for (const io::Json& entry : reader.list("inputs")) {
    io::JsonReader input(entry, {file}, "inputs.");
    constexpr io::JsonReader::Whole kCrc{0, std::numeric_limits<std::uint32_t>::max()};
    conditions.inputs.push_back({.path = input.text("path"),
                                 .bytes = static_cast<std::uint64_t>(input.whole("bytes", {})),
                                 .crc32c = static_cast<std::uint32_t>(input.whole("crc32c", kCrc))});
  }
  return conditions;
}

}  // namespace bertrand::training
