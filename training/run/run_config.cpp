// run_config.json: every effective setting under the name of its flag.
#include "training/run/run_config.h"

#include <fmt/chrono.h>

#include "distributed/replica_group.h"
#include "io/json.h"
#include "io/machine.h"
#include "io/version.h"
#include "training/run/run_files.h"

namespace bertrand::training {

namespace {

constexpr const char* kEnded = "ended";

/// A number if a number is written so, else text: a column may be called 1e2.
io::Json json_value(const std::string& value) {
  const std::optional<io::Json> json = io::try_parse_json(value);
  return json && json->dump() == value ? *json : io::Json(value);
}

/// Text stays text, though it may look like a number.
io::Json json_value(const Flag& flag) {
  const std::string text = flag.target.value();
  if (flag.type == "FLOAT") return io::parse_json(text, {flag.name}).get<double>();
  return flag.type.empty() || flag.type == "INT" ? io::parse_json(text, {flag.name}) : io::Json(text);
}

}  // namespace

void write_run_config(io::Files& files, const RunConfig& config) {
  const Settings& settings = config.settings;
  io::Json json{{"program", config.program},
                {"version", version()},
                {"command", settings.command},
                {"directory", std::filesystem::current_path().string()},
                {"started", fmt::format("{:%FT%TZ}", fmt::gmtime(config.started))},
                {"machine",
                 {{"host", io::host_name()},
                  {"processor", io::processor_name()},
                  {"memory_bytes", io::memory_bytes()},
                  {"build", build_hash()}}},
                {"device", config.self.backend().description()},
                {"replicas", config.self.size()}};
  io::Json& all = json["settings"];
  for (const auto& [flag, value] : config.conditions.settings) all[flag.substr(2)] = json_value(value);
  Settings copy = settings;
  FlagTable table;
  add_flags(table, copy);
  for (const Flag& flag : table.flags())
    if (flag.role == Role::recorded || flag.role == Role::agreed) all[flag.name.substr(2)] = json_value(flag);
  all.erase("warmup-ratio");
  if (config.plan) {  // what the run's length came to, in place of the flag that was not given
    all["steps"] = config.plan->total_steps;
    all["epochs"] = config.plan->epochs;
    all["warmup-steps"] = config.plan->schedule.warmup_steps;
  } else {
    for (const char* length : {"steps", "epochs", "warmup-steps"}) all.erase(length);
  }
  for (const InputFile& input : config.conditions.inputs)
    json["inputs"].push_back({{"path", input.path}, {"bytes", input.bytes}});
  if (config.plan) {
    json["parameters"] = config.plan->parameters;
    json[kEnded] = false;
  }
  io::replace_file(files, settings.output / kRunConfig, io::json_text(json, 2) + "\n");
}

void note_end(io::Files& files, const std::filesystem::path& directory) {
  const std::filesystem::path record = directory / kRunConfig;
  if (!is_own_run_config(record)) return;
  io::Json json = io::read_json(record);
  json[kEnded] = true;
  io::replace_file(files, record, io::json_text(json, 2) + "\n");
}

bool is_cut_short(const std::filesystem::path& directory) {
  const std::filesystem::path record = directory / kRunConfig;
  if (!is_own_run_config(record)) return false;
  const io::Json json = io::read_json(record);
  return json.contains(kEnded) && json[kEnded] == false;
}

}  // namespace bertrand::training
