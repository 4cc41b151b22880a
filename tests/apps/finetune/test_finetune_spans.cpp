// Answer spans: --task squad and squad2 as a user runs them.
#include <doctest/doctest.h>

#include "apps/finetune/span_setting.h"

using support::Outcome;
using support::SpanSetting;
namespace fs = std::filesystem;

TEST_CASE("answers some of which are none are learnt and scored and written") {
  const SpanSetting setting;
  const Outcome outcome =
      setting.run("run", {"--eval", setting.at("dev.json"), "--predict", setting.at("dev.json"), "--epochs", "25"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.error == "");
  CHECK(outcome.out.find("qa_outputs.weight") != std::string::npos);  // the load report: what was initialised
  CHECK(outcome.out.find(setting.at("dev.json") + ": 12 questions in ") != std::string::npos);

  CHECK(outcome.out.find("  eval_has_answer_total 9  ") != std::string::npos);  // a count, not 9.0000

  const auto results = setting.json("run/eval_results.json");
  for (const char* name : {"eval_exact_match", "eval_f1", "eval_has_answer_exact", "eval_has_answer_f1",
                           "eval_no_answer_exact", "eval_no_answer_f1", "eval_best_exact", "eval_best_f1"})
    CHECK_MESSAGE(results.at(name) == 100.0, name);
  CHECK(results.at("eval_has_answer_total") == 9);
  CHECK(results.at("eval_no_answer_total") == 3);
  CHECK(results.contains("eval_best_exact_thresh"));
  CHECK(results.contains("eval_best_f1_thresh"));

  const auto answers = setting.json("run/predictions.json");
  CHECK(answers.size() == 12);
  CHECK(answers.at("q0") == "red");
  CHECK(answers.at("q3") == "");
  CHECK(setting.json("run/null_odds.json").at("q3") > 0);
  CHECK(setting.json("run/null_odds.json").at("q0") < 0);
  CHECK(setting.json("run/nbest_predictions.json").at("q0")[0].at("text") == "red");
  for (const std::string name : {"predictions.json", "nbest_predictions.json", "null_odds.json"})
    CHECK_MESSAGE(setting.file("run/" + name) == setting.file("run/eval_" + name), name);
}

TEST_CASE("the model of answer spans says what it is and has no labels") {
  const SpanSetting setting(false);
  // The start model classifies.
  auto config = setting.json("model/config.json");
  config["id2label"] = {{"0", "a"}, {"1", "b"}, {"2", "c"}};
  config["problem_type"] = "single_label_classification";
  support::write_text(setting.at("model/config.json"), config.dump());
  REQUIRE(setting.run("run", {"--steps", "2"}).code == 0);
  const auto written = setting.json("run/config.json");
  CHECK(written.at("architectures") == nlohmann::json({"BertForQuestionAnswering"}));
  for (const char* absent : {"id2label", "label2id", "num_labels", "problem_type"})
    CHECK_MESSAGE(!written.contains(absent), absent);
}

TEST_CASE("a model of answer spans evaluates and predicts without training and its figures are those of evaluate") {
  for (const bool version_2 : {false, true}) {
    CAPTURE(version_2);
    const SpanSetting setting(version_2);
    REQUIRE(setting.run("run", {"--eval", setting.at("dev.json"), "--epochs", "6"}).code == 0);
    const Outcome outcome = setting.run_without_training(
        "used", {"--model", setting.at("run"), "--eval", setting.at("dev.json"), "--predict", setting.at("dev.json")});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    CHECK(outcome.out.find(setting.at("used/predictions.json") + ": 12 answers") != std::string::npos);
    CHECK(fs::exists(setting.at("used/null_odds.json")) == version_2);
    CHECK(fs::exists(setting.at("run/eval_null_odds.json")) == version_2);
    for (const std::string name : {"eval_predictions.json", "eval_nbest_predictions.json"})
      CHECK(setting.file("used/" + name) == setting.file("run/" + name));

    std::vector<std::string> flags = {
        version_2 ? "squad2" : "squad",      "--data", setting.at("dev.json"), "--predictions",
        setting.at("used/predictions.json"), "--json"};
    if (version_2)
      flags.insert(flags.end(), {"--null-odds", setting.at("used/null_odds.json"), "--null-threshold", "1e30"});
    const auto scores = nlohmann::json::parse(support::run_program("evaluate", flags).out);
    const auto results = setting.json("used/eval_results.json");
    CHECK(results.size() == scores.size() + 1);  // and what they mean
    CHECK(results.at("meaning").size() == (version_2 ? 8 : 2));
    CHECK(results.at("eval_f1") == scores.at("f1"));
    CHECK(results.at("eval_exact_match") == scores.at(version_2 ? "exact" : "exact_match"));
    if (!version_2) continue;
    CHECK(results.at("eval_no_answer_f1") == scores.at("NoAns_f1"));
    CHECK(results.at("eval_has_answer_exact") == scores.at("HasAns_exact"));
  }
}

TEST_CASE("--eval-split evaluates answers about whole paragraphs that are not trained on, and on the same again") {
  for (const bool version_2 : {false, true}) {
    const SpanSetting setting(version_2);
    const Outcome outcome = setting.run("run", {"--eval-split", "0.25", "--epochs", "1"});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    CHECK(outcome.out.find(setting.at("train.json") + ": 27 questions in ") != std::string::npos);
    CHECK(outcome.out.find(setting.at("train.json") + ", held out by --seed 42\n") != std::string::npos);
    const auto answers = setting.json("run/eval_predictions.json");
    CHECK(answers.size() == 9);
    const Outcome longer = setting.run("run", {"--eval-split", "0.25", "--epochs", "2", "--resume"});
    REQUIRE_MESSAGE(longer.code == 0, longer.error);
    const auto again = setting.json("run/eval_predictions.json");
    for (const auto& [id, answer] : again.items()) CHECK(answers.contains(id));
    if (!version_2) continue;  // its script counts questions without an answer of the model
    const Outcome official =
        support::run_program("evaluate", {"squad2", "--data", setting.at("train.json"), "--predictions",
                                          setting.at("run/eval_predictions.json"), "--json"});
    CHECK(nlohmann::json::parse(official.out).at("f1") == setting.json("run/eval_results.json").at("eval_f1"));
  }
}

TEST_CASE("the best figures of answers are those of the best threshold, whatever the one in use") {
  const SpanSetting setting;
  REQUIRE(setting.run("run", {"--epochs", "3"}).code == 0);
  const auto with = [&](const std::string& threshold) {
    const Outcome outcome = setting.run_without_training(
        "used", {"--model", setting.at("run"), "--eval", setting.at("dev.json"), "--predict", setting.at("dev.json"),
                 "--null-score-diff-threshold", threshold, "--overwrite"});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    return setting.json("used/eval_results.json");
  };
  with("1e30");  // writes an answer to each question
  fs::rename(setting.at("used/predictions.json"), setting.at("answers.json"));
  fs::rename(setting.at("used/null_odds.json"), setting.at("odds.json"));
  for (const std::string threshold : {"-1e30", "-1", "0", "1", "1e30"}) {
    CAPTURE(threshold);
    const auto results = with(threshold);
    const Outcome official = support::run_program(
        "evaluate", {"squad2", "--data", setting.at("dev.json"), "--predictions", setting.at("answers.json"),
                     "--null-odds", setting.at("odds.json"), "--null-threshold", threshold, "--json"});
    REQUIRE_MESSAGE(official.code == 0, official.error);
    const auto scores = nlohmann::json::parse(official.out);
    for (const std::string name : {"f1", "best_f1", "best_f1_thresh", "best_exact", "best_exact_thresh"})
      CHECK_MESSAGE(results.at("eval_" + name) == scores.at(name), name);
    CHECK(results.at("eval_exact_match") == scores.at("exact"));
    CHECK(results.at("eval_best_f1") >= results.at("eval_f1"));
  }
}

TEST_CASE("the threshold and the limits of an answer decide what is written") {
  const SpanSetting setting;
  REQUIRE(setting.run("run", {"--epochs", "6"}).code == 0);
  const auto predict = [&](const std::vector<std::string>& flags) {
    const auto all = support::with_defaults(
        {"--model", setting.at("run"), "--predict", setting.at("dev.json"), "--output", setting.at("used")}, flags);
    const Outcome outcome = setting.run_without_training("used", all);
    CHECK_MESSAGE(outcome.code == 0, outcome.error);
  };
  const auto count_empty = [&] {
    const auto answers = setting.json("used/predictions.json");
    return std::ranges::count(answers, "");
  };
  predict({"--null-score-diff-threshold", "-1000"});
  CHECK(count_empty() == 12);
  predict({"--null-score-diff-threshold", "1000", "--max-answer-length", "1", "--overwrite"});
  CHECK(count_empty() == 0);
  const auto answers = setting.json("used/predictions.json");
  for (const std::string text : answers) CHECK_MESSAGE(text.find(' ') == std::string::npos, text);
  predict({"--eval", setting.at("dev.json"), "--null-score-diff-threshold", "1000", "--overwrite"});
  CHECK(setting.json("used/eval_results.json").at("eval_no_answer_exact") < 100);  // of the answers as they are written
  predict({"--n-best-size", "3", "--overwrite"});
  for (const auto& entries : setting.json("used/nbest_predictions.json")) CHECK(entries.size() <= 4);
}

TEST_CASE("a run of answer spans that is resumed or shared by replicas ends with the same bits") {
  const SpanSetting setting;
  const std::vector<std::string> files = {"model.safetensors", "eval_results.json", "eval_nbest_predictions.json",
                                          "predictions.json"};
  const auto flags = [&](const std::vector<std::string>& more) {
    return support::with_defaults({"--eval", setting.at("dev.json"), "--predict", setting.at("dev.json"), "--epochs",
                                   "3", "--save-every", "5", "--keep", "9", "--micro-batch-size", "3"},
                                  more);
  };
  REQUIRE(setting.run("run", flags({})).code == 0);
  std::vector<std::string> expected;
  for (const std::string& name : files) expected.push_back(setting.file("run/" + name));

  const Outcome shared = setting.run("shared", flags({"--replicas", "3", "--threads", "2"}));
  REQUIRE_MESSAGE(shared.code == 0, shared.error);
  for (std::size_t i = 0; i < files.size(); ++i)
    CHECK_MESSAGE(setting.file("shared/" + files[i]) == expected[i], files[i]);

  int removed = 0;
  for (const auto& entry : fs::directory_iterator(setting.at("run")))
    if (entry.path().filename().string().starts_with("checkpoint-") && !entry.path().string().ends_with("-10"))
      removed += fs::remove_all(entry.path()) > 0;
  CHECK(removed > 1);
  const Outcome resumed = setting.run("run", flags({"--resume"}));
  REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
  CHECK(resumed.out.find("resumed from") != std::string::npos);
  for (std::size_t i = 0; i < files.size(); ++i)
    CHECK_MESSAGE(setting.file("run/" + files[i]) == expected[i], files[i]);
}

TEST_CASE("answer spans are learnt in half types and take the memory that the plan says") {
  const SpanSetting setting;
  for (const char* precision : {"f32", "bf16", "f16"}) {
    CAPTURE(precision);
    const Outcome outcome = setting.run("run", {"--eval", setting.at("dev.json"), "--epochs", "25", "--log-every", "1",
                                                "--precision", precision, "--overwrite"});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    CHECK(setting.json("run/eval_results.json").at("eval_f1") > 90);
    const double predicted = std::stod(outcome.out.substr(outcome.out.find("memory      ") + 12)) * 1e3;
    double most = 0;
    for (const auto& line : support::read_json_lines(setting.at("run/metrics.jsonl")))
      most = std::max(most, line.value("memory_bytes", 0.0));
    CHECK(most > 0);
    CHECK(most <= 1.01 * predicted);
  }
}

TEST_CASE("a profile and a plan of answer spans name the loss") {
  const SpanSetting setting;
  const Outcome profile = setting.run("run", {"--steps", "2", "--profile", setting.at("trace.json")});
  REQUIRE_MESSAGE(profile.code == 0, profile.error);
  CHECK(profile.out.find("cross_entropy") != std::string::npos);
  const Outcome plan = setting.run("planned", {"--plan"});
  REQUIRE_MESSAGE(plan.code == 0, plan.error);
  CHECK(plan.out.find("examples") != std::string::npos);
  CHECK_FALSE(fs::exists(setting.at("planned")));
}

TEST_CASE("a figure of questions that the evaluation file does not have cannot pick the best model") {
  const SpanSetting setting;
  auto data = setting.json("dev.json");
  for (auto& article : data.at("data"))
    for (auto& paragraph : article.at("paragraphs")) {
      auto& questions = paragraph.at("qas");
      const auto none = [](const nlohmann::json& question) { return question.at("is_impossible").get<bool>(); };
      questions.erase(std::remove_if(questions.begin(), questions.end(), none), questions.end());
    }
  support::write_text(setting.at("dev.json"), data.dump());
  const auto by = [&](const std::string& figure) {
    return setting.run("run", {"--eval", setting.at("dev.json"), "--steps", "2", "--metric-for-best-model", figure});
  };
  const Outcome refused = by("no_answer_f1");
  CHECK(refused.code == 2);
  CHECK(refused.error ==
        "error: --metric-for-best-model: expected one of f1, exact_match, has_answer_f1, has_answer_exact, best_f1, "
        "best_exact, got no_answer_f1; did you mean has_answer_f1?\n");
  CHECK(by("has_answer_f1").code == 0);
}
