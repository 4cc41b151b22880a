#include "apps/cli/main_guard.h"
#include "apps/report/run.h"

int main(int argc, char** argv) {
  using namespace bertrand;
  report::Options options;
  return cli::run_main(
      "One page of a run, or of several beside each other: settings, curves, evaluation, time.", argc, argv,
      [&](CLI::App& app) { report::add_flags(app, options); }, [&] { report::run(options); });
}
