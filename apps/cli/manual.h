// What a program says of itself, taken once from its flags: manual pages and completions are written from it.
#pragma once
#include <string>
#include <vector>

#include "apps/cli/option_values.h"
#include "io/choices.h"

namespace CLI {
class App;
}

namespace bertrand::cli {

/// A flag, or an argument without one.
struct ManualFlag {
  std::vector<std::string> names;  ///< --shuffle, --no-shuffle; of an argument without a flag its name alone
  std::string value;               ///< its type, as INT; empty: a switch
  std::string help;                ///< with unit, range and default
  bool required = false;
  bool several = false;            ///< takes one value or more
  std::vector<std::string> words;  ///< values that have names
  Paths paths = Paths::none;
};

struct ManualSection {
  std::string heading;      ///< may be empty
  bool is_general = false;  ///< of the flags that every program has
  std::vector<ManualFlag> flags;
};

/// A program, or a command of one.
struct ManualCommand {
  std::string name;                     ///< prepare; of a command records
  std::vector<std::string> paragraphs;  ///< of the description; one that begins with a space is a table, as it stands
  std::vector<ManualFlag> arguments;    ///< without a flag, in their order
  std::vector<ManualSection> sections;  ///< of flags
  std::vector<ManualCommand> commands;

  /// The first sentence of the description, without its full stop.
  std::string summary() const;
  /// The flags of all sections.
  std::vector<ManualFlag> flags() const;
};

/// A thing beside the flags, and what it means.
struct ManualFact {
  std::string name, meaning;
};

struct Manual {
  ManualCommand program;
  std::vector<ManualFact> examples;  ///< a command, and what it does
  std::vector<ManualFact> exit_codes, environment, files;
};

/// The manual of a program whose options are all declared. Its name is that of `app` without "bertrand-".
Manual manual_of(CLI::App& app);

/// The exit codes of every program, and what they mean.
const std::vector<ManualFact>& exit_codes();

/// One function for each form, each the whole text of a file.
using ManualWriter = std::string (*)(const Manual& manual);
std::string man_page(const Manual& manual);         ///< roff of section 1
std::string markdown(const Manual& manual);         ///< a chapter of docs/cli.md
std::string bash_completion(const Manual& manual);  ///< for bertrand-<program>; that of `bertrand` calls its function
std::string zsh_completion(const Manual& manual);   ///< an autoloaded function, the same
std::string fish_completion(const Manual& manual);

/// As --print has them.
const io::Choices<ManualWriter>& manual_writers();

}  // namespace bertrand::cli
