#include "apps/cli/main_guard.h"
#include "apps/evaluate/commands.h"

int main(int argc, char** argv) {
  using namespace bertrand;
  std::function<void()> command;
  return cli::run_main(
      "Official scores of predictions: classes, numbers, answers, rankings, tagged words.", argc, argv,
      [&](CLI::App& app) { evaluate::add_commands(app, command); }, [&] { command(); });
}
