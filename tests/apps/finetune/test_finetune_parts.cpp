// --freeze and --layer-decay from the command line to the files of a run.
#include <doctest/doctest.h>

#include "apps/pretrain/pretrain_setting.h"
#include "io/safetensors.h"
#include "support/small_model.h"

using namespace bertrand;
using support::Flags;
using support::Outcome;
using support::read_text;

namespace {

struct PartsRun {
  support::TemporaryDirectory directory;
  PartsRun() {
    support::write_small_model(directory / "model", 3);
    support::write_text(directory / "train.csv", support::animals(31));
  }
  Flags flags(const std::string& output, const Flags& more) const {
    return support::with_defaults({"--task",
                                   "custom",
                                   "--label-column",
                                   "kind",
                                   "--max-seq-length",
                                   "16",
                                   "--model",
                                   directory / "model",
                                   "--train",
                                   directory / "train.csv",
                                   "--eval",
                                   directory / "train.csv",
                                   "--epochs",
                                   "2",
                                   "--batch-size",
                                   "8",
                                   "--micro-batch-size",
                                   "2",
                                   "--learning-rate",
                                   "0.01",
                                   "--output",
                                   directory / output},
                                  more);
  }
  std::string run(const std::string& output, const Flags& more) const {
    const Outcome outcome = support::run_program("finetune", flags(output, more));
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    return outcome.out;
  }
  std::string file(const std::string& name) const { return read_text(directory / name); }
  std::string tensor(const std::string& file, const std::string& name) const {
    const io::SafetensorsFile tensors(directory / file);
    const io::SafetensorsEntry* entry = tensors.find(name);
    return entry ? std::string(reinterpret_cast<const char*>(entry->bytes.data()), entry->bytes.size()) : "";
  }
};

}  // namespace

TEST_CASE("frozen parts keep their weights and have no moments and the plan names them") {
  const PartsRun runs;
  const std::string out = runs.run("run", {"--freeze", "embeddings,0,2", "--layer-decay", "0.5"});
  CHECK(out.find("  frozen      embeddings, 0, 2: ") != std::string::npos);
  CHECK(out.find("  rates       times: head 1, 1 0.25\n") != std::string::npos);
  const auto is_kept = [&](const std::string& name) {
    return runs.tensor("run/model.safetensors", name) == runs.tensor("model/model.safetensors", name);
  };
  const std::string moments = "run/checkpoint-8/optimizer.safetensors";
  for (const std::string part : {"embeddings", "encoder.layer.0", "encoder.layer.2"}) {
    const std::string name =
        "bert." + part + (part == "embeddings" ? ".LayerNorm.weight" : ".attention.self.query.weight");
    CAPTURE(name);
    CHECK(is_kept(name));
    CHECK(runs.tensor(moments, "exp_avg." + name).empty());
  }
  for (const std::string name : {"bert.encoder.layer.1.attention.self.query.weight", "bert.pooler.dense.weight"}) {
    CAPTURE(name);
    CHECK_FALSE(is_kept(name));
    CHECK_FALSE(runs.tensor(moments, "exp_avg." + name).empty());
  }
}

TEST_CASE("a run with frozen parts and layer-wise decay has the same bits on threads and replicas and when resumed") {
  const PartsRun runs;
  for (const Flags& parts : {Flags{"--freeze", "embeddings,0", "--layer-decay", "0.9"},
                             Flags{"--freeze", "1", "--precision", "bf16", "--optimizer", "lamb"}}) {
    CAPTURE(parts);
    const Flags fresh = support::joined(parts, {"--overwrite"});
    runs.run("one", support::joined(fresh, {"--threads", "1"}));
    for (const std::string replicas : {"1", "2", "3"}) {
      CAPTURE(replicas);
      runs.run("other", support::joined(fresh, {"--replicas", replicas, "--threads", "3"}));
      for (const std::string name : {"model.safetensors", "checkpoint-8/optimizer.safetensors", "eval_results.json"})
        CHECK_MESSAGE(runs.file("other/" + name) == runs.file("one/" + name), name);
    }
    runs.run("other", support::joined(fresh, {"--recompute-activations", "1", "--replicas", "2"}));
    CHECK(runs.file("other/model.safetensors") == runs.file("one/model.safetensors"));
    runs.run("resumed", support::joined(fresh, {"--save-every", "3"}));
    std::filesystem::remove_all(runs.directory / "resumed/checkpoint-8");
    const Outcome outcome = support::run_program("finetune", {"--output", runs.directory / "resumed", "--resume"});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    CHECK(runs.file("resumed/checkpoint-8/model.safetensors") == runs.file("one/checkpoint-8/model.safetensors"));
    CHECK(runs.file("resumed/checkpoint-8/optimizer.safetensors") ==
          runs.file("one/checkpoint-8/optimizer.safetensors"));
  }
}

