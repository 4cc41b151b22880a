// What --help and --version print.
#pragma once
#include <memory>
#include <string>

namespace CLI {
class App;
class FormatterBase;
}  // namespace CLI

namespace bertrand::cli {

/// Lays --help out in lines of 100.
std::shared_ptr<CLI::FormatterBase> help_formatter();

/// What --help ends with: examples, and "Exit codes: 0 done, 1 a bug, …".
std::string footer_text(const CLI::App& app);

/// What this program is, and what of it this machine can use.
std::string version_text(const std::string& program);

}  // namespace bertrand::cli
