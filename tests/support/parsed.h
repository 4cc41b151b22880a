// What a program reads from a command line, without the program.
#pragma once
#include <doctest/doctest.h>

#include <CLI/CLI.hpp>
#include <string>

namespace support {

enum class Flags { some, every };

/// The options that the program's own add_flags() makes of the line, which may have to give every flag there is.
template <class Options>
Options parsed(const std::string& line, Flags given = Flags::some) {
  CLI::App app;
  Options options;
  add_flags(app, options);
  app.parse(line);
  for (const CLI::Option* option : app.get_options()) {
    CAPTURE(option->get_name());
    if (given == Flags::every && option != app.get_help_ptr()) CHECK(option->count() > 0);
  }
  return options;
}

}  // namespace support
