#include <CLI/CLI.hpp>

#include "apps/extract/run.h"
#include "apps/training/main_guard.h"

int main(int argc, char** argv) {
  CLI::App app("Writes what the layers of a BERT say about each token of each line of text.");
  bertrand::extract::Options options;
  bertrand::extract::add_flags(app, options);
  return bertrand::training::run_main(app, argc, argv, [&] { bertrand::extract::run(options); });
}
