// The program extract.
#include "apps/cli/main_guard.h"
#include "apps/extract/run.h"

int main(int argc, char** argv) {
  using namespace bertrand;
  extract::Options options;
  return cli::run_main(
      "Writes what the layers of a BERT say about each token of each line of text.", argc, argv,
      [&](CLI::App& app) { extract::add_flags(app, options); }, [&] { extract::run(options); });
}
