// Flags that users of other programs type: those of Hugging Face's Trainer, and those of Google's scripts.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace bertrand::cli {

/// The arguments with the names that flags of `app` have here, and a note on stderr for each that was renamed. Of a
/// name that `app` itself has, nothing changes.
std::vector<std::string> with_own_names(const CLI::App& app, const std::vector<std::string>& arguments);

/// What to do in place of a flag that is another program's and has no equal here; none if it is not known.
std::optional<std::string> hint_for(const std::string& name);

}  // namespace bertrand::cli
