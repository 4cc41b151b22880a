#include "training/run/settings.h"

#include <doctest/doctest.h>

#include "support/program.h"

using bertrand::training::Settings;
namespace fs = std::filesystem;

TEST_CASE("what memory should not hold lies in the directory of a run, and in the nearest one above a rehearsal's") {
  const support::TemporaryDirectory directory;
  const auto place = [](const fs::path& output, bool Settings::*rehearsal = nullptr) {
    Settings settings;
    settings.output = output;
    if (rehearsal) settings.*rehearsal = true;
    return settings.spill_directory();
  };
  fs::create_directories(directory / "there/run");
  CHECK(place(directory / "not there/run") == directory / "not there/run");
  for (bool Settings::*rehearsal :
       {&Settings::plan_only, &Settings::dry_run, &Settings::validate_only, &Settings::overfit_batch}) {
    CHECK(place(directory / "not there/run", rehearsal) == (directory / "there").parent_path());
    for (const char* output : {"there/run", "there/run/", "there/other", "there/not there/run"})
      CHECK(place(directory / output, rehearsal) == directory / "there");
    for (const char* output : {"", "not there", "not there/", "not there/run"}) CHECK(place(output, rehearsal) == ".");
    CHECK(place("/proc/sys/none/run", rehearsal) == "");  // where not even root makes files
  }
}
