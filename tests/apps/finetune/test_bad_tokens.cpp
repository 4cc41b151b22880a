// What users bring to label words that is not as it should be: it is said in one line, and nothing is written or lost.
#include <doctest/doctest.h>

#include "support/small_model.h"

using support::Outcome;
using support::run_program;
using support::write_text;

namespace {

struct Setting {
  support::TemporaryDirectory directory;
  Setting() {
    support::write_small_model(at("model"));
    write_text(at("good.conll"), "one O\nred B-A\nfish I-A\n. O\n");
  }
  std::string at(const std::string& name) const { return directory / name; }
  Outcome run(const std::vector<std::string>& more) const {
    return run_program("finetune", support::with_defaults({"--task", "ner", "--model", at("model"), "--train",
                                                           at("good.conll"), "--output", at("run"), "--max-seq-length",
                                                           "16", "--threads", "1", "--epochs", "1"},
                                                          more));
  }
  /// What is said of a training file; that it ends the run with `code` and leaves nothing.
  std::string refusal(int code, const std::string& text, const std::vector<std::string>& more = {}) const {
    write_text(at("bad.conll"), text);
    const Outcome outcome = run(support::with_defaults({"--train", at("bad.conll")}, more));
    CHECK(outcome.code == code);
    CHECK_FALSE(std::filesystem::exists(directory / "run"));
    CHECK(std::ranges::count(outcome.error, '\n') == 1);
    const std::string file = at("bad.conll");
    const std::size_t at = outcome.error.find(file);
    return at == std::string::npos ? outcome.error : outcome.error.substr(at + file.size());
  }
};

}  // namespace

TEST_CASE("broken files of words end the run with the line and what was expected") {
  const Setting setting;
  CHECK(setting.refusal(3, "one O\nred\n") == ":2: columns: expected 2 as in line 1, got 1\n");
  CHECK(setting.refusal(3, "O\n") == ":1: columns: expected a word and a label, got 1 column\n");
  CHECK(setting.refusal(3, "one\tO\n\tO\n") == ":2: word: expected one in column 0, got none\n");
  CHECK(setting.refusal(3, "\n\n") == ":1: words: expected at least one, got none\n");
  CHECK(setting.refusal(3, "") == ":1: words: expected at least one, got none\n");
  CHECK(setting.refusal(3, "one O\nred O\n") == ":1: label: expected at least 2 different ones in the file, got {O}\n");
  CHECK(setting.refusal(3, "one red\tO\n", {"--layout", "rows"}) ==
        ":1: labels: expected 2, one for each word, got 1\n");
  CHECK(setting.refusal(3, "one O\nred B-B\n",
                        {"--train", setting.at("good.conll"), "--eval", setting.at("bad.conll")}) ==
        ":2: label: expected one of {B-A,I-A,O}, got \"B-B\"\n");
  CHECK(setting.refusal(3, "one O\nred B\n", {"--text-column", "1"}) ==
        ":1: columns: expected the label in the last, got the word there, in column 1; hint: --label-column\n");
  CHECK(setting.refusal(2, "one O\nred B\n", {"--doc-stride", "14"}) ==
        "error: --doc-stride: expected 0 … 13, less than the pieces of a window, got 14\n");
}

TEST_CASE("what is no UTF-8 in a file of words is dropped and reported with its first place") {
  const Setting setting;
  write_text(setting.at("odd.conll"),
             "\xEF\xBB\xBFone O\r\nre\xFF"
             "d B-A\r\nfi\xC3sh I-A\r\n");
  const auto warning = [&](const std::string& file, const std::string& what) {
    return "warning: " + setting.at(file) + what + "; hint: iconv turns other encodings into UTF-8\n";
  };
  const std::string odd =
      warning("odd.conll", ":2: text: dropped 2 bytes that are not UTF-8, the first one in column 3");
  const Outcome outcome = setting.run({"--train", setting.at("odd.conll")});
  CHECK(outcome.code == 0);
  CHECK(outcome.error == odd);
  write_text(setting.at("other.conll"), "\xFFone O\n");
  const Outcome both = setting.run(
      {"--train", setting.at("odd.conll"), "--eval", setting.at("other.conll"), "--output", setting.at("both")});
  CHECK(both.error ==
        odd + warning("other.conll", ":1: text: dropped 1 byte that is not UTF-8, the first one in column 1"));
}

