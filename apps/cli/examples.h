// Command lines of each program, which end its --help and its manual.
#pragma once
#include <string>
#include <vector>

namespace bertrand::cli {

struct Example {
  std::string what;     ///< what it does, in a few words
  std::string command;  ///< one line, with the program's name
};

/// Every program, without the "bertrand-" that it is installed with.
std::vector<std::string> program_names();

/// Those of a program, which is started as `called`; none if there is no such program.
std::vector<Example> examples_of(const std::string& program, const std::string& called);

}  // namespace bertrand::cli
