// Flags that users of other programs type: those of Hugging Face's Trainer, and those of Google's scripts.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/command_line.h"

namespace bertrand::cli {

/// The arguments with the names that flags of `app` and some of their values have here, and a note on stderr for each
/// flag that was renamed. Of a name that `app` itself has, nothing changes. Throws Error(Failure::usage), which says
/// what to do, if a value has no equal here.
std::vector<std::string> with_own_names(const CLI::App& app, const std::vector<std::string>& arguments);

/// --save-every 10min, 2h or 90s becomes --save-every-minutes.
void use_own_units(const CLI::App& app, Given& flag);
std::vector<std::string> with_own_units(const CLI::App& app, const std::vector<std::string>& arguments);

/// What to do in place of a flag that is another program's: what it is called in `app`, or what there is if it has no
/// equal; none if it is not known.
std::optional<std::string> hint_for(const CLI::App& app, const std::string& name);

}  // namespace bertrand::cli
