// serve's flags.
#pragma once
#include <string>
#include <vector>

#include "apps/inference_cli/inference_flags.h"
#include "serving/service.h"

namespace CLI {
class App;
}

namespace bertrand::serve {

struct Options {
  std::vector<std::string> models;  ///< [NAME=]DIR
  std::filesystem::path base;       ///< of versions; empty: none
  std::string name;                 ///< of the model in `base`
  double look_every = 10;           ///< seconds
  double timeout = 30;              ///< seconds
  std::optional<double> null_threshold;
  std::string check;  ///< a server to check in place of serving
  serving::ServiceOptions service;
  std::vector<cli::OwnFlag> own_flags;
};

void add_flags(CLI::App& app, Options& options);
/// All flags together. Throws Error(Failure::usage) for those that do not fit each other.
serving::ServiceOptions complete(const Options& options);

/// What --help says before the flags.
extern const char* const kDescription;

}  // namespace bertrand::serve
