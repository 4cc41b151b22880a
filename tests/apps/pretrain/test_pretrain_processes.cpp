#include <doctest/doctest.h>

#include <algorithm>

#include "apps/pretrain/processes_setting.h"

using support::Flags;
using support::joined;
using support::ProcessesSetting;
namespace fs = std::filesystem;

namespace {

bool skipped() {
  const std::string why = ProcessesSetting::missing();
  if (!why.empty()) MESSAGE("SKIPPED: " << why);
  return !why.empty();
}

int checkpoints(const ProcessesSetting& setting, const std::string& run) {
  int count = 0;
  for (const auto& entry : fs::directory_iterator(setting.directory / run))
    count += entry.path().filename().string().starts_with("checkpoint-");
  return count;
}

Flags long_run(const ProcessesSetting& setting) {
  return {"--steps",
          "400",
          "--eval-input",
          setting.directory / "held_out.txt",
          "--micro-batch-size",
          "5",
          "--save-every",
          "5",
          "--threads",
          "1",
          "--collective-timeout",
          "3"};
}

}  // namespace

TEST_CASE("processes and threads in any mixture give the bits of one replica") {
  if (skipped()) return;
  const ProcessesSetting setting;
  const Flags flags = {"--epochs",           "2", "--eval-input", setting.directory / "held_out.txt",
                       "--micro-batch-size", "2", "--eval-every", "3",
                       "--threads",          "2", "--optimizer",  "lamb"};
  struct Mixture {
    int processes;
    const char *replicas, *precision;
  };
  for (const Mixture& m :
       {Mixture{2, "1", "f32"}, {2, "2", "f32"}, {3, "1", "f32"}, {2, "2", "bf16"}, {3, "1", "f16"}}) {
    const std::string run = "run" + std::to_string(m.processes) + m.replicas + m.precision,
                      one = std::string("one_") + m.precision;
    CAPTURE(run);
    const Flags typed = joined(flags, {"--precision", m.precision});
    if (!fs::exists(setting.directory / one)) REQUIRE(setting.run(one, typed).code == 0);
    const int steps = setting.metrics(one).back().at("step");
    setting.run_processes(run, m.processes, joined(typed, {"--replicas", m.replicas}));
    for (int rank = 0; rank < m.processes; ++rank)
      CHECK_MESSAGE(setting.code(run, rank) == 0, setting.of_rank(run, rank, "error"));
    setting.check_same(run, one, steps);
    CHECK(setting.of_rank(run, 1, "out").empty());  // the first process alone speaks
  }
}

TEST_CASE(
    "gradients of more blocks than lie or travel at a time are summed as one replica does, in memory or messages") {
  if (skipped()) return;
  ProcessesSetting setting;
  support::write_text(setting.directory / "config.json",  // 2 million parameters
                      R"({"vocab_size": 57, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
                          "intermediate_size": 8000, "max_position_embeddings": 32, "type_vocab_size": 2})");
  const Flags flags = {"--steps", "2", "--micro-batch-size", "2", "--threads", "2"};
  REQUIRE(setting.run("one", flags).code == 0);
  const auto check_as_one = [&](const std::string& run, int processes, const std::string& sums) {
    CAPTURE(run);
    setting.run_processes(run, processes, flags);
    for (int rank = 0; rank < processes; ++rank)
      CHECK_MESSAGE(setting.code(run, rank) == 0, setting.of_rank(run, rank, "error"));
    CHECK_MESSAGE(setting.of_rank(run, 0, "out").find("  sums        of " + sums + "\n") != std::string::npos,
                  setting.of_rank(run, 0, "out"));
    setting.check_same(run, "one", 2);
  };
  check_as_one("three", 3, "3 processes in 6.29 MB of memory that they share");
  check_as_one("five", 5, "5 processes in 10.5 MB of memory that they share");
  setting.mpirun = "BERTRAND_SHARED_MEMORY=no " + setting.mpirun;
  check_as_one("messages", 3, "3 processes in messages: BERTRAND_SHARED_MEMORY=no");
}

