// By what the best model of answer spans is chosen, and what is said of its questions and written of its answers.
#include "bert/objectives/span_task.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "support/program.h"

using namespace bertrand;
using namespace bertrand::objectives;

namespace {

struct Setting {
  support::TemporaryDirectory directory;
  text::Tokenizer tokenizer{text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n", "vocab.txt")};

  /// Questions about a text that has two windows; some have no answer in version 2.
  SpanTask task(const std::vector<std::string>& questions, const std::vector<std::string>& unanswered = {},
                bool version_2 = false, const bert::Config& config = {}, bool predicts = false) const {
    nlohmann::json all = nlohmann::json::array();
    for (const std::string& question : questions)
      all.push_back({{"id", question}, {"question", question}, {"answers", {{{"text", "b"}, {"answer_start", 2}}}}});
    if (version_2)
      for (auto& question : all) question["is_impossible"] = false;
    for (const std::string& question : unanswered)
      all.push_back(
          {{"id", question}, {"question", question}, {"answers", nlohmann::json::array()}, {"is_impossible", true}});
    const nlohmann::json paragraph = {{"context", "a b c a b c a b"}, {"qas", all}};
    support::write_text(directory / "dev.json",
                        nlohmann::json{{"data", {{{"title", "t"}, {"paragraphs", {paragraph}}}}}}.dump());
    tasks::TaskFiles files;
    files.evaluation = directory / "dev.json";
    if (predicts) files.prediction = files.evaluation;
    return {files,
            {.windows = {.max_seq_length = 12, .doc_stride = 4, .max_query_length = 3, .version_2 = version_2},
             .answers = {.n_best_size = 2, .version_2 = version_2}},
            config,
            tokenizer};
  }
};

}  // namespace

TEST_CASE("the best model of answer spans is the one with the highest F1") {
  const Setting setting;
  CHECK(setting.task({"a"}).score({{"eval_exact_match", 25}, {"eval_f1", 50}}) == 50);
}

TEST_CASE("figures of questions with or without an answer are those of a file that has such questions") {
  const Setting setting;
  const auto has = [&](const SpanTask& task, const std::string& beginning) {
    const std::vector<tasks::Figure> all = task.figures();
    CHECK(std::ranges::any_of(all, [](const tasks::Figure& figure) { return figure.name == "f1"; }));
    return std::ranges::any_of(all, [&](const tasks::Figure& figure) { return figure.name.starts_with(beginning); });
  };
  const SpanTask both = setting.task({"a"}, {"b"}, true);
  CHECK(has(both, "has_answer_"));
  CHECK(has(both, "no_answer_"));
  const SpanTask answered = setting.task({"a"}, {}, true);
  CHECK(has(answered, "has_answer_"));
  CHECK_FALSE(has(answered, "no_answer_"));
  const SpanTask none = setting.task({}, {"b"}, true);
  CHECK_FALSE(has(none, "has_answer_"));
  CHECK(has(none, "no_answer_"));
}

TEST_CASE("a model of answer spans has the labels and the problem of no other, and its questions are counted") {
  const Setting setting;
  bert::Config config;
  config.problem_type = "regression";
  config.labels = {"LABEL_0"};
  const SpanTask task = setting.task({"a", "b"}, {}, false, config);
  CHECK(task.directory().config.problem_type.empty());
  CHECK(task.directory().config.labels.empty());
  CHECK(task.other_bytes() > std::string("a b c a b c a b").size());
  CHECK(setting.task({"a", "b"}, {}, false, config, true).other_bytes() > task.other_bytes());
}

TEST_CASE("a question that is cut counts once whatever its windows and one that just fits does not") {
  const Setting setting;
  const SpanTask task = setting.task({"a b c", "a b c a", "a b c b"});
  REQUIRE(task.examples(File::evaluation)->size() == 6);
  CHECK(task.remarks().find(": 2 questions cut to --max-query-length\n") != std::string::npos);
  CHECK(setting.task({"a b c"}).remarks().find("cut") == std::string::npos);
}

TEST_CASE("what is said of questions is said of those to evaluate on and of those to predict") {
  const Setting setting;
  const auto task = [&](bool predicts) { return setting.task({"a b c a", " "}, {}, false, {}, predicts); };
  const std::string warnings = task(false).warnings(), remarks = task(false).remarks();
  CHECK(warnings.ends_with(": questions without a word: 1, the first  \n"));
  CHECK(remarks.find(": 1 question cut to --max-query-length\n") != std::string::npos);
  CHECK(task(true).warnings() == warnings + warnings);
  CHECK(task(true).remarks() == remarks + remarks);
}

TEST_CASE("answers are in the files of an evaluation and of a prediction, those with an answer and those without") {
  const Setting setting;
  const SpanTask task = setting.task({"a"}, {"b"}, true, {}, true);
  std::vector<float> values(2 * 12 * 2);  // start and end for [CLS] a [SEP] a b c a b c a b [SEP], and the same about b
  values[2 * 4] = values[2 * 5 + 1] = 5;  // "b c"
  values[2 * 12] = values[2 * 12 + 1] = 4;  // rather nothing than "a"
  values[2 * (12 + 3)] = values[2 * (12 + 3) + 1] = 1;
  tasks::Logits outputs{.outputs = 2, .values = {}};
  outputs.values.append(values);
  task.write_evaluation(io::Files::system(), setting.directory / "", outputs);
  CHECK(task.write_predictions(io::Files::system(), setting.directory / "", outputs) ==
        (setting.directory / "predictions.json").string() + ": 2 answers");
  const auto file = [&](const std::string& name) { return support::read_text(setting.directory / name); };
  for (const std::string prefix : {"eval_", ""}) {
    CHECK(file(prefix + "predictions.json") == "{\n    \"a\": \"b c\",\n    \"b\": \"\"\n}\n");
    CHECK(file(prefix + "null_odds.json") == "{\n    \"a\": -10.0,\n    \"b\": 6.0\n}\n");
    const auto n_best = nlohmann::json::parse(file(prefix + "nbest_predictions.json"));
    CHECK(n_best.size() == 2);
    CHECK(n_best.at("a").at(0).at("text") == "b c");
    CHECK(n_best.at("b").at(0).at("text") == "");
    CHECK(n_best.at("b").at(1).at("text") == "a");
  }
  CHECK(file("eval_rows.jsonl") ==
        R"({"task":"squad2","kind":"answers","rows":2}
{"id":"a","text":"a","text_pair":"a b c a b c a b","label":["b"],"prediction":"b c","exact":0.0,"f1":0.6666666666666666}
{"id":"b","text":"b","text_pair":"a b c a b c a b","label":[],"prediction":"","exact":1.0,"f1":1.0}
)");
}
