#include <CLI/CLI.hpp>

#include "apps/finetune/run.h"
#include "apps/training/main_guard.h"

int main(int argc, char** argv) {
  CLI::App app("Fine-tunes a BERT to classify texts or pairs of texts, to score them, or to give them several labels.");
  bertrand::finetune::Options options;
  bertrand::finetune::add_flags(app, options);
  return bertrand::training::run_main(app, argc, argv, [&] {
    bertrand::finetune::complete(options);
    bertrand::finetune::run(options);
  });
}
