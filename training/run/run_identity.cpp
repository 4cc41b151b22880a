#include "training/run/run_identity.h"

#include "distributed/agreement.h"
#include "distributed/exchange.h"
#include "io/version.h"
#include "tensor/backends.h"
#include "training/run/devices.h"

namespace bertrand::training {
namespace {

InputFile facts_of(const RunIdentity::File& file) {
  const InputFile* known = std::get_if<InputFile>(&file);
  return known ? *known : InputFile::of(std::get<std::filesystem::path>(file));
}

/// Throws Error(Failure::usage) unless all processes have these conditions and files.
void require_agreement(distributed::Collective& processes, const Conditions& conditions,
                       const std::vector<InputFile>& other_files) {
  distributed::Facts facts = conditions.settings;
  std::vector<InputFile> all = conditions.inputs;
  all.insert(all.end(), other_files.begin(), other_files.end());
  for (std::size_t i = 0; i < all.size(); ++i)
    facts.emplace_back(fmt::format("input file {}", i + 1),
                       fmt::format("{} bytes with CRC-32C {:08x}", all[i].bytes, all[i].crc32c));
  distributed::require_agreement(processes, *open_cpu({.threads = 1}), facts);
}

}  // namespace

void agree_on_start(distributed::Collective& processes, const Settings& settings) {
  distributed::Facts facts{
      {"version", std::string(version())},
      {"build", std::string(build_hash())},
      {"--cpu-kernels", settings.cpu_kernels == "auto" ? runnable_cpu_kernels().front() : settings.cpu_kernels},
      {"the number of replicas", fmt::format("{}", replicas_of_process(settings))},
      {"the kind of device", settings.device.substr(0, settings.device.find(':'))},
  };
  for (const auto& [flag, value] : settings.values(Role::agreed)) facts.emplace_back(flag, value);
  for (const auto& [flag, value] : settings.values(Role::command))
    facts.emplace_back(flag, value == "true" ? "given" : "not given");
  distributed::require_agreement(processes, *open_cpu({.threads = 1}), facts);
}

Conditions agree_on_run(distributed::Collective* processes, const Settings& settings, const RunIdentity& identity) {
  Conditions conditions{.settings = settings.values(Role::decisive), .inputs = {}, .command = settings.command};
  conditions.settings.insert(conditions.settings.end(), identity.settings.begin(), identity.settings.end());
  std::vector<InputFile> other_files;
  distributed::work_apart(processes, [&] {
    if (processes || settings.resume || !settings.is_rehearsal())
      for (const auto& file : identity.inputs) conditions.inputs.push_back(facts_of(file));
    if (processes)
      for (const auto& file : identity.other_files) other_files.push_back(facts_of(file));
  });
  if (processes) require_agreement(*processes, conditions, other_files);
  return conditions;
}

}  // namespace bertrand::training
