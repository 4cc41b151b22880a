// The flags that every training program has.
#pragma once
#include "training/run/settings.h"

namespace CLI {
class App;
}

namespace bertrand::cli {

/// Declares the common flags on `app`, reading into `settings`, whose values are shown as the defaults.
void add_common_flags(CLI::App& app, training::Settings& settings);

}  // namespace bertrand::cli
