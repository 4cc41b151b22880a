// The names that runs give to their files.
#include "bert/objectives/program_files.h"

#include <doctest/doctest.h>

#include "support/small_model.h"
#include "training/run/run_files.h"

using namespace bertrand;

TEST_CASE("a run knows every file of a model that it writes as its own") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory / "model")) {
    const std::string name = entry.path().filename();
    CHECK_MESSAGE(training::is_published(name, objectives::program_files()), name);
    ++files;
  }
  CHECK(files == 5);
}
