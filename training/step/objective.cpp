#include "training/step/objective.h"

#include "training/run/run_files.h"

namespace bertrand::training {

std::map<std::string, std::uint32_t> Objective::save(io::Files& files, const std::filesystem::path& directory,
                                                     const nn::ParameterSet& parameters) const {
  return nn::save(parameters, files, directory / kWeights);
}

void Objective::load(const std::filesystem::path& directory, nn::ParameterSet& parameters) const {
  const std::filesystem::path file = directory / kWeights;
  nn::require(nn::load(parameters, file), file, [](const std::string&) { return false; });
}

}  // namespace bertrand::training
