// By what the best model of answer spans is chosen, and what is said of its questions.
#include "bert/objectives/span_task.h"

#include <doctest/doctest.h>

#include "support/program.h"

using namespace bertrand;
using namespace bertrand::objectives;

namespace {

struct Setting {
  support::TemporaryDirectory directory;
  text::Tokenizer tokenizer{text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n", "vocab.txt")};

  /// Questions about a text that has two windows.
  SpanTask task(const std::vector<std::string>& questions) const {
    nlohmann::json all = nlohmann::json::array();
    for (const std::string& question : questions)
      all.push_back({{"id", question}, {"question", question}, {"answers", {{{"text", "b"}, {"answer_start", 2}}}}});
    const nlohmann::json paragraph = {{"context", "a b c a b c a b"}, {"qas", all}};
    support::write_text(directory / "dev.json",
                        nlohmann::json{{"data", {{{"title", "t"}, {"paragraphs", {paragraph}}}}}}.dump());
    tasks::TaskFiles files;
    files.evaluation = directory / "dev.json";
    return {files,
            {.windows = {.max_seq_length = 12, .doc_stride = 4, .max_query_length = 3}, .answers = {}},
            bert::Config{},
            tokenizer};
  }
};

}  // namespace

TEST_CASE("the best model of answer spans is the one with the highest F1") {
  const Setting setting;
  CHECK(setting.task({"a"}).score({{"eval_exact_match", 25}, {"eval_f1", 50}}) == 50);
}

TEST_CASE("a question that is cut counts once whatever its windows and one that just fits does not") {
  const Setting setting;
  const SpanTask task = setting.task({"a b c", "a b c a", "a b c b"});
  REQUIRE(task.examples(File::evaluation)->size() == 6);
  CHECK(task.remarks().find(": 2 questions cut to --max-query-length\n") != std::string::npos);
  CHECK(setting.task({"a b c"}).remarks().find("cut") == std::string::npos);
}
