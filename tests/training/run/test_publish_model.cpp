// The final model's files on disks that fail: each is the old one or the new one, whole.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include "support/faulty_files.h"
#include "support/small_pretraining.h"
#include "tensor/backends.h"
#include "training/run/checkpoint.h"

using namespace bertrand;
using namespace bertrand::training;
using support::read_text;
namespace fs = std::filesystem;

namespace {

const std::vector<std::string> kNames{"config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"};

/// One model, whose weights say the version.
struct Published {
  std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  distributed::Replica self{*backend};
  support::SmallPretraining objective{support::kSmallPretraining, self};
  nn::ParameterSet parameters{objective.model(), *backend};

  void publish(io::Files& files, const fs::path& directory, double version) {
    ops::fill(parameters.values(), version);
    publish_model(files, directory, objective, parameters);
  }
  std::vector<std::string> contents(double version) {
    const support::TemporaryDirectory directory;
    publish(io::Files::system(), directory / "", version);
    return read(directory / "");
  }
  static std::vector<std::string> read(const fs::path& directory) {
    std::vector<std::string> contents;
    for (const std::string& name : kNames) contents.push_back(read_text(directory / name));
    return contents;
  }
};

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

}  // namespace

TEST_CASE("where any call fails the error names it, every file is whole, and nothing but whole files is left behind") {
  Published model;
  const auto before = model.contents(1), after = model.contents(2);
  const support::TemporaryDirectory first;
  support::FailingFiles counting(0, "");
  model.publish(counting, first / "", 2);
  CHECK(names_in(first / "") == kNames);
  REQUIRE(counting.calls() > 15);
  const auto new_file = [&](const std::string& name) {
    return after[static_cast<std::size_t>(std::ranges::find(kNames, name) - kNames.begin())];
  };
  std::size_t unmoved = 0;
  for (int failing = 1; failing <= counting.calls(); ++failing) {
    CAPTURE(failing);
    const support::TemporaryDirectory directory;
    model.publish(io::Files::system(), directory / "", 1);
    support::FailingFiles files(failing, "No space left on device");
    CHECK_THROWS_WITH_AS(model.publish(files, directory / "", 2), doctest::Contains(": No space left on device"),
                         Error);
    const auto found = Published::read(directory / "");
    for (std::size_t i = 0; i < found.size(); ++i) CHECK((found[i] == before[i] || found[i] == after[i]));
    const fs::path staged = directory / fmt::format("model.tmp-{}", ::getpid());
    if (fs::exists(staged)) {  // all is written, and a file cannot be put in its place
      ++unmoved;
      for (const std::string& name : names_in(staged)) CHECK(read_text(staged / name) == new_file(name));
    } else {
      CHECK(names_in(directory / "") == kNames);
    }
    model.publish(io::Files::system(), directory / "", 2);
    CHECK(Published::read(directory / "") == after);
    CHECK(names_in(directory / "") == kNames);
  }
  CHECK(unmoved == kNames.size() + 1);  // or their empty directory cannot be removed
}

TEST_CASE("what an earlier process of this number left of a model is not published") {
  Published model;
  const support::TemporaryDirectory directory;
  const fs::path staged = directory / fmt::format("model.tmp-{}", ::getpid());
  fs::create_directory(staged);
  support::write_text(staged / "left", "x");
  model.publish(io::Files::system(), directory / "", 1);
  CHECK(names_in(directory / "") == kNames);
}

TEST_CASE("after a power failure at any moment every file of the model is the old one or the new one") {
  Published model;
  const auto before = model.contents(1), after = model.contents(2);
  const support::TemporaryDirectory directory;
  support::RecordingFiles files(directory / "");
  model.publish(files, directory / "", 1);
  const std::size_t old = files.calls();
  model.publish(files, directory / "", 2);
  for (std::size_t calls = old; calls <= files.calls(); ++calls)
    for (const support::Lost lost :
         {support::Lost::nothing, support::Lost::data, support::Lost::half_of_data, support::Lost::everything}) {
      CAPTURE(calls);
      const support::TemporaryDirectory disk;
      files.restore(calls, lost, disk / "");
      const auto found = Published::read(disk / "");
      for (std::size_t i = 0; i < found.size(); ++i) CHECK((found[i] == before[i] || found[i] == after[i]));
      if (calls == files.calls()) CHECK(found == after);
    }
}

TEST_CASE("a model with a weight that is not finite is not published, and the one that is there stays") {
  Published model;
  const support::TemporaryDirectory directory;
  model.publish(io::Files::system(), directory / "", 1);
  CHECK_THROWS_WITH_AS(model.publish(io::Files::system(), directory / "", std::numeric_limits<double>::quiet_NaN()),
                       doctest::Contains("expected finite weights"), Error);
  CHECK(Published::read(directory / "") == model.contents(1));
  CHECK(names_in(directory / "") == kNames);
}
