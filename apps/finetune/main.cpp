#include "apps/cli/main_guard.h"
#include "apps/finetune/run.h"

int main(int argc, char** argv) {
  using namespace bertrand;
  finetune::Options options;
  return cli::run_main(
      "Fine-tunes a BERT to classify texts or pairs of texts, to score them, or to give them several labels.", argc,
      argv, [&](CLI::App& app) { finetune::add_flags(app, options); },
      [&] {
        options.settings.command.assign(argv, argv + argc);
        finetune::complete(options);
        finetune::run(options);
      });
}
