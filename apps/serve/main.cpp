// The program serve.
#include "apps/cli/main_guard.h"
#include "apps/serve/run.h"

int main(int argc, char** argv) {
  using namespace bertrand;
  serve::Options options;
  return cli::run_main(
      serve::kDescription, argc, argv, [&](CLI::App& app) { serve::add_flags(app, options); },
      [&] { serve::run(options); });
}
