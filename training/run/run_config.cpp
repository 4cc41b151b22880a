// run_config.json: every effective setting under the name of its flag.
#include "training/run/run_config.h"

#include "distributed/replica_group.h"
#include "io/json.h"
#include "io/version.h"

namespace bertrand::training {

void write_run_config(io::Files& files, const RunConfig& config) {
  const Settings& settings = config.settings;
  io::Json json{{"program", config.program},
                {"version", version()},
                {"command", settings.command},
                {"device", config.self.backend().description()},
                {"replicas", config.self.size()}};
  io::Json& all = json["settings"];
  for (const auto& [flag, value] : config.conditions.settings)
    all[flag.substr(2)] = io::try_parse_json(value).value_or(value);
  all["precision"] = settings.precision_name();
  all["output"] = settings.output.string();
  all["device"] = settings.device;
  all["replicas"] = settings.replicas;
  all["cpu-kernels"] = settings.cpu_kernels;
  all["collective-timeout"] = settings.collective_timeout;
  all["measured-products"] = settings.measured_products;
  all["log-every"] = settings.log_every;
  all["save-every"] = settings.save_every;
  all["keep"] = settings.keep;
  // What the run's length came to, in place of the flag that was not given.
  all["steps"] = config.plan.total_steps;
  all["epochs"] = config.plan.epochs;
  all["warmup-steps"] = config.plan.schedule.warmup_steps;
  all.erase("warmup-ratio");
  for (const InputFile& input : config.conditions.inputs)
    json["inputs"].push_back({{"path", input.path}, {"bytes", input.bytes}});
  json["parameters"] = config.plan.parameters;
  io::replace_file(files, settings.output / "run_config.json", io::json_text(json, 2) + "\n");
}

}  // namespace bertrand::training
