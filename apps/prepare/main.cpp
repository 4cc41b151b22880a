// The program prepare.
#include "apps/cli/main_guard.h"
#include "apps/prepare/options.h"

int main(int argc, char** argv) {
  using namespace bertrand;
  std::function<void()> command;
  return cli::run_main(
      "Text and pre-training data: sentences, token ids, vocabularies, corpora, records, answer-span features.", argc,
      argv, [&](CLI::App& app) { prepare::add_commands(app, command); }, [&] { command(); });
}
