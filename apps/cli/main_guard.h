// What every main does: parse flags, run, and turn what is thrown into one line and an exit code.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace bertrand::cli {

/// A program, whose flags are declared once; it may run several times.
class Program {
 public:
  /// `description` is a sentence for --help. `add_flags` declares the flags.
  Program(const std::string& description, const std::string& name, const std::function<void(CLI::App&)>& add_flags);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  /// As run_main() does.
  int run(int argc, char** argv, const std::function<void(const std::vector<std::string>& command)>& body);

 private:
  std::unique_ptr<CLI::App> app_;
};

/// Parses argv as the flags that `add_flags` declares (`_` is accepted for `-`; an unknown flag names the nearest one),
/// then calls `body`. `description` is a sentence for --help. Returns the exit code; prints "error: …" as one line on
/// stderr.
int run_main(const std::string& description, int argc, char** argv, const std::function<void(CLI::App&)>& add_flags,
             const std::function<void()>& body);
/// The same; `body` gets the command as it was parsed: the program's name, and then its arguments.
int run_main(const std::string& description, int argc, char** argv, const std::function<void(CLI::App&)>& add_flags,
             const std::function<void(const std::vector<std::string>& command)>& body);

}  // namespace bertrand::cli
