// Several runs by one command.
#include <doctest/doctest.h>

#include <sstream>

#include "apps/finetune/sweep.h"
#include "support/conversation.h"
#include "support/paths.h"
#include "support/refusal.h"
#include "support/small_finetuning.h"

using namespace bertrand;
using support::Outcome;
using support::read_text;
using support::run_program;
using support::write_text;

namespace {

using Flags = std::vector<std::string>;

Flags joined(Flags flags, const Flags& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

struct Setting : support::SmallFinetuning {
  Setting() : SmallFinetuning(30) {}
  std::string refusal(const std::string& sweep) const {
    const Outcome outcome = train({"--sweep", sweep});
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    return outcome.error;
  }
  /// A sweep of what `train` does, without its other flags.
  Outcome sweep(const Flags& more) const {
    return run_program(
        "finetune",
        joined({"--output", at("run"), "--model", at("model"), "--threads", "1", "--train", at("train.csv")}, more));
  }
  /// The numbers of the rows that a run was evaluated on.
  std::vector<std::string> evaluated(const std::string& run) const {
    std::vector<std::string> rows;
    for (const auto& row : support::read_json_lines(at(run + "/eval_rows.jsonl")))
      if (row.contains("id")) rows.push_back(row.at("id"));
    return rows;
  }
};

}  // namespace

TEST_CASE("a sweep runs all combinations and names the best and each run can be resumed by itself") {
  const Setting setting;
  const Outcome outcome =
      setting.sweep({"--task", "custom", "--label-column", "kind", "--max-seq-length", "16", "--eval",
                     setting.at("dev.csv"), "--sweep", "learning_rate=1e-6,0.02", "epochs=1,4"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  std::istringstream table(read_text(setting.at("run/sweep.tsv")));
  std::string line;
  std::getline(table, line);
  CHECK(line.starts_with("learning-rate\tepochs\tthe mean of accuracy and f1\teval_"));
  CHECK(line.ends_with("\tbest\tdirectory"));
  const Flags names = {"learning-rate=1e-6,epochs=1", "learning-rate=1e-6,epochs=4", "learning-rate=0.02,epochs=1",
                       "learning-rate=0.02,epochs=4"};
  const auto loss = [&](const std::string& name) { return setting.figure("run/" + name, "eval_loss"); };
  const bool first_is_best = loss(names[2]) <= loss(names[3]);  // of two that are as good
  const std::string& best = names[first_is_best ? 2 : 3];
  for (const std::string& name : names) {
    std::getline(table, line);
    CHECK(line.ends_with("\t" + setting.at("run/" + name)));
    CHECK((line.find("\tbest\t") != std::string::npos) == (name == best));
    CHECK(std::filesystem::exists(setting.at("run/" + name + "/model.safetensors")));
  }
  CHECK(outcome.out.find(fmt::format("best of 4 by the mean of accuracy and f1: --learning-rate 0.02 --epochs {}, ",
                                     first_is_best ? 1 : 4)) != std::string::npos);
  CHECK(outcome.out.find(", as good as 1 other") != std::string::npos);

  const std::string page = read_text(setting.at("run/report.html"));
  for (const std::string& name : names) CHECK(page.find("\"name\":\"" + name + "\"") != std::string::npos);

  const std::string model = read_text(setting.at("run/" + names.back() + "/model.safetensors"));
  REQUIRE(setting.train({"--output", setting.at("alone"), "--learning-rate", "0.02", "--epochs", "4"}).code == 0);
  CHECK(read_text(setting.at("alone/model.safetensors")) == model);
  const Outcome resumed = run_program("finetune", {"--resume", "--output", setting.at("run/" + names[1])});
  REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
  CHECK(resumed.out.find("finished after 4 steps") != std::string::npos);
  const Outcome single = setting.train({"--output", setting.at("run"), "--overwrite"});
  CHECK(single.code == 2);
  CHECK(single.error.find("expected a directory for a run, got one of a sweep, with sweep.tsv") != std::string::npos);
}

TEST_CASE("lists of two sweep flags are combined as those of one") {
  const Setting setting;
  const Outcome outcome = setting.train({"--sweep", "seed=1,2", "--sweep", "batch-size=8,16"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  for (const std::string name :
       {"seed=1,batch-size=8", "seed=1,batch-size=16", "seed=2,batch-size=8", "seed=2,batch-size=16"})
    CHECK(std::filesystem::exists(setting.at("run/" + name + "/model.safetensors")));
}

TEST_CASE("a sweep that was stopped goes on with the runs that are missing") {
  const Setting setting;
  const Flags sweep = {"--sweep", "seed=1,2"};
  REQUIRE(setting.train(sweep).code == 0);
  const std::string table = read_text(setting.at("run/sweep.tsv"));
  std::filesystem::remove_all(setting.at("run/seed=2"));
  CHECK(setting.train(sweep).code == 2);  // a run is there already
  Flags resume = sweep;
  resume.push_back("--resume");
  const Outcome outcome = setting.train(resume);
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(read_text(setting.at("run/sweep.tsv")) == table);
}

TEST_CASE("a sweep that keeps models alone goes on with the runs that are missing") {
  const Setting setting;
  const Flags sweep = {"--sweep", "seed=1,2", "--save-model-only"};
  REQUIRE(setting.train(sweep).code == 0);
  const std::string table = read_text(setting.at("run/sweep.tsv"));
  std::filesystem::remove_all(setting.at("run/seed=2"));
  const Outcome outcome = setting.train(joined(sweep, {"--resume"}));
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out.find("resumed from " + setting.at("run/seed=1") + "\n") != std::string::npos);
  CHECK(outcome.out.find("resumed from " + setting.at("run/seed=2") + "\n") == std::string::npos);
  CHECK(read_text(setting.at("run/sweep.tsv")) == table);
  CHECK(setting.train(joined(sweep, {"--resume"})).code == 0);  // nothing is left to do
  CHECK(read_text(setting.at("run/sweep.tsv")) == table);
}

TEST_CASE("what writes nothing may be run in the directory of a sweep") {
  const Setting setting;
  write_text(setting.at("sweep.tsv"), "");
  const std::string command = "cd '" + setting.at("") + "' && '" + bertrand::paths::binary +
                              "/finetune' --task custom --label-column kind --model model --train train.csv "
                              "--validate-only >log 2>&1";
  CHECK_MESSAGE(std::system(command.c_str()) == 0, read_text(setting.at("log")));
}

TEST_CASE("what cannot be swept is refused before the first run") {
  const Setting setting;
  const auto refusal = [&](const std::string& sweep) { return setting.refusal(sweep); };
  CHECK(refusal("lerning-rate=1,2").ends_with(", got --lerning-rate; did you mean --learning-rate?\n"));
  const std::string other = refusal("model=a,b");
  CHECK(other.starts_with("error: --sweep: expected one of --task, "));
  CHECK(other.find(", --learning-rate, ") != std::string::npos);
  for (const char* const not_swept : {" --model,", " --threads,", " --eval-split"})
    CHECK(other.find(not_swept) == std::string::npos);
  CHECK(other.ends_with(", got --model; hint: report lays runs over each other that differ in other flags\n"));
  for (const char* const sweep : {"seed=", "seed=1,,2"})
    CHECK(refusal(sweep) == fmt::format("error: --sweep: expected FLAG=VALUE,VALUE…, got {}\n", sweep));
  CHECK(refusal("seed=1,two") == "error: --seed: expected a whole number, at least 0, got \"two\"\n");
}

TEST_CASE("a sweep that could not end well is refused before the first run") {
  const Setting setting;
  const auto refusal = [&](const Flags& flags) {
    const Outcome outcome = setting.train(flags);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    return outcome.error;
  };
  CHECK(refusal({"--sweep", "seed=1,1"}) == "error: --sweep: expected other values in each run, got seed=1 twice\n");
  CHECK(refusal({"--sweep", "learning-rate=1e-5,0.00001"}) ==
        "error: --sweep: expected other values in each run, got learning-rate=1e-5 and learning-rate=0.00001\n");
  CHECK(refusal({"--sweep", "seed=1,2", "--profile", setting.at("trace.json")}) ==
        "error: --profile: expected without --sweep, whose runs would all write " + setting.at("trace.json") + "\n");
  CHECK(refusal({"--sweep", "steps=1,2"}) == "error: --steps, --epochs: expected one of them, got both\n");
  CHECK(refusal({"--sweep", "warmup-steps=1", "warmup-ratio=0.1"}) ==
        "error: --warmup-steps, --warmup-ratio: expected one of them, got both\n");
  REQUIRE(setting.train({"--sweep", "seed=1"}).code == 0);
  const std::string table = read_text(setting.at("run/sweep.tsv"));
  CHECK(refusal({"--sweep", "seed=2,3"}).find("expected no sweep there, got sweep.tsv") != std::string::npos);
  CHECK(read_text(setting.at("run/sweep.tsv")) == table);
  std::filesystem::create_directory(setting.at("other"));
  support::write_text(setting.at("other/sweep_seeds.tsv"), "mine\n");
  CHECK(refusal({"--sweep", "seed=1", "--output", setting.at("other")})
            .find("expected no sweep there, got sweep_seeds.tsv") != std::string::npos);
  CHECK(read_text(setting.at("other/sweep_seeds.tsv")) == "mine\n");
}

TEST_CASE("a sweep replaces nothing of a run that lies in its directory") {
  const Setting setting;
  const auto refused = [&](const std::string& file) {
    const std::string page = read_text(setting.at("run/report.html"));
    for (const char* const flag : {"--quiet", "--overwrite", "--resume"}) {
      const Outcome outcome = setting.train({"--sweep", "seed=1,2", flag});
      CHECK(outcome.code == 2);
      CHECK(outcome.out.empty());
      CHECK(outcome.error ==
            fmt::format("error: {}: expected a directory for a sweep, got one of a run, with {}; hint: "
                        "name another --output\n",
                        setting.at("run"), file));
      CHECK_FALSE(std::filesystem::exists(setting.at("run/seed=1")));
    }
    CHECK(read_text(setting.at("run/report.html")) == page);
  };
  REQUIRE(setting.train({"--save-model-only"}).code == 0);
  for (const auto& entry : std::filesystem::directory_iterator(setting.at("run")))
    if (const std::string name = entry.path().filename(); name != "run_config.json" && name != "report.html")
      std::filesystem::remove_all(entry.path());
  refused("run_config.json");
  std::filesystem::rename(setting.at("run/run_config.json"), setting.at("run/eval_results.json"));
  refused("eval_results.json");
  std::filesystem::remove(setting.at("run/eval_results.json"));
  CHECK(setting.train({"--sweep", "seed=1,2"}).error.find("expected no sweep there, got report.html") !=
        std::string::npos);
}

TEST_CASE("while a sweep goes on its directory takes no other sweep and no run") {
  const Setting setting;
  const support::Conversation first("finetune", {"--output",         setting.at("run"),
                                                 "--model",          setting.at("model"),
                                                 "--threads",        "1",
                                                 "--train",          setting.at("train.csv"),
                                                 "--eval",           setting.at("dev.csv"),
                                                 "--task",           "custom",
                                                 "--label-column",   "kind",
                                                 "--max-seq-length", "16",
                                                 "--steps",          "1000000",
                                                 "--sweep",          "seed=1"});
  CHECK(first.line() == "run 1 of 1: --seed 1");
  for (const Flags& flags : {Flags{"--sweep", "seed=2"}, Flags{"--sweep", "seed=1", "--overwrite"}, Flags{}}) {
    const Outcome outcome = setting.train(flags);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.error.starts_with("error: " + setting.at("run") + ": output directory in use by process "));
  }
  CHECK_FALSE(std::filesystem::exists(setting.at("run/seed=2")));
}

TEST_CASE("values that model or data refuse are found before the first run") {
  const Setting setting;
  const auto refusal = [&](const Flags& flags) {
    const Outcome outcome = setting.sweep(joined({"--task", "custom"}, flags));
    CHECK(outcome.code != 0);
    CHECK(outcome.out.empty());
    CHECK_FALSE(std::filesystem::exists(setting.at("run")));
    return outcome.error;
  };
  const Flags labels = {"--label-column", "kind", "--eval-split", "0.2", "--sweep"};
  const auto of = [&](const std::string& sweep) { return refusal(joined(labels, {sweep})); };
  CHECK(of("freeze=0,7").starts_with("error: --freeze: expected "));
  CHECK(of("max-seq-length=16,4096").starts_with("error: --max-seq-length: expected at most "));
  CHECK(refusal({"--eval-split", "0.2", "--sweep", "label-column=kind,species"}).find("species") != std::string::npos);
  CHECK(of("class-weights=balanced,1:2").starts_with("error: --class-weights: expected "));
  const std::string memory = refusal(joined({"--memory", "1MB"}, joined(labels, {"seed=1,2"})));
  CHECK(memory.starts_with("error: --memory: expected at least "));
}

TEST_CASE("runs that are judged by different figures are no sweep") {
  const Setting setting;
  const auto refusal = [&](const std::string& sweep) { return setting.refusal(sweep); };
  CHECK(refusal("metric-for-best-model=loss,f1") ==
        "error: --sweep: expected runs that are judged by one figure, got loss (the lowest) and, with "
        "--metric-for-best-model f1, f1\n");
  CHECK(refusal("kind=classification,regression")
            .starts_with("error: --sweep: expected runs that are judged by one figure, got the mean of "));
}

TEST_CASE("all runs of a sweep are evaluated on the same part of --train, also one that goes on or is repeated") {
  const Setting setting;
  const Flags flags = {"--task", "custom", "--label-column", "kind", "--max-seq-length", "16", "--eval-split", "0.2"};
  const Outcome outcome = setting.sweep(joined(flags, {"--steps", "2", "--sweep", "seed=1,2"}));
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  const Flags rows = setting.evaluated("run/seed=1");
  CHECK(rows.size() == 6);
  CHECK(setting.evaluated("run/seed=2") == rows);

  const Outcome resumed = run_program("finetune", {"--resume", "--output", setting.at("run/seed=2"), "--steps", "3"});
  REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
  CHECK(resumed.out.find("held out by --eval-split-seed 42") != std::string::npos);
  CHECK(setting.evaluated("run/seed=2") == rows);
  const auto alone = [&](const Flags& more) {
    std::filesystem::remove_all(setting.at("run"));
    const Outcome one = setting.sweep(joined(joined(flags, {"--steps", "2", "--seed", "2"}), more));
    CHECK_MESSAGE(one.code == 0, one.error);
  };
  alone({"--eval-split-seed", "42"});
  CHECK(setting.evaluated("run") == rows);
  CHECK(nlohmann::json::parse(read_text(setting.at("run/run_config.json"))).at("settings").at("eval-split-seed") == 42);
  alone({});
  const Flags own = setting.evaluated("run");
  CHECK(own != rows);
  alone({"--sweep", "learning-rate=0,0.01"});
  CHECK(setting.evaluated("run/learning-rate=0") == own);
}

TEST_CASE("runs that would be evaluated on different rows are no sweep") {
  const Setting setting;
  const Flags flags = {"--task", "custom", "--label-column", "kind", "--max-seq-length", "16", "--steps", "1"};
  const auto refusal = [&](const Flags& more) {
    const Outcome outcome = setting.sweep(joined(flags, more));
    CHECK(outcome.code == 2);
    CHECK_FALSE(std::filesystem::exists(setting.at("run")));
    return outcome.error;
  };
  const std::string expected = "error: --sweep: expected runs that are evaluated on the same rows, got values of ";
  CHECK(refusal({"--sweep", "eval-split=0.2,0.4"}) == expected + "--eval-split; hint: give it beside --sweep\n");
  CHECK(refusal({"--eval-split", "0.2", "--sweep", "eval-split-seed=1,2"}) ==
        expected + "--eval-split-seed; hint: give it beside --sweep\n");
  CHECK(refusal({"--sweep", "seed=1,2"})
            .starts_with("error: --sweep: expected with --train and --eval, got no --eval; hint: "));
  CHECK(refusal({"--eval", setting.at("dev.csv"), "--eval-split-seed", "1"}) ==
        "error: --eval-split-seed: expected with --eval-split, got none\n");
}

TEST_CASE("a sweep by the loss prints losses, and says by what it judges") {
  const Setting setting;
  const Outcome outcome =
      setting.train({"--sweep", "learning-rate=1e-6,0.01", "--metric-for-best-model", "loss", "--epochs", "4"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  std::istringstream table(read_text(setting.at("run/sweep.tsv")));
  std::string line;
  std::getline(table, line);
  CHECK(line.starts_with("learning-rate\tloss (the lowest)\teval_"));
  std::getline(table, line);
  CHECK(line.find("\tbest\t") == std::string::npos);
  std::getline(table, line);
  CHECK(line.find("\tbest\t") != std::string::npos);
  const double loss = nlohmann::json::parse(read_text(setting.at("run/learning-rate=0.01/eval_results.json")))
                          .at("eval_loss")
                          .get<double>();
  CHECK(line.starts_with(fmt::format("0.01\t{}\t", loss)));
  CHECK(outcome.out.find(fmt::format("best of 2 by loss (the lowest): --learning-rate 0.01, {:.4f}: ", loss)) !=
        std::string::npos);
}

TEST_CASE("a flag that is swept takes the values of the sweep, and who gave it another is told") {
  const Setting setting;
  const std::string file = setting.at("settings.toml"),
                    told = "--seed: given by itself too; the values of --sweep are taken";
  write_text(file, "seed = 3\n");
  for (const Flags& given : {Flags{"--seed", "3"}, Flags{"--settings", file}}) {
    const Outcome outcome = setting.train(joined({"--sweep", "seed=1,2", "--overwrite"}, given));
    CHECK(outcome.code == 0);
    CHECK(outcome.error.find("warning: " + told + "\n") != std::string::npos);
    const auto config = nlohmann::json::parse(read_text(setting.at("run/seed=2/run_config.json")));
    CHECK(config.at("settings").at("seed") == 2);
  }
}

TEST_CASE("the command of one run of a sweep has its own values in place of the lists") {
  CHECK(
      finetune::command_of({"finetune", "--sweep", "seed=1,2", "epochs=3,4", "--seed", "7", "--output=out", "--cased"},
                           {{"--seed", "2"}, {"--epochs", "3"}},
                           "out/x") == Flags{"finetune", "--cased", "--output=out/x", "--seed=2", "--epochs=3"});
}

TEST_CASE("a run that diverges has no score and the sweep goes on") {
  const Setting setting;
  const Outcome outcome = setting.train({"--sweep", "weight_decay=1e6,0", "--learning-rate", "0.02", "--epochs", "15"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.error.starts_with("warning: --weight-decay 1e6: "));
  CHECK(outcome.error.ends_with("; the sweep goes on\n"));
  CHECK(outcome.out.find("1e6\tfailed\t") != std::string::npos);
  CHECK(outcome.out.find("best of 2 by the mean of accuracy and f1: --weight-decay 0, ") != std::string::npos);
  const Outcome none = setting.train(
      {"--sweep", "weight_decay=1e6", "--learning-rate", "0.02", "--epochs", "15", "--output", setting.at("none")});
  CHECK(none.code == 6);
  CHECK(none.error.find("error: --sweep: expected a run that ends, got 1 run that failed, the last one: ") !=
        std::string::npos);
}

TEST_CASE("the directory of one run of a sweep is named after its values and is one directory") {
  CHECK(finetune::name_of({{"--seed", "2"}, {"--init", "models/base"}}) == "seed=2,init=models_base");
}
