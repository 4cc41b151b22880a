#include "apps/extract/run.h"
#include "apps/training/main_guard.h"

int main(int argc, char** argv) {
  using namespace bertrand;
  extract::Options options;
  return training::run_main(
      "Writes what the layers of a BERT say about each token of each line of text.", argc, argv,
      [&](CLI::App& app) { extract::add_flags(app, options); }, [&] { extract::run(options); });
}
