// What a recipe sets, and what a command changes of it.
#include "training/run/recipe.h"

#include <fmt/ranges.h>

#include "io/error.h"
#include "io/nearest_name.h"

namespace bertrand::training {
namespace {

/// The flag that the command sets in the place of `flag`: itself, one that it excludes, or null.
const Flag* flag_given(const Flag& flag, const FlagTable& table, const std::vector<std::string>& command) {
  if (is_given(flag.name, command)) return &flag;
  if (!flag.excludes.empty() && is_given(flag.excludes, command)) return &table.flag(flag.excludes);
  return nullptr;
}

std::string shown(const std::string& value) { return value.empty() ? "none" : value; }

}  // namespace

const Recipe& find_recipe(const std::vector<Recipe>& recipes, const std::string& name) {
  std::vector<std::string> names;
  for (const Recipe& recipe : recipes) {
    if (recipe.name == name) return recipe;
    names.push_back(recipe.name);
  }
  fail(Failure::usage, "--recipe: expected one of {}, got \"{}\"{}; hint: --list-recipes shows what they set",
       fmt::join(names, ", "), name, io::did_you_mean(name, names));
}

void apply(const Recipe& recipe, const FlagTable& table, const std::vector<std::string>& command) {
  for (const auto& [name, value] : recipe.settings)
    if (const Flag& flag = table.flag(name); !flag_given(flag, table, command)) flag.target.set({value});
}

std::string plan_text(const Recipe& recipe, const FlagTable& table, const std::vector<std::string>& command) {
  std::string differences;
  FlagValues published = recipe.settings;
  published.insert(published.end(), recipe.with.begin(), recipe.with.end());
  for (const auto& [name, value] : published) {
    const Flag& own = table.flag(name);
    const Flag* const given = flag_given(own, table, command);
    const Flag& used = given ? *given : own;
    if (used.name == name && used.target.value() == value) continue;
    differences += fmt::format("              {} {} in the recipe, {}{} here\n", name, shown(value),
                               used.name == name ? "" : used.name + " ", shown(used.target.value()));
  }
  return fmt::format("  recipe      {}{}\n{}", recipe.name, differences.empty() ? ", as published" : ", but for",
                     differences);
}

std::string list_text(const std::vector<Recipe>& recipes) {
  std::string text;
  for (const Recipe& recipe : recipes) {
    text += fmt::format("{}\n  {}\n ", recipe.name, recipe.source);
    for (const auto& [flag, value] : recipe.settings) text += fmt::format(" {} {}", flag, value);
    text += "\n\n";
  }
  return text + "--recipe NAME sets these values; a flag beside it wins. Choose --micro-batch-size by the memory.";
}

}  // namespace bertrand::training
