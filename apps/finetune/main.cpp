#include "apps/finetune/run.h"
#include "apps/finetune/sweep.h"
#include "apps/finetune/sweep_directory.h"
#include "apps/training_cli/training_main.h"

int main(int argc, char** argv) {
  using namespace bertrand;
  finetune::Options options;
  return cli::run_training_main(
      "Fine-tunes a BERT to classify texts or pairs of texts, to score them, to give them several labels, to label "
      "words, to find answers in texts, or to rank passages.",
      argc, argv,
      {.add_flags = [&](auto& table) { finetune::add_flags(table, options); },
       .settings = options.settings,
       .body =
           [&] {
             if (!options.sweep.empty()) return finetune::sweep(options);
             finetune::complete(options);
             finetune::refuse_directory_of_sweep(options);
             finetune::run(options);
           }});
}
