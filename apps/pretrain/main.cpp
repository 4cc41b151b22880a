#include "apps/cli/main_guard.h"
#include "apps/pretrain/run.h"

int main(int argc, char** argv) {
  using namespace bertrand;
  pretrain::Options options;
  return cli::run_main(
      "Pre-trains a BERT on text or TFRecords: masked words and next sentences.", argc, argv,
      [&](CLI::App& app) { pretrain::add_flags(app, options); },
      [&] {
        options.settings.command.assign(argv, argv + argc);
        pretrain::complete(options);
        pretrain::run(options);
      });
}