TEST_CASE(
    "a process that is killed makes the other exit with 8 and say who, where and from which checkpoint to go on") {
  if (skipped()) return;
  const ProcessesSetting setting;
  const Flags flags = long_run(setting);
  REQUIRE(setting.run("whole", flags).code == 0);
  for (const int killed : {0, 1}) {
    CAPTURE(killed);
    const std::string run = "run" + std::to_string(killed);
    const double seconds = setting.disturb(run, 2, flags, [&] { setting.send(run, killed, SIGKILL); });
    CHECK(seconds < 8);
    CHECK(setting.code(run, 1 - killed) == 8);
    const std::string error = setting.of_rank(run, 1 - killed, "error");
    CAPTURE(error);
    CHECK(error.find("process " + std::to_string(killed) + " (host ") != std::string::npos);
    CHECK(error.find(") has died") != std::string::npos);
    CHECK(error.find("last checkpoint: ") != std::string::npos);
    const std::vector<std::string> lines = setting.own_lines(run, 1 - killed, "error");
    CHECK(lines.size() == 1);
    CHECK(lines[0].starts_with("error: step "));
    setting.run_processes(run, 2, joined(flags, {"--resume"}));
    CHECK_MESSAGE(setting.code(run, 0) == 0, setting.of_rank(run, 0, "error"));
    setting.check_same(run, "whole", 400);
  }
}

TEST_CASE("a process that is stopped makes the other exit with 8") {
  if (skipped()) return;
  const ProcessesSetting setting;
  // tests/faults.sh, which has the machine alone, asks how soon.
  setting.disturb("run", 2, long_run(setting), [&] {
    setting.send("run", 1, SIGSTOP);
    CHECK(support::soon([&] { return setting.code("run", 0) >= 0; }));
    CHECK(setting.code("run", 0) == 8);
    setting.send("run", 1, SIGKILL);
  });
  const std::string error = setting.of_rank("run", 0, "error");
  CHECK(error.find("process 1 (host ") != std::string::npos);
  CHECK(error.find("did not come within 3 seconds") != std::string::npos);
}

TEST_CASE("processes that are all stopped for longer than the timeout, and go on, end as if nothing had been") {
  if (skipped()) return;
  const ProcessesSetting setting;
  const Flags flags = long_run(setting);
  REQUIRE(setting.run("whole", flags).code == 0);
  setting.disturb("run", 2, flags, [&] {
    for (const int rank : {0, 1}) setting.send("run", rank, SIGSTOP);
    std::this_thread::sleep_for(std::chrono::seconds(7));
    setting.send("run", 0, SIGCONT);
    std::this_thread::sleep_for(std::chrono::seconds(1));  // for which the first waits, having lost seven
    setting.send("run", 1, SIGCONT);
  });
  for (const int rank : {0, 1}) CHECK_MESSAGE(setting.code("run", rank) == 0, setting.of_rank("run", rank, "error"));
  setting.check_same("run", "whole", 400);
}

TEST_CASE("SIGTERM to any one process saves once, and all exit 75") {
  if (skipped()) return;
  const ProcessesSetting setting;
  Flags flags = long_run(setting);
  flags[7] = "1000";  // --save-every
  REQUIRE(setting.run("whole", flags).code == 0);
  for (const int asked : {0, 1}) {
    const std::string run = "run" + std::to_string(asked);
    setting.disturb(run, 2, flags, [&] { setting.send(run, asked, SIGTERM); });
    CHECK(setting.code(run, 0) == 75);
    CHECK(setting.code(run, 1) == 75);
    CHECK(setting.of_rank(run, 0, "error").find(": state saved; ") != std::string::npos);
    CHECK(setting.of_rank(run, 1, "error").find(": state saved; ") == std::string::npos);
    CHECK(checkpoints(setting, run) == 1);
    REQUIRE(setting.run(run, joined(flags, {"--resume"})).code == 0);  // in one process
    setting.check_same(run, "whole", 400);
  }
}

