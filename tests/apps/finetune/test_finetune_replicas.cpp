#include <doctest/doctest.h>

#include "apps/pretrain/processes_setting.h"
#include "support/small_model.h"
#include "support/small_ranking.h"

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
  /// The script of a prediction, run, by processes of which the first one reads for seconds and the others at once.
  std::string script_of_unequal(const support::ProcessesSetting& processes, const Flags& more) const {
    run("model-1", "model", training({"--epochs", "1"}));
    support::write_text(directory / "rows.1.csv", support::animals(7));
    write_long_rows(60'000'000);
    std::string command = bertrand::paths::binary + "/finetune --threads 1";
    for (const std::string& flag :
         with_common("run", "model-1",
                     support::with_defaults({"--predict", directory / "rows.$OMPI_COMM_WORLD_RANK.csv"}, more)))
      command += " \"" + flag + "\"";
    return processes.script_of("run", command);
  }
  void write_long_rows(std::size_t bytes) const {
    std::string rows = support::animals(100'000);
    while (rows.size() < bytes) rows += rows;
    support::write_text(directory / "rows.0.csv", rows);
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
  const std::string script = runs.script_of_unequal(processes, {});
  const auto running = std::async(std::launch::async, [&] { processes.launch(script, 2); });
  processes.wait_until(running, [&] { return std::filesystem::exists(runs.directory / "run/.lock"); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the second process has read all
  processes.send("run", 0, SIGTERM);
  running.wait();
  CHECK(processes.code("run", 0) == 75);
  CHECK(processes.of_rank("run", 0, "error").find("interrupted while reading a table") != std::string::npos);
  CHECK(processes.code("run", 1) == 75);
  CHECK(processes.of_rank("run", 1, "error") == "interrupted in another process: nothing was written\n");
}

TEST_CASE("a process that reads for longer than the timeout is waited for, and one that is killed meanwhile is not") {
  if (const std::string why = support::ProcessesSetting::missing(); !why.empty()) {
    MESSAGE("SKIPPED: " << why);
    return;
  }
  const FinetuneRuns runs;
  const support::ProcessesSetting processes;
  const std::string script = runs.script_of_unequal(processes, {"--collective-timeout", "1.5"});
  const auto has_begun = [&] { return std::filesystem::exists(runs.directory / "run/.lock"); };
  std::chrono::duration<double> took{};
  for (std::size_t bytes = 60'000'000; took.count() < 1.5; runs.write_long_rows(bytes *= 2)) {
    const auto reading = std::async(std::launch::async, [&] { processes.launch(script, 2); });
    processes.wait_until(reading, has_begun);
    const auto begin = std::chrono::steady_clock::now();
    reading.wait();
    took = std::chrono::steady_clock::now() - begin;  // on a fast machine too little: then it reads more
    for (const int rank : {0, 1}) {                   // when all have read, they see that their files differ
      CHECK(processes.code("run", rank) == 2);
      CHECK_MESSAGE(processes.of_rank("run", rank, "error").find("expected the same run in all") != std::string::npos,
                    processes.of_rank("run", rank, "error"));
    }
  }
  const auto running = std::async(std::launch::async, [&] { processes.launch(script, 2); });
  processes.wait_until(running, has_begun);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // it has begun to read
  processes.send("run", 1, SIGKILL);
  running.wait();
  CHECK(processes.code("run", 0) == 8);
  CHECK_MESSAGE(processes.of_rank("run", 0, "error").find(") has died") != std::string::npos,
                processes.of_rank("run", 0, "error"));
  CHECK_FALSE(std::filesystem::exists(runs.directory / "run/.lock"));
}

TEST_CASE("SIGTERM to any one process while all predict ends all with 75 and --resume makes the files of one") {
  if (const std::string why = support::ProcessesSetting::missing(); !why.empty()) {
    MESSAGE("SKIPPED: " << why);
    return;
  }
  const FinetuneRuns runs;
  const support::ProcessesSetting processes;
  const auto at = [&](const std::string& name) { return (runs.directory / name).string(); };
  std::string candidates;
  for (int i = 0; i < 600; ++i) candidates += support::small_candidates();
  support::write_text(at("rows.csv"), support::animals(40'000));
  support::write_text(at("triples.tsv"), support::small_triples());
  support::write_text(at("candidates.tsv"), candidates);
  struct Task {
    std::string name;
    Flags flags;
    std::string first_words, last_words;  ///< of what an interrupted process says
  };
  const Task rows = {
      "rows",
      {"--task", "custom", "--label-column", "kind", "--train", at("train.csv"), "--predict", at("rows.csv")},
      "interrupted while predicting: ",
      "the training is saved; hint: --resume makes the predictions"};
  const Task ranking = {
      "ranking",
      {"--task", "msmarco", "--max-query-length", "8", "--train", at("triples.tsv"), "--predict", at("candidates.tsv")},
      "interrupted after ",
      " of 18000 predictions: they are kept; hint: --resume goes on"};
  for (const Task& task : {rows, ranking}) {
    CAPTURE(task.name);
    const auto flags = [&](const std::string& run) {
      return support::with_defaults({"--model", at("model"), "--max-seq-length", "16", "--batch-size", "8",
                                     "--micro-batch-size", "2", "--epochs", "1", "--threads", "1", "--output", at(run)},
                                    task.flags);
    };
    const Outcome whole = support::run_program("finetune", flags(task.name));
    REQUIRE_MESSAGE(whole.code == 0, whole.error);
    for (const int asked : {0, 1}) {
      const std::string run = task.name + std::to_string(asked);
      CAPTURE(run);
      std::string command = bertrand::paths::binary + "/finetune";
      for (const std::string& flag : flags(run)) command += " '" + flag + "'";
      const std::string script = processes.script_of(run, command);
      const auto running = std::async(std::launch::async, [&] { processes.launch(script, 2); });
      processes.wait_until(running, [&] {
        return task.name == "ranking" ? std::filesystem::exists(at(run + "/predictions.partial"))
                                      : processes.of_rank(run, 0, "out").find("finished after") != std::string::npos;
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      processes.send(run, asked, SIGTERM);
      running.wait();
      for (const int rank : {0, 1}) {
        CHECK(processes.code(run, rank) == 75);
        const auto lines = processes.own_lines(run, rank, "error");  // the first process may have warned before
        CHECK_MESSAGE(
            (!lines.empty() && lines.back().starts_with(task.first_words) && lines.back().ends_with(task.last_words)),
            processes.of_rank(run, rank, "error"));
      }
      CHECK_FALSE(std::filesystem::exists(at(run + "/.lock")));
      CHECK_FALSE(std::filesystem::exists(at(run + "/predictions.tsv")));
      const Outcome resumed = support::run_program("finetune", {"--resume", "--output", at(run)});  // in one process
      REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
      for (const std::string name : {"/model.safetensors", "/predictions.tsv"})
        CHECK_MESSAGE(runs.file(run + name) == runs.file(task.name + name), name);
    }
  }
}

TEST_CASE("SIGTERM to the first process after the last step and before the prediction ends all with 75") {
  if (const std::string why = support::ProcessesSetting::missing(); !why.empty()) {
    MESSAGE("SKIPPED: " << why);
    return;
  }
  const FinetuneRuns runs;
  const support::ProcessesSetting processes;
  const auto at = [&](const std::string& name) { return (runs.directory / name).string(); };
  support::write_text(at("triples.tsv"), support::small_triples());
  support::write_text(at("candidates.tsv"), support::small_candidates());
  std::string command = bertrand::paths::binary + "/finetune";
  for (const std::string& flag : Flags{"--task",
                                       "msmarco",
                                       "--model",
                                       at("model"),
                                       "--train",
                                       at("triples.tsv"),
                                       "--predict",
                                       at("candidates.tsv"),
                                       "--max-seq-length",
                                       "16",
                                       "--batch-size",
                                       "8",
                                       "--max-query-length",
                                       "8",
                                       "--micro-batch-size",
                                       "2",
                                       "--steps",
                                       "1",
                                       "--threads",
                                       "1",
                                       "--output",
                                       at("run")})
    command += " '" + flag + "'";
  const std::string script = processes.script_of("run", command);
  const auto running = std::async(std::launch::async, [&] { processes.launch(script, 2); });
  processes.wait_until(running, [&] { return std::filesystem::exists(at("run/checkpoint-1")); });  // the last one
  processes.send("run", 0, SIGTERM);
  running.wait();
  for (const int rank : {0, 1}) {
    CHECK(processes.code("run", rank) == 75);
    CHECK_MESSAGE(
        processes.of_rank("run", rank, "error").find("interrupted after 0 of 30 predictions: they are kept") !=
            std::string::npos,
        processes.of_rank("run", rank, "error"));
  }
  const Outcome resumed = support::run_program("finetune", {"--resume", "--output", at("run")});
  CHECK_MESSAGE(resumed.code == 0, resumed.error);
  CHECK(std::filesystem::exists(at("run/predictions.tsv")));
}
