#include "apps/prepare/inputs.h"

#include <fmt/format.h>

#include <cstdio>
#include <limits>
#include <thread>

#include "apps/training/flags.h"
#include "tensor/error.h"

namespace bertrand::prepare {

namespace fs = std::filesystem;

void add_vocabulary_flags(CLI::App& app, fs::path& vocab_file, bool& cased) {
  app.add_option("--vocab-file", vocab_file, "vocab.txt: a token a line")->type_name("FILE")->required();
  app.add_flag("--cased", cased, "keep case and accents (default: lower-case and strip accents)");
}

void add_threads_flag(CLI::App& app, int& threads) {
  threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  training::number_flag(app, "--threads", threads, training::Range<int>{1, 1024},
                        "threads; the result does not depend on it", "all cores");
}

void warn_invalid(const std::string& file, const data::InvalidBytes& invalid) {
  if (invalid.count == 0) return;
  fmt::print(stderr, "warning: {}:{}: text: dropped {} bytes that are not UTF-8, the first one in column {}\n", file,
             invalid.first_line, invalid.count, invalid.first_column);
}

}  // namespace bertrand::prepare
