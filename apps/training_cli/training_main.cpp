// A table's flags on a command line.
#include "apps/training_cli/training_main.h"

#include "apps/cli/main_guard.h"
#include "apps/training_cli/table_flags.h"
#include "io/say.h"

namespace bertrand::cli {

int run_training_main(const std::string& description, int argc, char** argv, const TrainingProgram& program) {
  training::FlagTable table;
  program.add_flags(table);
  return run_main(
      description, argc, argv, [&](CLI::App& app) { add_table(app, table); },
      [&](const std::vector<std::string>& command) {
        program.settings.command = command;
        if (program.settings.json_lines) io::set_line_format(io::LineFormat::jsonl);
        program.body();
      });
}

}  // namespace bertrand::cli
