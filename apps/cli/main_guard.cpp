#include "apps/cli/main_guard.h"

#include <fcntl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <vector>

#include "apps/cli/command_line.h"
#include "apps/cli/foreign_flags.h"
#include "apps/cli/help.h"
#include "apps/cli/manual.h"
#include "apps/cli/option_values.h"
#include "apps/cli/settings_sources.h"
#include "distributed/processes.h"
#include "io/error.h"
#include "io/machine.h"
#include "io/nearest_name.h"
#include "io/say.h"

namespace bertrand::cli {
namespace {

/// The app that parsed last: a sub-command that was named, or `app` itself.
const CLI::App& innermost(const CLI::App& app) {
  const auto named = app.get_subcommands();
  return named.empty() ? app : innermost(*named.front());
}

bool needs_command(const CLI::App& app) { return !app.get_subcommands(nullptr).empty(); }

/// What stands where the name of a command belongs: `got` is none, or a word that names none.
[[noreturn]] void refuse_command(const CLI::App& app, const std::string& got) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  const auto nearest = io::nearest_name(got, names);
  fail(Failure::usage, "{}: expected one of {}, got {}; {}", app.get_name(), fmt::join(names, ", "), got,
       nearest ? fmt::format("did you mean {}?", *nearest) : fmt::format("hint: {} --help", app.get_name()));
}

[[noreturn]] void refuse_unknown(const CLI::App& app, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  const bool is_flag = name.starts_with("-");
  std::vector<std::string> known;
  for (const CLI::Option* option : innermost(app).get_options())
    for (const std::string& flag : option->get_lnames()) known.push_back("--" + flag);
  if (const auto hint = hint_for(innermost(app), name))
    fail(Failure::usage, "unknown option {}; hint: {}", name, *hint);
  std::error_code ignored;
  const CLI::Option* const model = innermost(app).get_option_no_throw("--model");
  if (!is_flag && model && model->count() == 0 && std::filesystem::is_directory(argument, ignored))
    fail(Failure::usage, "unknown argument {0}; hint: if it is a model: --model {0}", argument);
  const char* const kind = is_flag ? "option" : "argument";
  if (const auto nearest = io::nearest_name(name, known))
    fail(Failure::usage, "unknown {} {}; did you mean {}?", kind, name, *nearest);
  if (needs_command(innermost(app))) refuse_command(innermost(app), "none");
  std::string hint;
  for (const CLI::Option* option : innermost(app).get_options())
    if (is_flag && option->get_positional()) hint = option->get_name() + " stands without a flag; ";
  fail(Failure::usage, "unknown {} {}; hint: {}--help lists all", kind, name, hint);
}

/// Flags may be written with _ for -; values are left as they are.
std::vector<std::string> arguments(int argc, char** argv) {
  std::vector<std::string> all;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument.starts_with("--"))
      std::replace(argument.begin(),
                   argument.begin() + static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size())), '_',
                   '-');
    all.push_back(argument);
  }
  return all;
}

/// A mistyped command is the cause of unknown flags, and a mistyped flag of whatever else is missing, so each is named
/// first.
void refuse_unknown(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining(true);
  const CLI::App& command = innermost(app);
  if (!unknown.empty() && !unknown.front().starts_with("-") && needs_command(command))
    refuse_command(command, unknown.front());
  const auto flag = std::find_if(unknown.begin(), unknown.end(), [](const auto& s) { return s.starts_with("-"); });
  if (!unknown.empty()) refuse_unknown(app, flag == unknown.end() ? unknown.front() : *flag);
}

/// The first words of a flag's help.
std::string what_it_is(const CLI::Option& option) {
  const std::string& help = option.get_description();
  const std::string first = help.substr(0, help.find_first_of(":;(\n"));
  return first.substr(0, first.find_last_not_of(' ') + 1);
}

/// Says what CLI11 means in the form of every other error.
[[noreturn]] void refuse(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = innermost(app);
  if (needs_command(command)) refuse_command(command, "none");
  // What else a run that is resumed or replaced needs stands in its record.
  const CLI::Option* const output = command.get_option_no_throw("--output");
  for (const char* flag : {"--resume", "--overwrite"})
    if (const CLI::Option* option = command.get_option_no_throw(flag);
        option && option->count() > 0 && output->count() == 0)
      fail(Failure::usage, "--output: expected {}, got none; hint: {} is about what is there", output->get_type_name(),
           flag);
  const std::string what = error.what();
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    if (option->get_required() && option->count() == 0) {
      const bool is_flag = !option->get_positional();
      fail(Failure::usage, "{}: expected {}, got none; hint: {} is {}", is_flag ? name : command.get_name(),
           is_flag ? option->get_type_name() : name, name, what_it_is(*option));
    }
    for (const CLI::Option* other : option->get_excludes())
      if (option->count() > 0 && other->count() > 0)
        fail(Failure::usage, "{}, {}: expected one of them, got both{}", name, other->get_name(),
             name == "--config" ? "; hint: leave --config out: the directory of --init has its own" : "");
    for (const CLI::Option* other : option->get_needs())
      if (option->count() > 0 && other->count() == 0)
        fail(Failure::usage, "{}: expected with {}, got none", name, other->get_name());
    if (what.starts_with(name + ": "))
      fail(Failure::usage, "{}: expected {}, got no value", name, option->get_type_name());
  }
  fail(Failure::usage, "{}; hint: --help lists all options", what);
}

