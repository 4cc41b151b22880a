// Every input that is kept in corpus/ through its target: what once was a finding is none any more.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "fuzz/fuzz.h"
#include "support/program.h"

#define FUZZ_TARGET(name) extern "C" int fuzz_##name(const std::uint8_t*, std::size_t);
#include "fuzz_targets.inc"
#undef FUZZ_TARGET

namespace {

struct Target {
  const char* name;
  int (*run)(const std::uint8_t*, std::size_t);
};
constexpr Target kTargets[] = {
#define FUZZ_TARGET(name) {#name, fuzz_##name},
#include "fuzz_targets.inc"
#undef FUZZ_TARGET
};

const std::filesystem::path kCorpus = bertrand::paths::source + "/tests/fuzz/corpus";

std::vector<std::filesystem::path> inputs_of(const Target& target) {
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(kCorpus / target.name))
    for (const auto& entry : std::filesystem::directory_iterator(kCorpus / target.name)) files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace

TEST_CASE("every target of fuzzing has inputs that are kept, and every folder of inputs has a target") {
  for (const Target& target : kTargets) {
    CAPTURE(target.name);
    CHECK(!inputs_of(target).empty());
  }
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus)) {
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    CHECK(std::ranges::any_of(kTargets, [&](const Target& target) { return name == target.name; }));
  }
}

TEST_CASE("every input that is kept is read or refused, and so is each without its end") {
  for (const Target& target : kTargets)
    for (const auto& file : inputs_of(target)) {
      const std::string bytes = support::read_text(file);
      INFO(file.string());
      for (const std::size_t size : {bytes.size(), bytes.size() / 2, std::size_t{0}})
        CHECK(target.run(reinterpret_cast<const std::uint8_t*>(bytes.data()), size) == 0);
    }
}
