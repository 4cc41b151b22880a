// Replicas on GPUs, through the programs: the GPUs and what joins them are emulated.
#include <doctest/doctest.h>

#include <cmath>

#include "apps/pretrain/pretrain_setting.h"
#include "io/safetensors.h"

using support::PretrainSetting;

namespace {

const std::vector<std::string> kFlags = {"--steps", "3", "--micro-batch-size", "2", "--max-seq-length", "24"};

std::vector<std::string> on(const std::string& devices, std::vector<std::string> flags = kFlags) {
  flags.insert(flags.end(), {"--device", devices});
  return flags;
}

}  // namespace

TEST_CASE("two emulated GPUs give the bits of one where each has a node of the tree, and four are close") {
  const PretrainSetting setting;
  std::vector<std::string> flags = kFlags;
  flags.insert(flags.end(), {"--batch-size", "8"});  // four micro-batches
  const auto run = [&](const std::string& name, const std::string& devices, const std::string& replicas) {
    auto all = on(devices, flags);
    all.insert(all.end(), {"--replicas", replicas});
    const auto outcome = setting.run(name, all);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    return setting.file(name + "/checkpoint-3/model.safetensors");
  };
  const std::string one = run("one", "emulated-cuda", "1");
  CHECK(run("two", "emulated-cuda:0,emulated-cuda:1", "1") == one);
  CHECK(run("one-gpu", "emulated-cuda:2", "4") == one);  // threads: the tree itself
  run("four", "emulated-cuda:0,emulated-cuda:1,emulated-cuda:2,emulated-cuda:3", "1");
  const auto expected = setting.metrics("one"), four = setting.metrics("four");
  REQUIRE(four.size() == expected.size());
  for (std::size_t i = 0; i < four.size(); ++i)
    if (four[i].contains("loss"))
      CHECK(four[i]["loss"].get<double>() == doctest::Approx(expected[i]["loss"].get<double>()).epsilon(1e-5));
}

TEST_CASE("devices that cannot work together are refused in one line") {
  const PretrainSetting setting;
  const auto refusal = [&](const std::string& devices, const std::vector<std::string>& more = {}) {
    auto flags = on(devices);
    flags.insert(flags.end(), more.begin(), more.end());
    const auto outcome = setting.run("run", flags);
    CHECK(outcome.code == 2);
    return outcome.error;
  };
  CHECK(refusal("emulated-cuda:0,emulated-cuda:0") ==
        "error: --device: expected each device once, got emulated-cuda:0 twice; hint: --device emulated-cuda:0 "
        "--replicas 2\n");
  CHECK(refusal("emulated-cuda,emulated-cuda:0").find("twice") != std::string::npos);
  CHECK(refusal("emulated-cuda:0,cpu").find("--device: expected one kind of device, got emulated-cuda:0,cpu") !=
        std::string::npos);
  CHECK(
      refusal("emulated-cuda:0,emulated-cuda:1", {"--replicas", "2"}).find("--replicas: expected 1 if several GPUs") !=
      std::string::npos);
  CHECK(refusal("emulated-cuda:0,emulated-cuda:9") == "error: --device cuda:9: there are 4 GPUs, numbered from 0\n");
  CHECK(refusal("emulated-cuda:0,").find("got \"\"") != std::string::npos);
  const auto too_many = setting.run(
      "run", on("emulated-cuda:0,emulated-cuda:1,emulated-cuda:2", {"--steps", "3", "--micro-batch-size", "5"}));
  CHECK(too_many.code == 2);
  CHECK(
      too_many.error.find("--device: expected at most 2, the micro-batches of a step (10 examples, 5 at once), got 3; "
                          "hint: fewer GPUs, or --micro-batch-size 4") != std::string::npos);
}
