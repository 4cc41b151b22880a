// Multiple choice from the table to the answer.
#include <doctest/doctest.h>

#include "support/small_model.h"

using support::Outcome;
using support::read_text;

namespace {

struct Setting {
  support::TemporaryDirectory directory;
  Setting() {
    support::write_small_model(at("model"));
    std::string rows;
    const char* const animals[] = {"fish", "bird"};
    for (int i = 0; i < 24; ++i) {
      const int right = i * 7 % 3;
      nlohmann::json row{
          {"text", std::string("the ") + animals[i % 2]}, {"choices", {"one", "two", "the"}}, {"label", right}};
      for (int k = 0; k < 3; ++k)
        row["choices"][static_cast<std::size_t>(k)] = k == right ? "red" : (i + k) % 2 ? "blue" : "green";
      rows += row.dump() + "\n";
    }
    support::write_text(at("rows.jsonl"), rows);
  }
  std::string at(const std::string& name) const { return directory / name; }
  Outcome finetune(const std::vector<std::string>& flags) const {
    return support::run_program(
        "finetune", support::with_defaults({"--task", "custom", "--model", at("model"), "--output", at("run"),
                                            "--max-seq-length", "16", "--threads", "1"},
                                           flags));
  }
};

}  // namespace

TEST_CASE("a model learns which choice is right, and finetune, predict and evaluate say the same of it") {
  const Setting setting;
  const std::string rows = setting.at("rows.jsonl");
  const Outcome valid = setting.finetune({"--choice-columns", "choices", "--train", rows, "--validate-only"});
  REQUIRE_MESSAGE(valid.code == 0, valid.error);
  CHECK(valid.out.find(rows + ": 24 examples with 3 choices each of 6 tokens\n") != std::string::npos);
  CHECK(valid.out.find("columns: text, choices; label\n") != std::string::npos);
  const Outcome trained = setting.finetune({"--choice-columns", "choices", "--train", rows, "--eval", rows, "--predict",
                                            rows, "--epochs", "40", "--batch-size", "8", "--learning-rate", "0.01"});
  REQUIRE_MESSAGE(trained.code == 0, trained.error);
  CHECK(trained.out.find("  epoch       24 examples, 3 steps\n") != std::string::npos);
  CHECK(trained.out.find("  evaluation  24 examples of " + rows + "\n") != std::string::npos);
  CHECK(nlohmann::json::parse(read_text(setting.at("run/eval_results.json"))).at("eval_accuracy") == 1);
  const std::string predictions = read_text(setting.at("run/predictions.tsv"));
  CHECK(predictions.starts_with(
      "id\tprediction\tprobability_0\tprobability_1\tprobability_2\tlabel\tprobability\ttext\ttext_pair\n0\t0\t"));

  // The run knows its columns.
  const Outcome applied =
      setting.finetune({"--model", setting.at("run"), "--predict", rows, "--output", setting.at("out")});
  REQUIRE_MESSAGE(applied.code == 0, applied.error);
  CHECK(applied.out.find("run_config.json: --choice-columns choices\n") != std::string::npos);
  CHECK(read_text(setting.at("out/predictions.tsv")) == predictions);

  const Outcome answered = support::run_program("predict", {"--model", setting.at("run"), "--input", rows});
  REQUIRE_MESSAGE(answered.code == 0, answered.error);
  std::vector<nlohmann::json> answers;
  std::istringstream lines(answered.out);
  for (std::string line; std::getline(lines, line);) answers.push_back(nlohmann::json::parse(line));
  REQUIRE(answers.size() == 24);
  std::istringstream table(predictions);
  std::string line;
  std::getline(table, line);
  for (const auto& answer : answers) {
    std::getline(table, line);
    const std::string number = std::to_string(answer.at("choice").get<int>());
    CHECK(line.find("\t" + number + "\t") == line.find('\t'));
    CHECK(answer.at("answer") == "red");
  }

  const Outcome judged =
      support::run_program("evaluate", {"classes", "--choice-columns", "choices", "--data", rows, "--predictions",
                                        setting.at("out/predictions.tsv"), "--json"});
  REQUIRE_MESSAGE(judged.code == 0, judged.error);
  CHECK(nlohmann::json::parse(judged.out) == nlohmann::json{{"accuracy", 1.0}, {"rows", 24}});
}

TEST_CASE("a model of multiple choice needs its columns, and another model is not one") {
  const Setting setting;
  const std::string rows = setting.at("rows.jsonl");
  const Outcome trained = setting.finetune({"--choice-columns", "choices", "--train", rows, "--steps", "1"});
  REQUIRE_MESSAGE(trained.code == 0, trained.error);
  std::filesystem::remove(setting.at("run/run_config.json"));
  const auto predict = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--model", setting.at("run"), "--predict", rows, "--output", setting.at("out")};
    flags.insert(flags.end(), more.begin(), more.end());
    return setting.finetune(flags);
  };
  const Outcome refused = predict({});
  CHECK(refused.code == 4);
  CHECK(refused.error == "error: " + setting.at("run/config.json") +
                             ": architectures: expected BertForSequenceClassification for --task custom, got "
                             "BertForMultipleChoice; hint: --choice-columns has the texts to choose from\n");
  const Outcome applied = predict({"--choice-columns", "choices"});
  CHECK_MESSAGE(applied.code == 0, applied.error);
  CHECK(setting
            .finetune({"--choice-columns", "choices", "--train", rows, "--output", setting.at("weights"),
                       "--class-weights", "balanced"})
            .error == "error: --class-weights: expected classes that all rows have, got choices of each row\n");
  CHECK(setting.finetune({"--task", "mrpc", "--choice-columns", "choices", "--train", rows}).error ==
        "error: --choice-columns: expected with --task custom, got --task mrpc\n");
  CHECK(setting.finetune({"--task", "multiple-choice", "--train", rows})
            .error.ends_with("; hint: --task swag, or custom --choice-columns\n"));
}
