// The flags of a table as options of CLI11.
#include "apps/training_cli/table_flags.h"

#include <CLI/CLI.hpp>

#include "apps/cli/option_values.h"

namespace bertrand::cli {
namespace {

CLI::Option* add_flag(CLI::App& app, const training::Flag& flag) {
  const auto set = flag.target.set;
  if (flag.page)
    return app.add_flag_callback(
        flag.name, [page = flag.page] { throw CLI::CallForVersion(page(), 0); }, flag.help);
  if (flag.type.empty()) {
    const std::string names = flag.negative.empty() ? flag.name : flag.name + ",!" + flag.negative;
    return app.add_flag_function(
        names, [set](std::int64_t count) { set({count > 0 ? "true" : "false"}); }, flag.help);
  }
  if (flag.several) return app.add_option_function<std::vector<std::string>>(flag.name, set, flag.help);
  return app.add_option_function<std::string>(
      flag.name, [set](const std::string& value) { set({value}); }, flag.help);
}

}  // namespace

void add_table(CLI::App& app, const training::FlagTable& table) {
  for (const training::Flag& flag : table.flags()) {
    CLI::Option* option = add_flag(app, flag)->group(flag.group)->required(flag.required);
    if (!flag.type.empty()) option->type_name(flag.type);
    set_words(option, flag.words);
  }
  for (const training::Flag& flag : table.flags())
    if (!flag.excludes.empty()) app.get_option(flag.name)->excludes(app.get_option(flag.excludes));
}

}  // namespace bertrand::cli
