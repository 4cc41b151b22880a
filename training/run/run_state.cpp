#include "training/run/run_state.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "io/crc32c.h"
#include "io/error.h"

namespace bertrand::training {

namespace {

constexpr int kFormatVersion = 2;

std::string value_of(const std::vector<std::pair<std::string, std::string>>& settings, const std::string& name) {
  for (const auto& [flag, value] : settings)
    if (flag == name) return value;
  return "";
}

/// Runs `read`, turning what nlohmann throws into one line.
template <class Read>
auto parsed(const std::string& file, Read&& read) {
  try {
    return read();
  } catch (const nlohmann::json::exception& error) {
    fail(Failure::model, "{}: resume state: expected the keys of format version {}: {}", file, kFormatVersion,
         error.what());
  }
}

}  // namespace

InputFile InputFile::of(const std::filesystem::path& path) {
  InputFile result{.path = path.string()};
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(Failure::io, "{}: open: {}", path.string(), std::strerror(errno));
  std::string block(std::size_t{1} << 20, '\0');
  while (in) {
    in.read(block.data(), static_cast<std::streamsize>(block.size()));
    if (in.bad()) fail(Failure::io, "{}: read: {}", path.string(), std::strerror(errno));
    const std::string_view read(block.data(), static_cast<std::size_t>(in.gcount()));
    result.crc32c = io::crc32c(read, result.crc32c);
    result.bytes += read.size();
  }
  return result;
}

void Conditions::check_equal_to(const Conditions& checkpoint, const std::string& checkpoint_name) const {
  std::vector<std::string> differences;
  for (const auto& [flag, value] : settings)
    if (const std::string before = value_of(checkpoint.settings, flag); before != value)
      differences.push_back(fmt::format("{} was {}, now {}", flag, before.empty() ? "not given" : before, value));
  for (std::size_t i = 0; i < std::max(inputs.size(), checkpoint.inputs.size()); ++i) {
    if (i >= inputs.size() || i >= checkpoint.inputs.size()) {
      differences.push_back(fmt::format("{} input files, now {}", checkpoint.inputs.size(), inputs.size()));
      break;
    }
    const InputFile &before = checkpoint.inputs[i], &now = inputs[i];
    if (before.bytes != now.bytes || before.crc32c != now.crc32c)
      differences.push_back(fmt::format("{} has other contents than {} had", now.path, before.path));
  }
  if (!differences.empty())
    fail(Failure::usage, "--resume: expected the settings and files of {}, got others: {}", checkpoint_name,
         fmt::join(differences, "; "));
}

nlohmann::ordered_json RunState::to_json(const Conditions& conditions) const {
  nlohmann::ordered_json json{{"format_version", kFormatVersion},
                              {"step", steps_done},
                              {"epoch", next.epoch},
                              {"step_in_epoch", next.step},
                              {"random_numbers", "philox4x32-10"},
                              {"loss_scale",
                               {{"scale", loss_scale.scale},
                                {"good_steps", loss_scale.good_steps},
                                {"skipped_steps", loss_scale.skipped_steps}}},
                              {"evaluation_due", evaluation_due},
                              {"best_step", best.step},
                              {"best_model_crc32c", best.crc32c}};
  if (best.score) json["best_score"] = *best.score;
  json["evaluation"] = nlohmann::ordered_json::object();
  for (const Metric& metric : evaluation) json["evaluation"][metric.name] = metric.value;
  json["settings"] = nlohmann::ordered_json::object();
  for (const auto& [flag, value] : conditions.settings) json["settings"][flag] = value;
  json["inputs"] = nlohmann::ordered_json::array();
  for (const InputFile& input : conditions.inputs)
    json["inputs"].push_back({{"path", input.path}, {"bytes", input.bytes}, {"crc32c", input.crc32c}});
  return json;
}

std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

RunState parse_run_state(const nlohmann::ordered_json& json, const std::string& file) {
  return parsed(file, [&] {
    if (const int version = json.at("format_version"); version != kFormatVersion)
      fail(Failure::model, "{}: format_version: expected {}, got {}", file, kFormatVersion, version);
    const auto& scale = json.at("loss_scale");
    RunState state{.steps_done = json.at("step"),
                   .loss_scale = {.scale = scale.at("scale"),
                                  .good_steps = scale.at("good_steps"),
                                  .skipped_steps = scale.at("skipped_steps")},
                   .next = {.epoch = json.at("epoch"), .step = json.at("step_in_epoch")},
                   .evaluation_due = json.at("evaluation_due"),
                   .best = {.step = json.at("best_step"), .crc32c = json.value("best_model_crc32c", 0u)}};
    const auto number = [](const auto& value) { return value.is_null() ? std::nan("") : value.template get<double>(); };
    if (json.contains("best_score")) state.best.score = number(json.at("best_score"));
    for (const auto& [name, value] : json.at("evaluation").items()) state.evaluation.push_back({name, number(value)});
    return state;
  });
}

Conditions parse_conditions(const nlohmann::ordered_json& json, const std::string& file) {
  return parsed(file, [&] {
    Conditions conditions;
    for (const auto& [flag, value] : json.at("settings").items()) conditions.settings.emplace_back(flag, value);
    for (const auto& input : json.at("inputs"))
      conditions.inputs.push_back({input.at("path"), input.at("bytes"), input.at("crc32c")});
    return conditions;
  });
}

}  // namespace bertrand::training
