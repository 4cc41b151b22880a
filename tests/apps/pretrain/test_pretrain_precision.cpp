#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "apps/pretrain/pretrain_setting.h"
#include "bert/directory/config_file.h"
#include "bert/directory/model_directory.h"
#include "bert/network/heads.h"
#include "io/safetensors.h"
#include "support/worst.h"
#include "tensor/backends.h"

using namespace bertrand;
using support::Outcome;
using support::PretrainSetting;
namespace fs = std::filesystem;

namespace {

std::vector<double> column(const std::vector<nlohmann::json>& lines, const char* key) {
  std::vector<double> values;
  for (const auto& line : lines)
    if (line.contains(key)) values.push_back(line.at(key));
  return values;
}

/// 200 steps in one precision; the losses of all.
std::vector<double> losses(const PretrainSetting& setting, const std::string& precision) {
  std::vector<std::string> flags =
      setting.flags(precision, {"--steps", "200", "--micro-batch-size", "5", "--precision", precision});
  *(std::ranges::find(flags, "--learning-rate") + 1) = "0.001";
  const Outcome outcome = support::run_program("pretrain", flags);
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  return column(setting.metrics(precision), "loss");
}

/// A model directory of the setting's shape with one weight that f32 holds and f16 does not.
void write_model_beyond_f16(const PretrainSetting& setting) {
  const auto backend = open_cpu({.threads = 1});
  const bert::Config config = bert::read_config_file(setting.directory / "config.json", bert::UnknownKeys::refuse);
  bert::ForPretraining model(config);
  const nn::ParameterSet parameters(model, *backend);
  parameters.master(*parameters.find("bert.encoder.layer.1.output.dense.weight")).span<float>()[3] = 1e5f;
  fs::create_directories(setting.directory / "large");
  bert::write_directory(io::Files::system(), setting.directory / "large",
                        {.config = config, .vocabulary = setting.file("vocab.txt"), .tokenizer = {}}, parameters);
}

}  // namespace

TEST_CASE("200 steps in f32, bf16 and f16 keep their losses together") {
  const PretrainSetting setting;
  const std::vector<double> f32 = losses(setting, "f32");
  REQUIRE(f32.size() == 200);
  const auto mean_of_20 = [&](auto first) { return std::accumulate(first, first + 20, 0.0) / 20; };
  CHECK(mean_of_20(f32.begin()) - mean_of_20(f32.end() - 20) > 0.3);
  for (const auto& [precision, bound] : {std::pair{"bf16", 0.03}, {"f16", 0.03}}) {  // measured: 0.020 and 0.019
    const std::vector<double> half = losses(setting, precision);
    REQUIRE(half.size() == 200);
    double worst = 0;
    for (std::size_t i = 0; i < 200; ++i) worst = support::worst_of(worst, std::abs(half[i] - f32[i]));
    INFO(precision << ": at most " << worst << " apart");
    CHECK(worst <= bound);
    CHECK(worst > 0);
  }
  // One step of the 200 overflows at the first scale, and none at half of it.
  const auto steps = setting.metrics("f16");
  CHECK(steps.front().at("loss_scale") == 65536);
  CHECK(steps.back().at("loss_scale") == 32768);
  CHECK(steps.back().at("skipped_steps") == 1);
  CHECK_FALSE(setting.metrics("bf16").back().contains("loss_scale"));
  CHECK(nlohmann::json::parse(setting.file("bf16/run_config.json")).at("settings").at("precision") == "bf16");
}

