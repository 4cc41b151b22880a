#include <doctest/doctest.h>

#include "apps/pretrain/processes_setting.h"
#include "support/small_model.h"

using support::Outcome;
using support::read_text;

namespace {

using Flags = std::vector<std::string>;

/// Trains and predicts, then evaluates and predicts with the result, all with so many replicas.
struct FinetuneRuns {
  support::TemporaryDirectory directory;
  FinetuneRuns() {
    support::write_small_model(directory / "model");
    support::write_text(directory / "train.csv", support::animals(31));
    support::write_text(directory / "dev.csv", support::animals(70));
  }
  Flags with_common(const std::string& name, const std::string& model, const Flags& flags) const {
    return support::with_defaults(
        {"--task", "custom", "--label-column", "kind", "--max-seq-length", "16", "--model", directory / model,
         "--output", directory / name, "--eval", directory / "dev.csv", "--predict", directory / "dev.csv"},
        flags);
  }
  /// Four micro-batches a step.
  Flags training(const Flags& more) const {
    Flags flags = {"--train", directory / "train.csv", "--batch-size", "8", "--micro-batch-size", "2"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  }
  void run(const std::string& name, const std::string& model, const Flags& flags) const {
    const Outcome outcome = support::run_program("finetune", with_common(name, model, flags));
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  }
  /// The same in so many processes, each of which reads another file if `predicted` is given: file.0, file.1…
  void run_processes(const std::string& name, const std::string& model, const Flags& flags, int processes,
                     const std::string& predicted = "") const {
    Flags all = flags;
    if (!predicted.empty())
      all.insert(all.end(), {"--predict", (directory / predicted).string() + ".$OMPI_COMM_WORLD_RANK.csv"});
    std::string command = "mpirun --allow-run-as-root --oversubscribe --bind-to none -n " + std::to_string(processes) +
                          " sh -c '" + bertrand::paths::binary + "/finetune";
    for (const std::string& flag : with_common(name, model, all)) command += " \"" + flag + "\"";
    const auto log = directory / (name + ".log");
    const int status = std::system((command + "' >" + log.string() + " 2>&1").c_str());
    REQUIRE_MESSAGE((status == 0) == predicted.empty(), read_text(log));
  }
  std::string file(const std::string& name) const { return read_text(directory / name); }
};

}  // namespace

TEST_CASE("fine-tuning, evaluation and prediction on several replicas leave the files of one, byte for byte") {
  const FinetuneRuns runs;
  const Flags training = runs.training({"--epochs", "3", "--learning-rate", "0.01"});
  runs.run("train1", "model", training);
  runs.run("apply1", "train1", {});
  for (const std::string replicas : {"2", "3", "4"}) {
    CAPTURE(replicas);
    Flags several = training;
    several.insert(several.end(), {"--replicas", replicas, "--threads", "3"});
    runs.run("train" + replicas, "model", several);
    runs.run("apply" + replicas, "train1", {"--replicas", replicas});
    for (const std::string name : {"model.safetensors", "config.json", "eval_results.json", "predictions.tsv"})
      CHECK_MESSAGE(runs.file("train" + replicas + "/" + name) == runs.file("train1/" + name), name);
    for (const std::string name : {"eval_results.txt", "predictions.tsv"})
      CHECK_MESSAGE(runs.file("apply" + replicas + "/" + name) == runs.file("apply1/" + name), name);
  }
}

TEST_CASE("prediction with more replicas than examples leaves the file of one") {
  const FinetuneRuns runs;
  support::write_text(runs.directory / "dev.csv", support::animals(2));
  runs.run("train1", "model", {"--train", runs.directory / "train.csv", "--epochs", "1"});
  runs.run("apply1", "train1", {});
  runs.run("apply5", "train1", {"--replicas", "5"});
  CHECK(runs.file("apply5/predictions.tsv") == runs.file("apply1/predictions.tsv"));
}

TEST_CASE("fine-tuning and prediction in several processes leave the files of one") {
  if (!std::filesystem::exists(bertrand::paths::binary + "/libbertrand_mpi.so") ||
      std::system("command -v mpirun >/dev/null") != 0) {
    MESSAGE("SKIPPED: there is no MPI");
    return;
  }
  const FinetuneRuns runs;
  const Flags training = runs.training({"--epochs", "2", "--threads", "1"});
  runs.run("train1", "model", training);
  runs.run("apply1", "train1", {});
  runs.run_processes("train2", "model", training, 2);
  runs.run_processes("apply3", "train1", {"--threads", "1"}, 3);
  for (const std::string name : {"model.safetensors", "eval_results.json", "predictions.tsv"})
    CHECK_MESSAGE(runs.file("train2/" + name) == runs.file("train1/" + name), name);
  CHECK(runs.file("apply3/predictions.tsv") == runs.file("apply1/predictions.tsv"));

  // Each process predicts its part, so all must have the same file.
  support::write_text(runs.directory / "texts.0.csv", support::animals(7));
  support::write_text(runs.directory / "texts.1.csv", runs.file("texts.0.csv").replace(20, 1, "x"));
  runs.run_processes("apply2", "train1", {"--threads", "1"}, 2, "texts");
  CHECK(runs.file("apply2.log").find("expected the same run in all, but in process 0") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(runs.directory / "apply2"));
}

TEST_CASE("a process that is interrupted while it reads ends the one that waits for it with 75 too") {
  if (const std::string why = support::ProcessesSetting::missing(); !why.empty()) {
    MESSAGE("SKIPPED: " << why);
    return;
  }
  const FinetuneRuns runs;
  const support::ProcessesSetting processes;
  runs.run("model-1", "model", runs.training({"--epochs", "1"}));
  support::write_text(runs.directory / "rows.1.csv", support::animals(7));
  std::string rows = support::animals(100'000);
  while (rows.size() < 60'000'000) rows += rows;  // the first process reads for seconds
  support::write_text(runs.directory / "rows.0.csv", rows);
  std::string command = bertrand::paths::binary + "/finetune --threads 1";
  for (const std::string& flag :
       runs.with_common("run", "model-1", {"--predict", runs.directory / "rows.$OMPI_COMM_WORLD_RANK.csv"}))
    command += " \"" + flag + "\"";
  const std::string script = processes.script_of("run", command);
  const auto running = std::async(std::launch::async, [&] { processes.launch(script, 2); });
  processes.wait_until(running, [&] { return std::filesystem::exists(runs.directory / "run/.lock"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the second process has read all
  processes.send("run", 0, SIGTERM);
  running.wait();
  CHECK(processes.code("run", 0) == 75);
  CHECK(processes.of_rank("run", 0, "error").find("interrupted while reading a table") != std::string::npos);
  CHECK(processes.code("run", 1) == 75);
  CHECK_MESSAGE(processes.of_rank("run", 1, "error").find(") was interrupted; hint: run") != std::string::npos,
                processes.of_rank("run", 1, "error"));
}
