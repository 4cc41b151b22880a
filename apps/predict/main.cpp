// The program predict.
#include "apps/cli/main_guard.h"
#include "apps/predict/run.h"

int main(int argc, char** argv) {
  using namespace bertrand;
  predict::Options options;
  return cli::run_main(
      predict::kDescription, argc, argv, [&](CLI::App& app) { predict::add_flags(app, options); },
      [&] { predict::run(options); });
}