TEST_CASE("SIGTERM to any one process during an evaluation saves once, and all exit 75") {
  if (skipped()) return;
  const ProcessesSetting setting;
  support::write_text(setting.directory / "held_out.txt", support::PretrainSetting::text(4000));
  const Flags flags = {"--steps",      "2", "--eval-input",       setting.directory / "held_out.txt",
                       "--eval-every", "1", "--micro-batch-size", "5"};
  REQUIRE(setting.run("whole", flags).code == 0);
  for (const int asked : {0, 1}) {
    const std::string run = "run" + std::to_string(asked);
    setting.disturb(run, 2, flags, [&] { setting.send(run, asked, SIGTERM); });
    for (const int rank : {0, 1}) CHECK_MESSAGE(setting.code(run, rank) == 75, setting.of_rank(run, rank, "error"));
    CHECK(checkpoints(setting, run) == 1);
    CHECK(setting.metrics(run).size() == 1);                           // the evaluation did not come to its end
    REQUIRE(setting.run(run, joined(flags, {"--resume"})).code == 0);  // in one process
    setting.check_same(run, "whole", 2);
  }
}

TEST_CASE("a failure of one process is told to the others, which exit with 8") {
  if (skipped()) return;
  const ProcessesSetting setting;
  support::write_text(setting.directory / "run", "a file where the directory should be");
  setting.run_processes("run", 2, long_run(setting));
  CHECK(setting.code("run", 0) == 2);
  CHECK(setting.code("run", 1) == 8);
  const std::string error = setting.of_rank("run", 1, "error");
  CHECK(error.find("process 0 (host ") != std::string::npos);
  CHECK(error.find(" has failed: --output: expected a directory, got the file ") != std::string::npos);
}

TEST_CASE("an error of one process at its start names the process and its host") {
  if (skipped()) return;
  const ProcessesSetting setting;
  const Flags flags{"--steps", "3", "--micro-batch-size", "5"};
  setting.launch(setting.script("one", flags) + " : -n 1 sh " +
                     setting.script("other", joined(flags, {"--config", (setting.directory / "nothing").string()})),
                 1);
  CHECK(setting.code("one", 0) == 8);
  CHECK(setting.of_rank("other", 1, "error").starts_with("error: process 1 (host "));
}

TEST_CASE("a warning of several processes is printed by the first of them alone") {
  if (skipped()) return;
  const ProcessesSetting setting;
  const std::string file = setting.directory / "text.txt";
  support::write_text(file, setting.file("text.txt") + "\xFF\n");
  setting.run_processes("run", 2, {"--steps", "1", "--micro-batch-size", "5"});
  CHECK(setting.of_rank("run", 0, "error").find("warning: " + file + ":") != std::string::npos);
  CHECK(setting.own_lines("run", 1, "error") == std::vector<std::string>{});
}

TEST_CASE("processes that only look at their inputs end well, and the first says what these have") {
  if (skipped()) return;
  const ProcessesSetting setting;
  setting.run_processes("run", 2, {"--steps", "1", "--validate-only"});
  for (int rank = 0; rank < 2; ++rank)
    CHECK_MESSAGE(setting.code("run", rank) == 0, setting.of_rank("run", rank, "error"));
  CHECK(setting.of_rank("run", 0, "out").find("--input: ") != std::string::npos);
  CHECK(setting.of_rank("run", 1, "out") == "");
  CHECK(setting.file("mpirun.log").empty());
}

TEST_CASE("a failure after the last step is told to the others, which name the last checkpoint") {
  if (skipped()) return;
  const ProcessesSetting setting;
  setting.disturb("run", 2, {"--steps", "60", "--micro-batch-size", "5"},
                  [&] { std::filesystem::create_directories(setting.directory / "run/model.safetensors/in the way"); });
  CHECK(setting.code("run", 0) == 5);
  CHECK(setting.code("run", 1) == 8);
  const std::string error = setting.of_rank("run", 1, "error");
  CAPTURE(error);
  CHECK(error.starts_with("error: after the last step: barrier (call "));
  CHECK(error.ends_with("; last checkpoint: " + (setting.directory / "run/checkpoint-60").string() + "\n"));
}

