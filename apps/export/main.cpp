// The program export.
#include "apps/cli/main_guard.h"
#include "apps/export/run.h"

int main(int argc, char** argv) {
  using namespace bertrand;
  exporting::Options options;
  return cli::run_main(
      "Writes a model in a form that other programs read.", argc, argv,
      [&](CLI::App& app) { exporting::add_flags(app, options); }, [&] { exporting::run(options); });
}
