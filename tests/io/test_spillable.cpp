#include "io/spillable.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "io/machine.h"
#include "support/faulty_files.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::io;

TEST_CASE("an array that is spilled part by part is the one that is held, and its file has no name and no descriptor") {
  const support::TemporaryDirectory directory;
  const SpillPlace place{.directory = std::filesystem::path(directory / "."), .held_bytes = 40};
  const auto descriptors = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto before = descriptors();
  Spillable<std::int64_t> held, spilled;
  for (std::int64_t i = 0; i < 1000; ++i) {
    held.push_back(i * i);
    spilled.push_back(i * i);
    if (place.is_due(spilled.unspilled_bytes(), spilled.is_spilled())) spilled.spill(place);
    CHECK(spilled.size() == i + 1);
    CHECK(spilled.held_bytes() < 128);
  }
  spilled.finish(place);
  held.finish(place);
  CHECK(descriptors() == before);  // as a run may have many
  CHECK(spilled.is_spilled());
  CHECK_FALSE(held.is_spilled());
  CHECK(std::ranges::equal(spilled.all(), held.all()));
  spilled.let_go();
  CHECK(spilled.all()[999] == 999 * 999);
  CHECK(std::filesystem::is_empty(std::filesystem::path(directory / ".")));
}

TEST_CASE("an array is spilled though a process that had this one's number left a name, as one of a container does") {
  const support::TemporaryDirectory directory;
  const std::string left = directory / fmt::format("rows.tmp-{}-{}", io::host_name(), ::getpid());
  support::write_text(left, "left");
  const SpillPlace place{.directory = std::filesystem::path(directory / "."), .held_bytes = 1};
  Spillable<char> array;
  array.append(std::string("text"));
  array.spill(place);
  array.finish(place);
  CHECK(std::string(array.all().begin(), array.all().end()) == "text");
  CHECK(support::read_text(left) == "left");
}

TEST_CASE("an array stays in memory without a directory") {
  for (const char* name : {"", "/no/such/directory"}) CHECK_FALSE(SpillPlace{.directory = name}.is_due(1 << 30, false));
  const support::TemporaryDirectory directory;
  const SpillPlace place{.directory = std::filesystem::path(directory / "."), .held_bytes = 100};
  CHECK_FALSE(place.is_due(99, false));
  CHECK(place.is_due(100, false));
}

TEST_CASE("a disk that is full, or a directory that cannot be written to, is named with the reason") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "./rows.tmp-";
  for (int failing = 1; failing <= 2; ++failing) {
    support::FailingFiles files(failing, "No space left on device");
    const SpillPlace place{.directory = std::filesystem::path(directory / "."), .held_bytes = 1, .files = &files};
    Spillable<char> array;
    array.append(std::string("text"));
    const std::string line = support::refusal(Failure::io, [&] { array.spill(place); });
    CHECK(line.starts_with(file));
    CHECK(line.ends_with(failing == 1 ? ": open: No space left on device" : ": write: No space left on device"));
    CHECK(line.find('\n') == std::string::npos);
    CHECK(std::filesystem::is_empty(std::filesystem::path(directory / ".")));
  }
}
