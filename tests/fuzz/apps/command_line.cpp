// A command line: a byte for the program, its arguments, one a line, and behind the first NUL a file of settings. It is
// parsed and completed, and nothing is run. Whatever it is, the program ends with one of its codes and, unless all is
// well, one line behind its notes on the flags of other programs.
#include <sys/mman.h>

#include <iostream>
#include <vector>

#include "apps/cli/main_guard.h"
#include "apps/export/run.h"
#include "apps/finetune/run.h"
#include "apps/predict/run.h"
#include "apps/prepare/options.h"
#include "apps/pretrain/run.h"
#include "apps/training_cli/table_flags.h"
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

/// A program whose flags are declared once, as that takes much longer than to read a command line. Its options are
/// new ones in each run.
struct Made {
  std::unique_ptr<cli::Program> program;
  std::function<void()> forget;
  std::function<void(const std::vector<std::string>& command)> body = [](const auto&) {};
};

template <class Options>
Made made(const char* name, void (*add_flags)(CLI::App&, Options&)) {
  const auto options = std::make_shared<Options>();
  return {.program = std::make_unique<cli::Program>("p", name, [&](CLI::App& app) { add_flags(app, *options); }),
          .forget = [options] { *options = {}; }};
}

template <class Options>
Made made(const char* name, void (*add_flags)(training::FlagTable&, Options&), void (*complete)(Options&)) {
  const auto options = std::make_shared<Options>();
  training::FlagTable table;
  add_flags(table, *options);
  return {.program = std::make_unique<cli::Program>("p", name, [&](CLI::App& app) { cli::add_table(app, table); }),
          .forget = [options] { *options = {}; },
          .body =
              [options, complete](const std::vector<std::string>& command) {
                options->settings.command = command;
                complete(*options);
              }};
}

Made& program_of(std::size_t number) {
  static const auto command = std::make_shared<std::function<void()>>();
  static Made programs[] = {made<pretrain::Options>("pretrain", pretrain::add_flags, pretrain::complete),
                            made<finetune::Options>("finetune", finetune::add_flags, finetune::complete),
                            made<predict::Options>("predict", predict::add_flags),
                            made<exporting::Options>("export", exporting::add_flags),
                            {.program = std::make_unique<cli::Program>(
                                 "p", "prepare", [](CLI::App& app) { prepare::add_commands(app, *command); }),
                             .forget = [] {}}};
  return programs[number % std::size(programs)];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  std::string_view text = fuzz::text_of(data, size);
  Made& program = program_of(fuzz::take_byte(text));
  const std::string_view lines = text.substr(0, text.find('\0'));
  std::vector<std::string> words{"program"};
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
    program.forget();
    code = program.program->run(static_cast<int>(words.size()), argv.data(), program.body);
    said = error.text();
  }
  while (said.starts_with("note: ")) said.erase(0, said.find('\n') + 1);
  fuzz::require(code == 0 || (code >= 2 && code <= 7), said.c_str());
  fuzz::require(code == 0 || said.starts_with("error: ") || said.starts_with("warning: "), said.c_str());
  fuzz::require(code == 0 || said.find('\n') == said.size() - 1, said.c_str());
  return 0;
}