/// The sub-command that is named first, or `app` itself.
const CLI::App& command_named(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (const CLI::App* command : app.get_subcommands(nullptr))
    if (!arguments.empty() && command->get_name() == arguments.front()) return *command;
  return app;
}

/// Returns the whole command, with the flags that came from elsewhere, which `sources` then names. Before CLI11 gets
/// the arguments, five passes make them what it knows, each from what the one before it made:
///   own names     another program's flags become ours, so that all that follows finds the flag of each argument
///   own units     `--save-every 10min` becomes --save-every-minutes, so that settings do not add what is given
///   settings      the environment and a file add flags that are not given; these have own names and units
///   own spelling  of the values of both
///   record        the run to be resumed adds the flags that are still missing. It comes last, because --output may be
///                 among the settings, and what is given now goes before what was given then
/// How many values each flag has is checked before flags are added: those that were typed are spoken of.
std::vector<std::string> parse(CLI::App& app, int argc, char** argv, Sources& sources) {
  app.allow_extras();
  for (CLI::App* sub : app.get_subcommands(nullptr)) sub->allow_extras();
  std::vector<std::string> all = arguments(argc, argv);
  const CLI::App& command = command_named(app, all);
  all = with_own_units(command, with_own_names(command, all));
  refuse_numbers_of_values(command, all);
  try {
    all = with_recorded_flags(app, with_own_spelling(command, with_settings(command, all, sources)), sources);
    refuse_switch_values(command, all);
    const bool prints = prints_settings(command, all);
    try {
      app.parse(std::vector<std::string>(all.rbegin(), all.rend()));  // CLI11 takes them in reverse
    } catch (const CLI::RequiredError&) {
      if (!prints) throw;  // what is lacking may be given beside the file that the settings become
    }
    refuse_unknown(app);
    if (prints) print_settings(command, all, sources);
  } catch (const CLI::Success&) {
    throw;  // --help or --version
  } catch (const CLI::ParseError& error) {
    refuse_unknown(app);
    refuse(app, error);
  }
  refuse_unknown(app);
  all.insert(all.begin(), argv[0]);
  return all;
}

/// --print FORM, which no --help shows: the manual of the program, for those who make packages.
void add_print(CLI::App& app) {
  const auto print = [&app](const std::string& form) {
    throw CLI::CallForVersion(io::chosen("--print", form, manual_writers())(manual_of(app)), 0);
  };
  app.add_option_function<std::string>("--print", print)->type_name("FORM")->group("");
}

/// "process 1 (host b): " in another process than the first of a run, since the launcher mixes the lines of all. A
/// failure of another process names that one.
std::string name_of_process(Failure failure) {
  const int rank = distributed::launched().rank;
  if (rank == 0 || failure == Failure::distributed) return "";
  return fmt::format("process {} (host {}): ", rank, io::host_name());
}

/// A word about a program that works alone, but was started several times. That is no error: each may have its own part
/// of a work, as srun's tasks do.
void warn_of_processes(const std::filesystem::path& program) {
  if (const int processes = distributed::launched().processes; processes > 1)
    distributed::warn(
        fmt::format("{} processes were started together, and each does all that {} is asked for; hint: "
                    "start it without mpirun or srun",
                    processes, program.filename().string()));
}

/// "settings.toml: --seed: expected …" if that is where the flag came from of which an error speaks.
std::string with_source(const std::string& what, const Sources& sources) {
  const auto source = sources.find(what.substr(0, what.find_first_of(":, ")));
  return source == sources.end() ? what : fmt::format("{}: {}", source->second, what);
}

int report(const std::string& what, Failure failure) {
  std::fflush(stdout);
  const bool asked_for = failure == Failure::interrupted;  // which is no error, and all processes stop together
  if (asked_for && what.empty()) return static_cast<int>(failure);  // another process says it
  std::fputs(((asked_for ? "" : "error: " + name_of_process(failure)) + io::one_line(what) + "\n").c_str(), stderr);
  return static_cast<int>(failure);
}

