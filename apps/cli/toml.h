// Files of settings: TOML (https://toml.io), read by toml++.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace bertrand::cli {

/// name = value, with every number, true and false as text.
struct TomlSetting {
  std::string name;
  std::vector<std::string> values;  ///< of a list, or one
  std::size_t depth = 0;            ///< how many names its section has
};

/// The settings of a file, in its order: those without a section, and those of the sections that `is_wanted`, which is
/// asked of each with its names from the outermost inwards. Throws Error(Failure::usage), which names the line, if the
/// file is no TOML, or if a value is a date, a table or a list of lists.
std::vector<TomlSetting> read_toml(const std::filesystem::path& file,
                                   const std::function<bool(const std::vector<std::string>&)>& is_wanted);

/// A value as TOML has it: bare if it is a number or true or false that is read as the same text, else in double
/// quotes.
std::string toml_value(const std::string& value);

}  // namespace bertrand::cli