TEST_CASE("processes that may use the same cores share them where --threads does not say how") {
  if (skipped()) return;
  const ProcessesSetting setting;
  const auto threads = [&](const std::string& run) {
    const auto config = nlohmann::json::parse(setting.file(run + "/run_config.json"));
    const std::string device = config.at("device").get<std::string>();
    return std::stoi(device.substr(device.rfind(", ") + 2));
  };
  const Flags flags = {"--steps", "1", "--micro-batch-size", "5"};
  REQUIRE(setting.run("one", flags).code == 0);
  setting.run_processes("two", 2, flags);
  CHECK(threads("two") == std::max(1, threads("one") / 2));
}

TEST_CASE("processes of one host plan with their share of its memory") {
  if (skipped()) return;
  const ProcessesSetting setting;
  const Flags flags = {"--steps", "3", "--micro-batch-size", "5", "--plan"};
  const auto gigabytes = [](const std::string& plan) {
    const std::size_t at = plan.find(" predicted");
    return std::stod(plan.substr(plan.find(" of ", at) + 4));
  };
  const double alone = gigabytes(setting.run("one", flags).out);
  setting.run_processes("two", 2, flags);
  CHECK(gigabytes(setting.of_rank("two", 0, "out")) == doctest::Approx(alone / 2).epsilon(0.2));
}

TEST_CASE("a process that is not started in time is not waited for") {
  if (skipped()) return;
  const ProcessesSetting setting;
  const Flags flags = {"--steps", "3", "--micro-batch-size", "5", "--collective-timeout", "1"};
  const std::string one = setting.script("one", flags);
  const std::string late = "-n 1 sh -c 'sleep 4; OMPI_COMM_WORLD_RANK=1 sh " + setting.script("late", flags) + "'";
  setting.launch(one + " : " + late, 1);
  CHECK(setting.code("one", 0) == 8);
  CHECK(setting.of_rank("one", 0, "error") ==
        "error: mpi: expected all processes of the run to start within 1 seconds: MPI has not returned in time\n");
  CHECK_FALSE(fs::exists(setting.directory / "one"));
}

TEST_CASE("processes that are asked to stop before their first step end with 75 and have saved nothing") {
  if (skipped()) return;
  const ProcessesSetting setting;
  std::string text = setting.text(2000);
  while (text.size() < 60'000'000) text += text;
  support::write_text(setting.directory / "text.txt", text);
  const std::string script = setting.script("run", {"--steps", "3", "--micro-batch-size", "5", "--threads", "1"});
  const auto running = std::async(std::launch::async, [&] { setting.launch(script, 2); });
  setting.wait_until(running, [&] { return fs::exists(setting.directory / "run/.lock"); });
  setting.send("run", 1, SIGTERM);
  running.wait();
  for (const int rank : {0, 1}) CHECK(setting.code("run", rank) == 75);
  CHECK(setting.of_rank("run", 1, "error") ==
        "interrupted while reading text: nothing was written; hint: run the command again\n");
  CHECK(setting.of_rank("run", 0, "error") == "interrupted in another process: nothing was written\n");
  CHECK_FALSE(fs::exists(setting.directory / "run"));
}

TEST_CASE("processes that srun started find each other, and say so where they do not") {
  if (skipped()) return;
  ProcessesSetting setting;
  const Flags flags = {"--steps", "3", "--micro-batch-size", "5"};
  REQUIRE(setting.run("one", flags).code == 0);
  // Slurm's own variables, and MPI's as srun --mpi=pmix sets them, but not those that mpirun adds.
  support::write_text(setting.directory / "srun.sh",
                      "rank=$OMPI_COMM_WORLD_RANK\nunset OMPI_COMM_WORLD_SIZE\n"
                      "SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=2 exec \"$@\"\n");
  setting.launch((setting.directory / "srun.sh").string() + " sh " + setting.script("srun", flags), 2);
  for (const int rank : {0, 1}) CHECK_MESSAGE(setting.code("srun", rank) == 0, setting.of_rank("srun", rank, "error"));
  setting.check_same("srun", "one", 3);

  // Without --mpi=pmix every process is alone with MPI.
  const std::string alone = "OMPI_COMM_WORLD_RANK=0 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=2 sh ";
  (void)!std::system((alone + setting.script("alone", flags)).c_str());
  CHECK(setting.code("alone", 0) == 2);
  CHECK(setting.of_rank("alone", 0, "error")
            .ends_with("error: mpi: expected the 2 processes that were started together, got 1; hint: srun --mpi=pmix, "
                       "or mpirun\n"));  // behind what MPI may say itself
  CHECK_FALSE(fs::exists(setting.directory / "alone"));
}

