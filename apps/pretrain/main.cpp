#include <CLI/CLI.hpp>

#include "apps/pretrain/run.h"
#include "apps/training/main_guard.h"

int main(int argc, char** argv) {
  CLI::App app("Pre-trains a BERT on text or TFRecords: masked words and next sentences.");
  bertrand::PretrainOptions options;
  bertrand::add_flags(app, options);
  return bertrand::training::run_main(app, argc, argv, [&] {
    bertrand::complete(options);
    bertrand::pretrain(options);
  });
}
