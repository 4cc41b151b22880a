// Records that were damaged after their index was made, where its sample of the file does not see it.
#include <doctest/doctest.h>

#include "apps/pretrain/processes_setting.h"
#include "bert/data/record_index.h"

using support::Flags;
using support::joined;
using support::Outcome;
using support::ProcessesSetting;
namespace data = bertrand::data;
namespace fs = std::filesystem;

namespace {

/// Some 790 records of 381 bytes with an index that a first run made, and one byte of the 79th changed since.
struct DamagedSetting : ProcessesSetting {
  const fs::path records = directory / "r.tfrecord", index = data::RecordIndex::file_of(records);
  const Flags input = {"--input", records, "--steps", "3", "--micro-batch-size", "5"};
  const Flags skip = joined(input, {"--on-corrupt", "skip"});
  const std::string damage = records.string() + "@29718: record data crc: expected ";
  std::string stale;  // the index

  DamagedSetting() : ProcessesSetting(60) {
    REQUIRE(support::run_program("prepare",
                                 {"records", "--vocab-file", directory / "vocab.txt", "--input", directory / "text.txt",
                                  "--output", records, "--max-seq-length", "24", "--dupe-factor", "4"})
                .code == 0);
    REQUIRE(run("whole", skip).code == 0);
    stale = support::read_text(index);
    std::string bytes = support::read_text(records);
    bytes[30'000] = static_cast<char>(bytes[30'000] ^ 1);
    support::write_text(records, bytes);
    REQUIRE(data::RecordIndex::open(records, data::InputCheck::index));  // as if nothing had happened
  }
  std::size_t whole() const { return (stale.size() - 64) / 24; }
  std::string one_less() const { return "epoch       " + std::to_string(whole() - 1) + " examples"; }
};

}  // namespace

TEST_CASE("a record that was damaged after its index was made is skipped as without one, also when the run goes on") {
  const DamagedSetting setting;
  const Outcome skipped = setting.run("skipped", setting.skip);
  CHECK_MESSAGE(skipped.error.find("warning: " + setting.damage) != std::string::npos, skipped.error);
  CHECK_MESSAGE(skipped.out.find(setting.one_less()) != std::string::npos, skipped.out);
  CHECK_FALSE(fs::exists(setting.index));
  REQUIRE(setting.run("without", setting.skip).code == 0);
  setting.check_same("skipped", "without", 3);
  support::write_text(setting.index, setting.stale);
  Flags more = joined(setting.skip, {"--resume"});
  more[3] = "5";
  const Outcome resumed = setting.run("skipped", more);
  CHECK(resumed.code == 0);
  CHECK_MESSAGE(resumed.error.find("warning: " + setting.damage) != std::string::npos, resumed.error);

  const Outcome other = setting.run("whole", more);  // which had all records
  CHECK(other.code == 2);
  CHECK_MESSAGE(other.error.find("r.tfrecord") != std::string::npos, other.error);
}

TEST_CASE("where indexes are believed a damaged record ends the run, and it is said what to do") {
  const DamagedSetting setting;
  Flags epoch = setting.input;
  epoch[2] = "--epochs", epoch[3] = "1";
  for (const Flags& how : {Flags{}, Flags{"--on-corrupt", "skip", "--check-inputs", "none"}}) {
    const Outcome outcome = setting.run("run" + std::to_string(how.size()), joined(epoch, how));
    CHECK(outcome.code == 3);
    CHECK(outcome.error.find(setting.records.string() + "@29718: record: expected 365 bytes as they were when ") !=
          std::string::npos);
    CHECK_MESSAGE(
        outcome.error.find("; hint: restore the file; a new run with --on-corrupt skip leaves out what is corrupt") !=
            std::string::npos,
        outcome.error);
  }
}

TEST_CASE("several processes leave out the damaged records that one leaves out") {
  if (const std::string why = ProcessesSetting::missing(); !why.empty()) {
    MESSAGE("SKIPPED: " << why);
    return;
  }
  const DamagedSetting setting;
  REQUIRE(setting.run("one", setting.skip).code == 0);
  support::write_text(setting.index, setting.stale);
  setting.run_processes("two", 2, joined(setting.skip, {"--check-inputs", "all"}));
  for (const int rank : {0, 1}) CHECK_MESSAGE(setting.code("two", rank) == 0, setting.of_rank("two", rank, "error"));
  CHECK(setting.of_rank("two", 0, "out").find(setting.one_less()) != std::string::npos);
  setting.check_same("two", "one", 3);
}
