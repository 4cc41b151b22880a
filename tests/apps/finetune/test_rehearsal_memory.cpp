// The memory that what stands in place of a run takes for rows that lie on the disk in the run.
#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <set>

#include "io/units.h"
#include "support/small_finetuning.h"

using support::Outcome;

namespace {

using Flags = std::vector<std::string>;

/// A table of 600 kB whose rows have 2,000 labels each to learn: 72 MB, more than memory holds of them.
struct Setting : support::SmallFinetuning {
  Setting() : SmallFinetuning(2) {
    std::string rows = "text,kind\n";
    for (int i = 0; i < 9000; ++i) rows += fmt::format("red fish,label {}\n", i % 2000);
    support::write_text(at("many.csv"), rows);
  }
  Outcome run(const Flags& more) const {
    return finetune("new/run", support::with_defaults({"--kind", "multi-label", "--train", at("many.csv"), "--steps",
                                                       "1", "--batch-size", "4"},
                                                      more));
  }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory / "")) names.insert(entry.path());
    return names;
  }
};

/// What the plan says in "process     at most 112 MB on the host, 72 MB of it examples".
struct Predicted {
  double process = 0;
  std::string examples;
};

Predicted predicted_in(const std::string& out) {
  const auto between = [&](std::size_t from, const std::string& before, const std::string& after) {
    const std::size_t begin = out.find(before, from) + before.size();
    return out.substr(begin, out.find(after, begin) - begin);
  };
  const std::size_t line = out.find("  process     at most ");
  REQUIRE(line != std::string::npos);
  const std::string process = between(line, "at most ", " on the host");
  return {.process = static_cast<double>(bertrand::io::parse_bytes("memory", process)),
          .examples = between(line, " on the host, ", " of it examples")};
}

}  // namespace

TEST_CASE("rehearsals with rows that lie on the disk take the memory of their run, and leave no file") {
  const Setting setting;
  const std::set<std::string> before = setting.files();
  std::map<std::string, Predicted> rehearsed;
  for (const std::string flag : {"--plan", "--dry-run", "--overfit-batch", "--validate-only"}) {
    CAPTURE(flag);
    const Outcome outcome = setting.run({flag});
    CHECK_MESSAGE((outcome.code == 0 || flag == "--overfit-batch"), outcome.error);  // one step need not learn
    CHECK(setting.files() == before);
    if (flag != "--validate-only") rehearsed[flag] = predicted_in(outcome.out);
  }
  const Outcome held = setting.run({"--plan", "--output", "/proc/sys/none/run"});  // where not even root makes files
  CHECK_MESSAGE(held.code == 0, held.error);
  const Outcome outcome = setting.run({});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  const Predicted of_run = predicted_in(outcome.out);
  for (const auto& [flag, predicted] : rehearsed) {
    CAPTURE(flag);
    CHECK(predicted.examples == of_run.examples);
    CHECK(std::abs(predicted.process - of_run.process) < 8e6);  // by which a process may differ from start to start
  }
  CHECK(predicted_in(held.out).examples != of_run.examples);
}
