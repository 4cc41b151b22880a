// A command line: a byte for the program, its arguments, one a line, and behind the first NUL a file of settings. It is
// parsed and completed, and nothing is run. Whatever it is, the program ends with one of its codes and, unless all is
// well, one line.
#include <sys/mman.h>

#include <iostream>
#include <vector>

#include "apps/cli/main_guard.h"
#include "apps/cli/training_main.h"
#include "apps/export/run.h"
#include "apps/finetune/run.h"
#include "apps/predict/run.h"
#include "apps/prepare/options.h"
#include "apps/pretrain/run.h"
#include "fuzz/io/tables.h"

using namespace bertrand;

namespace {

/// What is written to one of the standard streams while this lives.
class Caught {
 public:
  explicit Caught(int stream) : stream_(stream), kept_(::dup(stream)), memory_(::memfd_create("caught", 0)) {
    fuzz::require(kept_ >= 0 && memory_ >= 0 && ::dup2(memory_, stream) == stream, "a stream to catch");
  }
  ~Caught() {
    std::cout.flush();
    std::fflush(nullptr);
    ::dup2(kept_, stream_);
    ::close(kept_);
    ::close(memory_);
  }
  Caught(const Caught&) = delete;
  Caught& operator=(const Caught&) = delete;

  std::string text() const {
    std::fflush(nullptr);
    std::string all(static_cast<std::size_t>(::lseek(memory_, 0, SEEK_END)), '\0');
    fuzz::require(::pread(memory_, all.data(), all.size(), 0) == static_cast<ssize_t>(all.size()), "what was written");
    return all;
  }

 private:
  int stream_, kept_, memory_;
};

int run(std::size_t program, int argc, char** argv) {
  pretrain::Options pretrain_options;
  finetune::Options finetune_options;
  predict::Options predict_options;
  exporting::Options export_options;
  std::function<void()> command;
  switch (program % 5) {
    case 0:
      return cli::run_training_main("p", argc, argv,
                                    {.add_flags = [&](auto& table) { pretrain::add_flags(table, pretrain_options); },
                                     .settings = pretrain_options.settings,
                                     .body = [&] { pretrain::complete(pretrain_options); }});
    case 1:
      return cli::run_training_main("f", argc, argv,
                                    {.add_flags = [&](auto& table) { finetune::add_flags(table, finetune_options); },
                                     .settings = finetune_options.settings,
                                     .body = [&] { finetune::complete(finetune_options); }});
    case 2:
      return cli::run_main(
          "p", argc, argv, [&](CLI::App& app) { predict::add_flags(app, predict_options); }, [] {});
    case 3:
      return cli::run_main(
          "e", argc, argv, [&](CLI::App& app) { exporting::add_flags(app, export_options); }, [] {});
    default:
      return cli::run_main(
          "p", argc, argv, [&](CLI::App& app) { prepare::add_commands(app, command); }, [] {});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  static constexpr const char* kPrograms[] = {"pretrain", "finetune", "predict", "export", "prepare"};
  std::string_view text = fuzz::text_of(data, size);
  const std::size_t program = fuzz::take_byte(text);
  const std::string_view lines = text.substr(0, text.find('\0'));
  std::vector<std::string> words{kPrograms[program % 5]};
  for (std::string_view rest = lines; !rest.empty();) {
    words.emplace_back(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(rest.size(), words.back().size() + 1));
  }
  if (lines.size() < text.size()) {
    words.emplace_back("--settings");
    words.push_back(directory.write("settings.toml", text.substr(lines.size() + 1)).string());
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  int code = 0;
  std::string said;
  {
    const Caught out(STDOUT_FILENO), error(STDERR_FILENO);
    code = run(program, static_cast<int>(words.size()), argv.data());
    said = error.text();
  }
  fuzz::require(code == 0 || (code >= 2 && code <= 7), said.c_str());
  fuzz::require(code == 0 || said.starts_with("error: ") || said.starts_with("warning: "), said.c_str());
  fuzz::require(code == 0 || said.find('\n') == said.size() - 1, said.c_str());
  return 0;
}
