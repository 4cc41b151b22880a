#include "apps/prepare/options.h"
#include "apps/training/main_guard.h"

int main(int argc, char** argv) {
  using namespace bertrand;
  std::function<void()> command;
  return training::run_main(
      "Text and pre-training data: token ids, records, vocabularies.", argc, argv,
      [&](CLI::App& app) { prepare::add_commands(app, command); }, [&] { command(); });
}
