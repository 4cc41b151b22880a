#include "apps/pretrain/run.h"
#include "apps/training_cli/training_main.h"

int main(int argc, char** argv) {
  using namespace bertrand;
  pretrain::Options options;
  return cli::run_training_main("Pre-trains a BERT on text or TFRecords: masked words and next sentences.", argc, argv,
                                {.add_flags = [&](auto& table) { pretrain::add_flags(table, options); },
                                 .settings = options.settings,
                                 .body =
                                     [&] {
                                       pretrain::complete(options);
                                       pretrain::run(options);
                                     }});
}
