// By what the best model of answer spans is chosen, and what is said of its questions.
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
                bool version_2 = false, const bert::Config& config = {}) const {
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
    return {files,
            {.windows = {.max_seq_length = 12, .doc_stride = 4, .max_query_length = 3, .version_2 = version_2},
             .answers = {.version_2 = version_2}},
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
}

TEST_CASE("a question that is cut counts once whatever its windows and one that just fits does not") {
  const Setting setting;
  const SpanTask task = setting.task({"a b c", "a b c a", "a b c b"});
  REQUIRE(task.examples(File::evaluation)->size() == 6);
  CHECK(task.remarks().find(": 2 questions cut to --max-query-length\n") != std::string::npos);
  CHECK(setting.task({"a b c"}).remarks().find("cut") == std::string::npos);
}
