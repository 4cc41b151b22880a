#include "apps/training/main_guard.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "tensor/error.h"

namespace bertrand::training {
namespace {

/// Insertions, deletions, replacements and swaps of neighbours between two names (Damerau and Levenshtein).
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i)
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        d[i][j] = i + j;
        continue;
      }
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  return d[a.size()][b.size()];
}

/// The app that parsed last: a sub-command that was named, or `app` itself.
const CLI::App& innermost(const CLI::App& app) {
  const auto named = app.get_subcommands();
  return named.empty() ? app : innermost(*named.front());
}

[[noreturn]] void refuse_unknown(const CLI::App& app, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  std::string nearest;
  for (const CLI::Option* option : innermost(app).get_options())
    for (const std::string& known : option->get_lnames())
      if (nearest.empty() || edit_distance("--" + known, name) < edit_distance(nearest, name)) nearest = "--" + known;
  const bool close = name.starts_with("-") && !nearest.empty() && edit_distance(nearest, name) <= std::max<std::size_t>(2, name.size() / 3);
  fail(Failure::usage, "unknown {} {}{}", name.starts_with("-") ? "option" : "argument", name, close ? "; did you mean " + nearest + "?" : "; hint: --help lists all");
}

/// Flags may be written with _ for -; values are left as they are.
std::vector<std::string> arguments(int argc, char** argv) {
  std::vector<std::string> all;
  for (int i = argc - 1; i > 0; --i) {  // CLI11 takes them in reverse
    std::string argument = argv[i];
    if (argument.starts_with("--")) std::replace(argument.begin(), argument.begin() + static_cast<std::ptrdiff_t>(std::min(argument.find('='), argument.size())), '_', '-');
    all.push_back(argument);
  }
  return all;
}

/// A mistyped flag is the cause of whatever else is missing, so it is named first.
void refuse_unknown(const CLI::App& app) {
  const std::vector<std::string> unknown = app.remaining(true);
  const auto flag = std::find_if(unknown.begin(), unknown.end(), [](const std::string& s) { return s.starts_with("-"); });
  if (!unknown.empty()) refuse_unknown(app, flag == unknown.end() ? unknown.front() : *flag);
}

void parse(CLI::App& app, int argc, char** argv) {
  app.allow_extras();
  for (CLI::App* sub : app.get_subcommands(nullptr)) sub->allow_extras();
  try {
    app.parse(arguments(argc, argv));
  } catch (const CLI::RequiredError&) {
    refuse_unknown(app);
    throw;
  }
  refuse_unknown(app);
}

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

int report(const std::string& what, Failure failure) {
  std::fflush(stdout);
  std::fputs(("error: " + one_line(what) + "\n").c_str(), stderr);
  return static_cast<int>(failure);
}

}  // namespace

int run_main(CLI::App& app, int argc, char** argv, const std::function<void()>& body) {
  try {
    try {
      parse(app, argc, argv);
    } catch (const CLI::Success& help) {
      return app.exit(help);
    } catch (const CLI::ParseError& e) {
      return report(e.what(), Failure::usage);
    }
    body();
    std::fflush(stdout);
    return 0;
  } catch (const Error& e) {
    return report(e.what(), e.failure());
  } catch (const std::bad_alloc&) {
    return report("out of memory on the host; hint: a smaller --micro-batch-size needs less", Failure::memory);
  } catch (const std::exception& e) {
    return report(std::string("internal: ") + e.what(), Failure::bug);
  }
}

}  // namespace bertrand::training
