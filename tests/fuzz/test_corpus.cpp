// Every input that is kept through its target: those of corpus/ were made by hand or once were a
// finding, those of found/ are what libFuzzer made to reach other code.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "fuzz/fuzz.h"
#include "io/base64.h"
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

const std::filesystem::path kFolder = bertrand::paths::source + "/tests/fuzz", kCorpus = kFolder / "corpus",
                            kFound = kFolder / "found";

struct Input {
  std::string name, bytes;
};

std::vector<Input> inputs_of(const Target& target) {
  std::vector<Input> inputs;
  if (std::filesystem::is_directory(kCorpus / target.name))
    for (const auto& entry : std::filesystem::directory_iterator(kCorpus / target.name))
      inputs.push_back({entry.path().string(), support::read_text(entry.path())});
  std::ranges::sort(inputs, {}, &Input::name);
  std::ifstream found(kFound / (std::string(target.name) + ".base64"));
  int number = 0;
  for (std::string line; std::getline(found, line);) {
    const auto bytes = bertrand::io::from_base64(line);
    inputs.push_back({fmt::format("{}.base64:{}", target.name, ++number), bytes.value_or("")});
    INFO(inputs.back().name);
    REQUIRE(bytes);
  }
  return inputs;
}

}  // namespace

TEST_CASE("every target of fuzzing has inputs that are kept, and all inputs have a target") {
  for (const Target& target : kTargets) {
    CAPTURE(target.name);
    CHECK(!inputs_of(target).empty());
  }
  std::vector<std::filesystem::path> folders;
  for (const auto& from : {kCorpus, kFound})
    for (const auto& entry : std::filesystem::directory_iterator(from)) folders.push_back(entry.path());
  for (const std::filesystem::path& path : folders) {
    const std::string name = path.stem().string();
    CAPTURE(name);
    CHECK(std::ranges::any_of(kTargets, [&](const Target& target) { return name == target.name; }));
  }
}

TEST_CASE("every input that is kept is read or refused, and so is each without its end") {
  for (const Target& target : kTargets)
    for (const auto& [name, bytes] : inputs_of(target)) {
      INFO(name);
      for (const std::size_t size : {bytes.size(), bytes.size() / 2, std::size_t{0}})
        CHECK(target.run(reinterpret_cast<const std::uint8_t*>(bytes.data()), size) == 0);
    }
}
