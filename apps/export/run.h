// export's flags, and its run from a model to a directory of another form.
#pragma once
#include <filesystem>

#include "apps/export/formats.h"

namespace CLI {
class App;
}

namespace bertrand::exporting {

struct Options {
  Source source;
  Format format;
  bool external_data = false;
  std::filesystem::path output;
};

void add_flags(CLI::App& app, Options& options);

/// The output appears only when it is complete. Throws Error(Failure::usage) if something has its name already, and
/// Error(Failure::interrupted) if a signal asks to stop before that.
void run(const Options& options);

/// The same through `files`, which no signal stops.
void run(const Options& options, io::Files& files);

}  // namespace bertrand::exporting
