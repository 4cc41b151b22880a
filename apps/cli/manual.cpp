// From the options of CLI11 to a manual.
#include "apps/cli/manual.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/cli/command_line.h"
#include "apps/cli/examples.h"
#include "io/error.h"

namespace bertrand::cli {
namespace {

/// Paragraphs are divided by empty lines. Lines of a table, which begin with a space, stay as they are; others are
/// joined.
std::vector<std::string> paragraphs_of(const std::string& text) {
  std::vector<std::string> paragraphs(1);
  for (const std::string& line : CLI::detail::split(text, '\n')) {
    std::string& paragraph = paragraphs.back();
    if (line.empty()) {
      if (!paragraph.empty()) paragraphs.emplace_back();
    } else {
      if (!paragraph.empty()) paragraph += paragraph.starts_with(' ') ? '\n' : ' ';
      paragraph += line;
    }
  }
  if (paragraphs.back().empty()) paragraphs.pop_back();
  return paragraphs;
}

std::string help_of(const CLI::Option& option) {
  std::string help = option.get_description();
  if (!option.get_default_str().empty()) help += fmt::format(" (default {})", option.get_default_str());
  for (const CLI::Option* other : option.get_excludes()) help += "; not with " + other->get_name();
  return help;
}

ManualFlag flag_of(const CLI::Option& option) {
  ManualFlag flag{.names = {},
                  .value = {},
                  .help = help_of(option),
                  .required = option.get_required(),
                  .several = option.get_expected_max() >= CLI::detail::expected_max_vector_size,
                  .words = words_of(option),
                  .paths = paths_of(option)};
  if (!option.nonpositional()) {
    flag.names = {option.get_name(true)};
    return flag;
  }
  for (const std::string& name : option.get_snames()) flag.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) flag.names.push_back("--" + name);
  // CLI11 says after a colon what it checks.
  if (option.get_type_size() > 0) flag.value = CLI::detail::split(option.get_type_name(), ':').front();
  return flag;
}

/// Flags of no heading come first, those that every program has come last.
void add_flags(ManualCommand& command, const CLI::App& app) {
  ManualSection none, general{.heading = "general", .is_general = true};
  std::vector<ManualSection> named;
  for (const CLI::Option* option : app.get_options()) {
    const std::string& group = option->get_group();
    if (group.empty()) continue;  // hidden
    const ManualFlag flag = flag_of(*option);
    const bool is_general = option == app.get_help_ptr() || option->check_lname("version");
    if (!option->nonpositional()) command.arguments.push_back(flag);
    else if (is_general) general.flags.push_back(flag);
    else if (group == "Options") none.flags.push_back(flag);
    else {
      auto section = std::ranges::find(named, group, &ManualSection::heading);
      if (section == named.end()) section = named.insert(named.end(), {.heading = group});
      section->flags.push_back(flag);
    }
  }
  if (!none.flags.empty()) command.sections.push_back(none);
  command.sections.insert(command.sections.end(), named.begin(), named.end());
  if (!general.flags.empty()) command.sections.push_back(general);
}

ManualCommand command_of(CLI::App& app) {
  ManualCommand command{.name = app.get_name(), .paragraphs = paragraphs_of(app.get_description())};
  add_flags(command, app);
  for (CLI::App* one : app.get_subcommands(nullptr)) command.commands.push_back(command_of(*one));
  return command;
}

bool trains(const ManualCommand& program) {
  return std::ranges::any_of(program.flags(), [](const ManualFlag& flag) { return flag.names.back() == "--resume"; });
}

std::vector<ManualFact> environment_of(const ManualCommand& program) {
  std::vector<ManualFact> all{
      {"BERTRAND_MODULES", "folder of the modules, the only one that is looked in if it is set"},
      {"BERTRAND_FLAG", "value of --flag, if it is not given: BERTRAND_THREADS=2 is --threads 2"}};
  if (trains(program)) {
    all.push_back({"OMPI_COMM_WORLD_SIZE, PMI_SIZE, SLURM_STEP_NUM_TASKS",
                   "set by mpirun and srun: the number of processes that make one run"});
    all.push_back({"OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID",
                   "set by mpirun and srun: which of them this is, as errors say"});
  }
  return all;
}

std::vector<ManualFact> files_of(const ManualCommand& program) {
  std::vector<ManualFact> all;
  if (trains(program))
    all = {{"OUTPUT/config.json, model.safetensors, vocab.txt, tokenizer.json, tokenizer_config.json",
            "the model: the last one, or the one that did best on --eval"},
           {"OUTPUT/checkpoint-STEP/", "the same, and what --resume needs"},
           {"OUTPUT/run_config.json", "every setting, the command, the version"},
           {"OUTPUT/metrics.jsonl, events.out.tfevents.*", "figures by step, for programs and for TensorBoard"},
           {"OUTPUT/eval_results.txt, eval_results.json", "figures of the last evaluation"}};
  all.push_back({"PREFIX/lib/MULTIARCH/bertrand/libbertrand_*.so",
                 "modules: kernels, GPUs, processes; beside the program where it was built, PREFIX/lib/bertrand on "
                 "systems without multiarch"});
  return all;
}

}  // namespace

std::string ManualCommand::summary() const {
  std::string text = paragraphs.empty() ? "" : paragraphs.front();
  text.resize(std::min(text.find(". "), text.size()));
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::vector<ManualFlag> ManualCommand::flags() const {
  std::vector<ManualFlag> all;
  for (const ManualSection& section : sections) all.insert(all.end(), section.flags.begin(), section.flags.end());
  return all;
}

Manual manual_of(CLI::App& app) {
  Manual manual{.program = command_of(app), .examples = {}, .exit_codes = exit_codes(), .environment = {}, .files = {}};
  manual.program.name = program_name(app);
  manual.environment = environment_of(manual.program);
  manual.files = files_of(manual.program);
  for (const Example& example : examples_of(manual.program.name, "bertrand " + manual.program.name))
    manual.examples.push_back({.name = example.command, .meaning = example.what});
  return manual;
}

const std::vector<ManualFact>& exit_codes() {
  const auto code = [](Failure failure) { return std::to_string(static_cast<int>(failure)); };
  static const std::vector<ManualFact> all{
      {"0", "done"},
      {code(Failure::bug), "a bug"},
      {code(Failure::usage), "wrong flags"},
      {code(Failure::input), "bad input data"},
      {code(Failure::model), "bad or missing model or checkpoint"},
      {code(Failure::io), "input or output failed"},
      {code(Failure::numerics), "a number that is not finite"},
      {code(Failure::memory), "out of memory"},
      {code(Failure::distributed), "another replica failed or a GPU was lost"},
      {code(Failure::interrupted),
       "interrupted: training saved the steps that were made, and --resume goes on; predict wrote the answers that it "
       "had; prepare corpus and predictions of --task msmarco go on where they were; other work wrote nothing"},
      {"130 or 143",
       "ended at once by SIGINT or SIGTERM: evaluate, report, prepare tokens and prepare dump by the first; all others "
       "by a second that comes half a second later or more, and training then loses the steps since its last "
       "checkpoint"}};
  return all;
}

const io::Choices<ManualWriter>& manual_writers() {
  static const io::Choices<ManualWriter> all{{"man", man_page},
                                             {"markdown", markdown},
                                             {"bash", bash_completion},
                                             {"zsh", zsh_completion},
                                             {"fish", fish_completion}};
  return all;
}

}  // namespace bertrand::cli
