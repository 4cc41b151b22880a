#include <doctest/doctest.h>

#include "support/small_finetuning.h"

using support::Outcome;
using support::read_text;
using support::run_program;
using support::write_text;

namespace {

/// A file of 36 rows of two labels to train on.
struct Setting : support::SmallFinetuning {
  Setting() : SmallFinetuning(36) {}
  Outcome run(const std::vector<std::string>& flags) const {
    return finetune("run",
                    support::with_defaults(
                        {"--train", directory / "train.csv", "--batch-size", "6", "--learning-rate", "0.01"}, flags));
  }
  /// What TensorBoard reads of a run.
  std::string events(const std::string& run = "run") const {
    std::string all;
    for (const auto& file : std::filesystem::directory_iterator(directory / run))
      if (file.path().filename().string().starts_with("events.")) all += read_text(file.path());
    return all;
  }
  nlohmann::json results() const { return nlohmann::json::parse(read_text(directory / "run/eval_results.json")); }
};

}  // namespace

TEST_CASE("--eval-split evaluates on a part of --train, which the plan names, and goes on with the same part") {
  const Setting setting;
  const Outcome whole = setting.run({"--eval-split", "0.25", "--epochs", "4"});
  REQUIRE_MESSAGE(whole.code == 0, whole.error);
  CHECK(whole.out.find("epoch       27 examples") != std::string::npos);
  CHECK(whole.out.find("evaluation  9 examples of the 36 of " + (setting.directory / "train.csv").string() +
                       ", held out by --seed 42\n  best model  by the mean of accuracy and f1\n") != std::string::npos);
  const std::string rows = read_text(setting.directory / "run/eval_rows.jsonl");
  CHECK(std::count(rows.begin(), rows.end(), '\n') == 1 + 9);  // the first line says what the others are

  const Outcome half = setting.run({"--eval-split", "0.25", "--epochs", "2", "--output", setting.directory / "half"});
  REQUIRE_MESSAGE(half.code == 0, half.error);
  const Outcome rest =
      run_program("finetune", {"--resume", "--output", setting.directory / "half", "--epochs", "4", "--threads", "1"});
  REQUIRE_MESSAGE(rest.code == 0, rest.error);
  CHECK(rest.out.find("9 examples of the 36") != std::string::npos);
  const Outcome other = run_program("finetune", {"--resume", "--output", setting.directory / "half", "--epochs", "4",
                                                 "--eval-split", "0.5", "--threads", "1"});
  CHECK(other.code == 2);
  CHECK(other.error.find("--eval-split was 0.25, now 0.5") != std::string::npos);
}

TEST_CASE("the plan and --validate-only say how many rows each label has") {
  const Setting setting;
  const std::string file = setting.directory / "few.csv";
  write_text(file, "text,kind\nred fish,fish\nblue fish,fish\none bird,bird\n");
  const Outcome plan = setting.run({"--train", file, "--plan"});
  REQUIRE_MESSAGE(plan.code == 0, plan.error);
  CHECK(plan.out.find("\n  labels      fish 2, bird 1\n") != std::string::npos);
  CHECK(
      setting.run({"--train", file, "--validate-only"}).out.find("\n" + file + ": rows of labels: fish 2, bird 1\n") !=
      std::string::npos);
  write_text(file, "text,kind\nred fish,fi\033sh\none bird,\"two\nlines\"\n");
  CHECK(setting.run({"--train", file, "--plan"}).out.find("\n  labels      fi sh 1, two lines 1\n") !=
        std::string::npos);
  CHECK(setting.run({"--train", file, "--validate-only"}).out.find("labels: 2, {fi sh,two lines}\n") !=
        std::string::npos);
}

TEST_CASE("a part of --train to evaluate on and a file to evaluate on are not both taken") {
  const Setting setting;
  const Outcome outcome = setting.run({"--eval-split", "0.1", "--eval", setting.directory / "train.csv"});
  CHECK(outcome.code == 2);
  CHECK(outcome.error == "error: --eval-split: expected with --train and without --eval, got --eval too\n");
}

TEST_CASE("the metric that is named picks the best model, and the results say so and what each figure means") {
  const Setting setting;
  const Outcome outcome =
      setting.run({"--eval-split", "0.25", "--epochs", "3", "--metric-for-best-model", "loss", "--log-every", "1"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out.find("best model  by loss (the lowest)") != std::string::npos);
  CHECK(setting.events().find("| text | is | taken for |\n|---|---|---|\n| ") != std::string::npos);
  const auto results = setting.results();
  CHECK(results.at("best_model_by") == "loss (the lowest)");
  CHECK(results.at("meaning").at("eval_f1") == "F1 of the label fish");
  double least = 1e9;
  for (const auto& line : support::read_json_lines(setting.directory / "run/metrics.jsonl"))
    least = std::min(least, line.value("eval_loss", 1e9));
  CHECK(results.at("eval_loss") == least);

  const Outcome wrong = setting.run({"--eval-split", "0.25", "--metric-for-best-model", "bleu", "--overwrite"});
  CHECK(wrong.code == 2);
  CHECK(wrong.error == "error: --metric-for-best-model: expected one of accuracy, f1, loss, got bleu\n");
}

TEST_CASE("words and their sentences are held out as a whole") {
  const Setting setting;
  std::string text;
  for (int i = 0; i < 20; ++i) text += i % 2 ? "red O\nfish B-X\n\n" : "blue O\nbird B-Y\n\n";
  write_text(setting.directory / "words.conll", text);
  const Outcome outcome = run_program("finetune", {"--task", "ner", "--model", setting.directory / "model", "--train",
                                                   setting.directory / "words.conll", "--eval-split", "0.2", "--epochs",
                                                   "1", "--threads", "1", "--output", setting.directory / "words"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out.find("epoch       16 examples") != std::string::npos);
  CHECK(outcome.out.find("evaluation  4 examples") != std::string::npos);
  CHECK(setting.events("words").find("| red fish | fish B-X | ") != std::string::npos);
}

TEST_CASE("the program evaluate gives the figures of an evaluation for the predictions of the same rows") {
  const Setting setting;
  const std::string data = setting.at("judged.csv");
  write_text(data,
             "text,kind,size\n\"one, red fishs.\",fish,1\n\"one, blue fishs.\",bird,3\n\"green birds.\",bird,2\n");
  const auto check = [&](const std::string& command, const std::string& label, const std::vector<std::string>& flags) {
    REQUIRE(
        setting
            .run(support::with_defaults(
                {"--train", data, "--eval", data, "--predict", data, "--epochs", "1", "--label-column", label}, flags))
            .code == 0);
    const Outcome outcome = run_program("evaluate", {command, "--data", data, "--label-column", label, "--predictions",
                                                     setting.at("run/predictions.tsv"), "--json"});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    auto figures = nlohmann::json::parse(outcome.out);
    CHECK(figures.at("rows") == 3);
    figures.erase("rows");
    CHECK(figures.size() == 2);
    for (const auto& [name, value] : figures.items())
      CHECK_MESSAGE(setting.results().at("eval_" + name) == value, name);
  };
  check("classes", "kind", {});
  CHECK(run_program("evaluate", {"classes", "--data", data, "--label-column", "kind", "--predictions",
                                 setting.at("run/predictions.tsv"), "--table"})
            .out == read_text(setting.at("run/eval_report.tsv")));
  check("scores", "size", {"--kind", "regression", "--overwrite"});
}