TEST_CASE("a run with frozen parts in two processes has the bits of one") {
  if (!std::filesystem::exists(paths::binary + "/libbertrand_mpi.so") ||
      std::system("command -v mpirun >/dev/null") != 0) {
    MESSAGE("SKIPPED: there is no MPI");
    return;
  }
  const PartsRun runs;
  const Flags parts = {"--freeze", "embeddings,0-1", "--layer-decay", "0.8", "--threads", "1"};
  runs.run("one", parts);
  std::string command = "mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 " + paths::binary + "/finetune";
  const Flags again = support::joined(parts, {"--recompute-activations", "2", "--profile", runs.directory / "profile"});
  for (const std::string& flag : runs.flags("two", again)) command += " '" + flag + "'";
  REQUIRE(std::system((command + " >" + (runs.directory / "log").string() + " 2>&1").c_str()) == 0);
  for (const std::string name : {"model.safetensors", "checkpoint-8/optimizer.safetensors"})
    CHECK_MESSAGE(runs.file("two/" + name) == runs.file("one/" + name), name);
}

TEST_CASE("a part that the model does not have is refused in one line before anything is written") {
  const PartsRun runs;
  const auto error = [&](const Flags& more) {
    const Outcome outcome = support::run_program("finetune", runs.flags("run", more));
    CHECK(outcome.code == 2);
    CHECK_FALSE(std::filesystem::exists(runs.directory / "run/run_config.json"));
    return outcome.error;
  };
  CHECK(error({"--freeze", "0-3"}) == "error: --freeze: expected some of embeddings, 0 to 2, pooler, got \"0-3\"\n");
  CHECK(error({"--freeze", "poler", "--replicas", "2"}) ==
        "error: --freeze: expected some of embeddings, 0 to 2, pooler, got \"poler\"; did you mean pooler?\n");
  CHECK(error({"--layer-decay", "1.5"}) == "error: --layer-decay: expected a number, 1e-06 to 1, got \"1.5\"\n");
  CHECK(error({"--layer-decay", "0"}).starts_with("error: --layer-decay: expected a number"));
}

TEST_CASE("a run is resumed with its own parts only") {
  const PartsRun runs;
  runs.run("run", {"--freeze", "embeddings"});
  const Outcome outcome = support::run_program(
      "finetune", {"--output", runs.directory / "run", "--resume", "--epochs", "3", "--freeze", "embeddings,0"});
  CHECK(outcome.code == 2);
  CHECK(outcome.error.find("--freeze was embeddings, now embeddings,0") != std::string::npos);
}

TEST_CASE("the predicted memory of a model with frozen parts is within a twentieth of the measured peak") {
  const support::PretrainSetting setting;
  for (const auto& parts : {std::pair{"embeddings,0", "f32"}, {"1,pooler", "f32"}, {"embeddings", "bf16"}}) {
    const std::string freeze = parts.first, precision = parts.second;
    CAPTURE(freeze);
    Flags flags = setting.flags("run", {"--steps", "4", "--micro-batch-size", "3", "--precision", precision, "--freeze",
                                        freeze, "--overwrite"});
    flags[1] = "tiny";
    const Outcome outcome = support::run_program("pretrain", flags);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    const double predicted = std::stod(outcome.out.substr(outcome.out.find("memory      ") + 12)) * 1e6;
    const double measured = support::read_json_lines(setting.directory / "run/metrics.jsonl").back().at("memory_bytes");
    CHECK(predicted == doctest::Approx(measured).epsilon(0.05));
  }
}