TEST_CASE("in every precision a resumed run ends with the same bits, and what is saved is f32") {
  const PretrainSetting setting;
  for (const std::string precision : {"f32", "bf16", "f16"}) {
    CAPTURE(precision);
    const std::vector<std::string> flags = {"--steps", "9",           "--save-every", "4", "--micro-batch-size",
                                            "4",       "--precision", precision};
    const std::string whole = "whole-" + precision, run = "run-" + precision;
    REQUIRE(setting.run(whole, flags).code == 0);
    fs::copy(setting.directory / whole, setting.directory / run, fs::copy_options::recursive);
    for (const char* later : {"checkpoint-8", "checkpoint-9"}) fs::remove_all(setting.directory / run / later);
    std::vector<std::string> resume = flags;
    resume.insert(resume.end(), {"--resume", "--threads", "3"});
    const Outcome resumed = setting.run(run, resume);
    REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
    for (const std::string file :
         {"/model.safetensors", "/checkpoint-9/optimizer.safetensors", "/checkpoint-9/resume.json"})
      CHECK_MESSAGE(setting.file(run + file) == setting.file(whole + file), file);
    CHECK(setting.metrics(run) == setting.metrics(whole));
    for (const char* file : {"model.safetensors", "checkpoint-4/optimizer.safetensors"}) {
      const io::SafetensorsFile tensors(setting.directory / whole / file);
      for (const auto& entry : tensors.entries()) CHECK(entry.dtype_name == "F32");
    }
  }
}

TEST_CASE("replicas in half types compute what one computes, bit for bit") {
  const PretrainSetting setting;
  for (const std::string precision : {"bf16", "f16"}) {
    const std::vector<std::string> flags = {"--steps", "4", "--micro-batch-size", "3", "--precision", precision};
    const auto with = [&](const char* replicas) {
      std::vector<std::string> all = flags;
      all.insert(all.end(), {"--replicas", replicas});
      return all;
    };
    REQUIRE(setting.run("one-" + precision, with("1")).code == 0);
    REQUIRE(setting.run("two-" + precision, with("2")).code == 0);
    CHECK(setting.file("one-" + precision + "/model.safetensors") ==
          setting.file("two-" + precision + "/model.safetensors"));
  }
}

TEST_CASE("a run goes on in another precision from the same masters, f16 with its loss scale, and not from or to f64") {
  const PretrainSetting setting;
  REQUIRE(setting.run("run", {"--steps", "6", "--save-every", "2", "--precision", "f32"}).code == 0);
  for (const char* later : {"checkpoint-4", "checkpoint-6"}) fs::remove_all(setting.directory / "run" / later);
  const Outcome other = setting.run("run", {"--steps", "6", "--save-every", "2", "--precision", "f16", "--resume"});
  REQUIRE(other.code == 0);
  CHECK(other.out.find("--precision was f32, now f16: from here on steps are rounded as it says") != std::string::npos);
  CHECK(setting.metrics("run").at(1).contains("loss_scale") == false);
  CHECK(setting.metrics("run").at(2).at("loss_scale") == 65536);
  const Outcome refused = setting.run("run", {"--steps", "6", "--precision", "f64", "--resume"});
  CHECK(refused.code == 2);
  CHECK(refused.error.find("--precision was f16, now f64") != std::string::npos);
}

TEST_CASE(
    "a model whose numbers f16 cannot hold ends with exit 6 when the loss scale has nowhere to go, naming the op") {
  const PretrainSetting setting;
  write_model_beyond_f16(setting);
  std::vector<std::string> flags = setting.flags("run", {"--steps", "40", "--save-every", "20", "--precision", "f16"});
  flags[0] = "--init";
  flags[1] = setting.directory / "large";
  const Outcome outcome = support::run_program("pretrain", flags);
  CHECK(outcome.code == 6);
  CHECK(outcome.error.find("step 27: op linear: forward") != std::string::npos);
  CHECK(outcome.error.find("last checkpoint: ") != std::string::npos);
  CHECK(setting.metrics("run").back().at("skipped_steps") == 26);
}

TEST_CASE("tf32 is a choice that a CPU refuses in one line") {
  const PretrainSetting setting;
  const Outcome outcome = setting.run("run", {"--steps", "1", "--precision", "tf32"});
  CHECK(outcome.code == 2);
  CHECK(outcome.error == "error: --precision: expected f32, bf16, f16 or f64 on the cpu, got \"tf32\"\n");
}