TEST_CASE("flags of other tasks are refused by name") {
  const Setting setting;
  const auto refusal = [&](const std::vector<std::string>& flags) {
    const Outcome outcome = setting.run(flags);
    CHECK(outcome.code == 2);
    return outcome.error;
  };
  CHECK(refusal({"--kind", "regression"}) == "error: --kind: expected with --task custom, got --task ner\n");
  CHECK(refusal({"--label-separator", ";"}) ==
        "error: --label-separator: expected with --task custom, got --task ner\n");
  CHECK(refusal({"--no-header"}) == "error: --no-header: expected with --task custom, got --task ner\n");
  CHECK(refusal({"--task", "mrpc", "--layout", "rows"}) ==
        "error: --layout: expected with --task ner, pos, punct, tokens, got --task mrpc\n");
  CHECK(refusal({"--task", "custom", "--label-all-pieces"}) ==
        "error: --label-all-pieces: expected with --task ner, pos, punct, tokens, got --task custom\n");
  const std::string classes = "cola, sst2, mrpc, rte, qnli, wnli, mnli, qqp, xnli, custom";
  for (const std::string task : {"ner", "stsb"})
    CHECK(refusal({"--task", task, "--class-weights", "balanced"}) ==
          fmt::format("error: --class-weights: expected with --task {}, got --task {}\n", classes, task));
  CHECK(refusal({"--text-column", "words"}) ==
        "error: --text-column: expected a whole number, 0 to 1023, got \"words\"\n");
  CHECK(refusal({"--text-column", "1", "--label-column", "1"}) ==
        "error: --label-column: expected another column than --text-column, got 1 for both\n");
  // Before what else is missing.
  CHECK(run_program("finetune", {"--task", "punkt"}).error.ends_with(", got punkt; did you mean punct?\n"));
  CHECK(run_program("finetune", {"--task", "qa"}).error.ends_with(", got qa; hint: --task squad or squad2\n"));
}

TEST_CASE("JSON lines of words have labels under the task's own key, and no columns") {
  const Setting setting;
  const std::string file = setting.at("hub.jsonl");
  write_text(file, R"({"tokens": ["one", "red"], "pos_tags": ["NUM", "ADJ"], "ner_tags": ["O", "B-A"]})"
                   "\n");
  CHECK(setting.run({"--train", file, "--label-column", "1"}).code == 2);
  CHECK(setting.run({"--train", file, "--text-column", "1"}).error ==
        "error: --text-column: expected a file with columns, got JSON lines, whose keys say what is what\n");
  const Outcome pos = setting.run({"--task", "pos", "--train", file, "--output", setting.at("pos")});
  REQUIRE_MESSAGE(pos.code == 0, pos.error);
  CHECK(support::read_text(setting.at("pos/config.json")).find("NUM") != std::string::npos);
  const Outcome ner = setting.run({"--train", file});
  REQUIRE_MESSAGE(ner.code == 0, ner.error);
  CHECK(support::read_text(setting.at("run/config.json")).find("B-A") != std::string::npos);
}

TEST_CASE("a model of another kind is applied to no task unless it is trained") {
  const Setting setting;
  write_text(setting.at("classes.tsv"), "text\tlabel\nred fish\tO\nblue birds\tB-A\none fish\tI-A\n");
  REQUIRE(setting.run({"--task", "custom", "--train", setting.at("classes.tsv"), "--output", setting.at("classifier")})
              .code == 0);
  const Outcome outcome =
      run_program("finetune", {"--task", "ner", "--model", setting.at("classifier"), "--predict",
                               setting.at("good.conll"), "--output", setting.at("run"), "--max-seq-length", "16"});
  CHECK(outcome.code == 4);
  CHECK(outcome.error ==
        "error: " + setting.at("classifier/config.json") +
            ": architectures: expected BertForTokenClassification for --task ner, got BertForSequenceClassification; "
            "hint: --train makes one of it\n");
  REQUIRE(setting.run({"--model", setting.at("classifier")}).code == 0);
  const Outcome texts = run_program("finetune", {"--task", "custom", "--model", setting.at("run"), "--predict",
                                                 setting.at("classes.tsv"), "--output", setting.at("texts")});
  CHECK(texts.error == "error: " + setting.at("run/config.json") +
                           ": architectures: expected BertForSequenceClassification for --task custom, got "
                           "BertForTokenClassification; hint: --train makes one of it\n");
}
