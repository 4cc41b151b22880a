// A recipe: settings that somebody published, under a name. It sets the defaults of flags; the command line wins.
#pragma once
#include <string>
#include <vector>

#include "training/run/flag_table.h"

namespace bertrand::training {

struct Recipe {
  std::string name;
  std::string source;   ///< who published it, and what of it the flags cannot say
  FlagValues settings;  ///< each value as its flag prints it
  /// Further values that were published. plan_text() compares them with those of the run, but nothing sets them: they
  /// are the defaults, or as --keep-moments belong to a flag beside which the user must give another. Empty: none.
  FlagValues with = {};
};

/// The recipe of this name. Throws Error(Failure::usage) with the nearest name if there is none.
const Recipe& find_recipe(const std::vector<Recipe>& recipes, const std::string& name);

/// Sets the flags of the recipe that `command` (flags and values, as --help writes them) does not set. A flag of the
/// command also stands for one that it excludes: --epochs for --steps.
void apply(const Recipe& recipe, const FlagTable& table, const std::vector<std::string>& command);

/// Lines of a plan: the recipe's name, and each flag of it whose value is another one, with both values. `table` has
/// the settings as they are used.
std::string plan_text(const Recipe& recipe, const FlagTable& table, const std::vector<std::string>& command);

/// All recipes with their flags, for people.
std::string list_text(const std::vector<Recipe>& recipes);

}  // namespace bertrand::training