constexpr const char* kLimitsHint = "; hint: ulimit -v or a container may limit what there is";

/// What to do if memory runs out: the flag that says how much is computed at once, if the program has one; else where a
/// limit may come from.
std::string memory_hint(const CLI::App& command) {
  for (const char* flag : {"--micro-batch-size", "--max-batch-tokens", "--batch-size"})
    if (command.get_option_no_throw(flag)) return fmt::format("; hint: a smaller {} needs less", flag);
  return kLimitsHint;
}

/// Memory may run out where nothing may be thrown: a value of JSON takes some to be destroyed. That ends a program,
/// which says so as for any other failure, in words that take no memory.
[[noreturn]] void end_without_memory() {
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    std::fflush(stdout);
    std::fprintf(stderr, "error: out of memory on the host%s\n", kLimitsHint);
    std::fflush(stderr);
    std::_Exit(static_cast<int>(Failure::memory));
  } catch (...) {
  }
  std::abort();
}

/// `code` if all that was printed has been written, some of which may have failed long ago.
int flushed(int code) {
  const int now = std::fflush(stdout) == 0 ? 0 : errno;
  if (now == 0 && !std::ferror(stdout)) return code;
  const int error = io::stdout_error() != 0 ? io::stdout_error() : now;
  return report(fmt::format("standard output: write: {}", error != 0 ? std::strerror(error) : "failed"), Failure::io);
}

/// Standard descriptors that are closed fail still, but are taken: else an output file could become one, and messages
/// would be written into it.
void take_closed_descriptors() {
  for (const int standard : {0, 1, 2})
    if (::fcntl(standard, F_GETFD) < 0) ::open("/dev/null", standard == 0 ? O_WRONLY : O_RDONLY);
}

}  // namespace

int run_main(const std::string& description, int argc, char** argv, const std::function<void(CLI::App&)>& add_flags,
             const std::function<void()>& body) {
  return run_main(description, argc, argv, add_flags, [&](const std::vector<std::string>& command) {
    warn_of_processes(command.front());
    body();
  });
}

int run_main(const std::string& description, int argc, char** argv, const std::function<void(CLI::App&)>& add_flags,
             const std::function<void(const std::vector<std::string>&)>& body) {
  return Program(description, std::filesystem::path(argv[0]).filename().string(), add_flags).run(argc, argv, body);
}

Program::Program(const std::string& description, const std::string& name,
                 const std::function<void(CLI::App&)>& add_flags)
    : app_(std::make_unique<CLI::App>(description, name)) {
  take_closed_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond `ulimit -f` fails then, and is reported as any other
  CLI::App& app = *app_;
  app.formatter(help_formatter());  // before the commands, each of which takes its own from here
  add_flags(app);
  app.set_version_flag(
      "--version", [&app] { return version_text(app.get_name()); }, "print version and build, and exit");
  add_print(app);
  for (CLI::App* command : app.get_subcommands(nullptr)) add_settings_flags(*command);
  if (app.get_subcommands(nullptr).empty()) add_settings_flags(app);
  std::vector<CLI::App*> all = app.get_subcommands(nullptr);
  all.push_back(&app);
  for (CLI::App* one : all) {
    refuse_empty_values(*one);
    one->get_help_ptr()->description("print this help, and exit");
    one->footer(footer_text(*one));
  }
}
Program::~Program() = default;

int Program::run(int argc, char** argv, const std::function<void(const std::vector<std::string>&)>& body) {
  std::set_terminate(end_without_memory);
  Sources sources;
  try {
    body(parse(*app_, argc, argv, sources));
    return flushed(0);
  } catch (const CLI::Success& help) {
    return flushed(app_->exit(help));
  } catch (const Error& e) {
    return report(with_source(e.what(), sources), e.failure());
  } catch (const std::filesystem::filesystem_error& e) {
    return report(fmt::format("{}: {}", e.path1().string(), e.code().message()), Failure::io);
  } catch (const std::system_error& e) {
    if (e.code() != std::errc::resource_unavailable_try_again) return report(e.what(), Failure::io);
    return report(fmt::format("threads: expected more to start, got {}; hint: --threads", e.code().message()),
                  Failure::usage);
  } catch (const std::bad_alloc&) {
    return report("out of memory on the host" + memory_hint(innermost(*app_)), Failure::memory);
  } catch (const std::exception& e) {
    return report(std::string("internal: ") + e.what(), Failure::bug);
  }
}

}  // namespace bertrand::cli