TEST_CASE("processes that were not started alike are refused, and both are named") {
  if (skipped()) return;
  const ProcessesSetting setting;
  const std::string one = setting.script("one", {"--steps", "3", "--micro-batch-size", "5"});
  const std::string other = setting.script("other", {"--steps", "3", "--micro-batch-size", "5", "--seed", "7"});
  setting.launch(one + " : -n 1 sh " + other, 1);
  CHECK(setting.code("one", 0) == 2);
  CHECK(setting.code("other", 1) == 2);
  const std::string error = setting.of_rank("one", 0, "error");
  CHECK(error.find("in process 0 (host ") != std::string::npos);
  CHECK(error.find("--seed is 42, in process 1 (host ") != std::string::npos);
  CHECK(error.find("--seed is 7") != std::string::npos);
  // What decides nothing in a run of one, but must be the same in all.
  for (const Flags& flags : {Flags{"--precision", "bf16"},
                             {"--plan"},
                             {"--save-every", "1"},
                             {"--save-every-minutes", "1"},
                             {"--replicas", "2"},
                             {"--overwrite"},
                             {"--collective-timeout", "9"}}) {
    setting.launch(
        one + " : -n 1 sh " + setting.script("other", joined({"--steps", "3", "--micro-batch-size", "5"}, flags)), 1);
    CHECK(setting.code("one", 0) == 2);
    CHECK(setting.of_rank("one", 0, "error").find("expected the same run in all") != std::string::npos);
  }
  CHECK_FALSE(fs::exists(setting.directory / "one"));
}

TEST_CASE("a rehearsal in one of several processes is refused by its flag, before any record is read") {
  if (skipped()) return;
  const ProcessesSetting setting;
  const std::string records = setting.directory / "r.tfrecord";
  REQUIRE(
      support::run_program("prepare", {"records", "--vocab-file", setting.directory / "vocab.txt", "--input",
                                       setting.directory / "text.txt", "--output", records, "--max-seq-length", "24"})
          .code == 0);
  const Flags flags = {"--steps", "3", "--micro-batch-size", "5", "--input", records};
  const std::string one = setting.script("one", flags);
  for (const std::string flag : {"--plan", "--validate-only"}) {
    setting.launch(one + " : -n 1 sh " + setting.script("other", joined(flags, {flag})), 1);
    CHECK(setting.code("one", 0) == 2);
    CHECK(setting.code("other", 1) == 2);
    const std::string error = setting.of_rank("one", 0, "error");
    CHECK_MESSAGE(error.find(" " + flag + " is not given, in process 1 (host ") != std::string::npos, error);
    CHECK_MESSAGE(error.find(" " + flag + " is given\n") != std::string::npos, error);
  }
  CHECK_FALSE(fs::exists(setting.directory / ".r.tfrecord.bertrand.idx"));
}

TEST_CASE("processes read records through, each some of the files, and train on them to the bits of one") {
  if (skipped()) return;
  const ProcessesSetting setting;
  const Flags files = {setting.directory / "a", setting.directory / "b", setting.directory / "c"};
  const Flags prepare = {"records",
                         "--vocab-file",
                         setting.directory / "vocab.txt",
                         "--input",
                         setting.directory / "text.txt",
                         "--max-seq-length",
                         "24",
                         "--output"};
  REQUIRE(support::run_program("prepare", joined(prepare, files)).code == 0);
  const Flags flags = joined({"--steps", "3", "--micro-batch-size", "5", "--input"}, files);
  setting.run_processes("two", 2, flags);
  for (const int rank : {0, 1}) CHECK_MESSAGE(setting.code("two", rank) == 0, setting.of_rank("two", rank, "error"));
  for (const char* const index : {".a.bertrand.idx", ".b.bertrand.idx", ".c.bertrand.idx"})
    CHECK(fs::remove(setting.directory / index));
  REQUIRE(setting.run("one", flags).code == 0);
  setting.check_same("two", "one", 3);
}
