// How --help and --version are laid out.
#include "apps/cli/help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>
#include <vector>

#include "apps/cli/command_line.h"
#include "apps/cli/examples.h"
#include "apps/cli/manual.h"
#include "io/version.h"
#include "tensor/backends.h"
#include "tensor/module.h"

namespace bertrand::cli {
namespace {

constexpr std::size_t kHelpWidth = 100;
constexpr char kNoBreak = '\x1f';  // between two words that stay on one line

/// `text` in lines of at most `width`, divided between words.
std::string wrapped(const std::string& text, std::size_t width) {
  std::string lines;
  std::size_t length = 0;
  std::istringstream words(text);
  for (std::string word; words >> word; length += word.size()) {
    if (length > 0) {
      const bool fits = length + 1 + word.size() <= width;
      lines += fits ? ' ' : '\n';
      length = fits ? length + 1 : 0;
    }
    lines += word;
  }
  std::ranges::replace(lines, kNoBreak, ' ');
  return lines;
}

/// As CLI11 does, but in lines of 100, and without {false} after the second name of a switch, --no-x.
class Help : public CLI::Formatter {
 public:
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    constexpr std::string_view kFalse = "{false}";
    std::string name = CLI::Formatter::make_option_name(option, is_positional);
    if (const std::size_t at = name.find(kFalse); at != std::string::npos) name.erase(at, kFalse.size());
    return name;
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(CLI::Formatter::make_option_desc(option), kHelpWidth - get_column_width());
  }
  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream text;
    CLI::detail::format_help(text, command->get_display_name(),
                             wrapped(command->get_description(), kHelpWidth - get_column_width()), get_column_width());
    return text.str();
  }
  std::string make_description(const CLI::App* app) const override {
    std::istringstream text(CLI::Formatter::make_description(app));
    std::string lines;
    for (std::string line; std::getline(text, line);)
      lines += (line.starts_with(' ') ? line : wrapped(line, kHelpWidth)) + '\n';  // tables stay as they are
    return lines;
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<Help>(); }

std::string footer_text(const CLI::App& app) {
  std::string text;
  for (const Example& example : examples_of(program_name(app), app.get_name()))
    text += fmt::format("{}# {}\n  {}\n", text.empty() ? "Examples:\n  " : "  ", example.what, example.command);
  if (!text.empty()) text += '\n';
  std::vector<std::string> codes;
  for (const ManualFact& code : exit_codes()) codes.push_back(code.name + kNoBreak + code.meaning);
  return text + wrapped(fmt::format("Exit codes: {}.", fmt::join(codes, ", ")), kHelpWidth);
}

std::string version_text(const std::string& program) {
  return fmt::format("{} (bertrand) {}\nbuild: {}\nmodules built: {}\nCPU kernels that this processor runs: {}",
                     program, version(), build_hash(), fmt::join(Module::names(), ", "),
                     fmt::join(runnable_cpu_kernels(), ", "));
}

}  // namespace bertrand::cli
