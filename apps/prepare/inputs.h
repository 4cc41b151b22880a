// Flags and checks that the commands share.
#pragma once
#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "bert/data/line_blocks.h"

namespace bertrand::prepare {

/// --vocab-file (required) and --cased.
void add_vocabulary_flags(CLI::App& app, std::filesystem::path& vocab_file, bool& cased);
/// --threads, all cores if not given.
void add_threads_flag(CLI::App& app, int& threads);

/// Says on standard error how many bytes were no UTF-8 and where the first one is, if there were any.
void warn_invalid(const std::string& file, const data::InvalidBytes& invalid);

}  // namespace bertrand::prepare
