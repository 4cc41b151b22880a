// What predict says against lines, files and flags that are bad.
#include <doctest/doctest.h>

#include "support/small_heads.h"

using namespace bertrand;
using support::Outcome;
using support::run_program;
using support::write_text;

namespace {

class Setting {
 public:
  Setting() { support::write_small_classifier(directory_ / "model"); }
  std::string operator/(const std::string& name) const { return (directory_ / name).string(); }

  Outcome predict(const std::vector<std::string>& more) const {
    return run_program("predict", support::with_defaults({"--model", *this / "model", "--threads", "1"}, more));
  }
  /// What predict does with these lines.
  Outcome lines(const std::string& text, std::vector<std::string> more = {}) const {
    write_text(*this / "lines", text);
    more.insert(more.end(), {"--input", *this / "lines"});
    return predict(more);
  }
  /// The message against the third of three lines, after two answers.
  std::string refusal(const std::string& text, const std::vector<std::string>& more = {}) const {
    const Outcome outcome = lines(text, more);
    CHECK(outcome.code == 3);
    CHECK(std::ranges::count(outcome.out, '\n') == 2);
    const std::string before = "error: " + *this / "lines";
    CHECK(outcome.error.starts_with(before));
    CHECK(std::ranges::count(outcome.error, '\n') == 1);
    std::string said = outcome.error.substr(std::min(before.size(), outcome.error.size()));
    const std::string hint = "; hint: --on-bad-line report goes on after it\n";
    if (said.ends_with(hint)) said.replace(said.size() - hint.size(), hint.size(), "\n");
    else CHECK(said.find("; hint: ") != std::string::npos);  // one of its own
    return said;
  }

 private:
  support::TemporaryDirectory directory_;
};

const std::string kTwo = "red\nfish\n", kTwoJson = "{\"text\": \"red\"}\n{\"text\": \"fish\"}\n";

}  // namespace

TEST_CASE("a bad line ends the run with its place after all answers before it") {
  const Setting setting;
  CHECK(setting.refusal(kTwo + "\nred\n") == ":3: text: expected at least one token, got none\n");
  CHECK(setting.refusal(kTwo + " \t\n") == ":3: text: expected at least one token, got none\n");
  CHECK(setting.refusal(kTwo + "red ||| \n") == ":3: text_pair: expected at least one token, got none\n");
  CHECK(setting.refusal(kTwo + std::string("r\0d\n", 4)) == ":3: expected text in UTF-8, got a NUL byte\n");
  CHECK(setting.refusal(kTwoJson + "red\n").starts_with(":3: expected JSON, got a syntax error at byte 1: "));
  CHECK(setting.refusal(kTwoJson + "{\"text\": \"red\"").starts_with(":3: expected JSON, got a syntax error at byte "));
  CHECK(setting.refusal(kTwoJson + "{\"text\": \"r\xFF\"}\n").starts_with(":3: expected JSON, got a syntax error"));
  CHECK(setting.refusal(kTwoJson + "{\"text\": 1}\n") == ":3: text: expected a string, got 1\n");
  CHECK(setting.refusal(kTwoJson + "{\"txt\": \"red\"}\n") == ":3: text: expected a string, got none\n");
  CHECK(setting.refusal(kTwoJson + "[\"red\"]\n") == ":3: expected a JSON object, got [\"red\"]\n");
  CHECK(setting.refusal(kTwoJson + "null\n") == ":3: expected a JSON object, got null\n");
  CHECK(setting.refusal(kTwoJson + "{\"text\": \"red\", \"text\": \"fish\"}\n") ==
        ":3: \"text\": expected once, got it twice\n");
  CHECK(setting.refusal(kTwoJson + std::string(100'000, '[') + "\n") ==
        ":3: expected at most 64 levels of values in each other, got more\n");
}

TEST_CASE("a line whose outputs are not finite ends the run with its place after all answers before it") {
  const Setting setting;
  const Outcome good = setting.lines("fish\nblue bird\nbird\none fish\n");
  support::spoil_embedding(setting / "model/model.safetensors", 5);  // of red
  // The longest lines are computed first.
  const std::string text = "fish\nblue bird\nbird\none fish\nred\nfish\nred fish bird fish\n";
  for (const std::string tokens : {"1", "4096"}) {
    const Outcome outcome = setting.lines(text, {"--max-batch-tokens", tokens});
    CHECK(outcome.code == 6);
    CHECK(outcome.out == good.out);
    CHECK(outcome.error == "error: " + setting / "lines" +
                               ":5: outputs: expected finite numbers, got nan; hint: --precision f32, or damaged "
                               "weights\n");
  }
  CHECK(setting.lines(text, {"--output", setting / "answers"}).code == 6);
  CHECK(support::read_text(setting / "answers") == good.out);
}

TEST_CASE("a pair that the model cannot read is a bad line, and the lines after it are answered") {
  const Setting setting;
  support::write_small_head<bert::ForSequenceClassification>(
      setting / "one", {.architecture = "BertForSequenceClassification", .labels = {"a", "b"}, .types = 1}, 2);
  const std::vector<std::string> model{"--model", setting / "one"};
  CHECK(setting.refusal(kTwo + "red ||| fish\n", model) ==
        ":3: text_pair: expected none, since the model has one token type\n");
  CHECK(setting
            .lines("red\nred ||| fish\nbird\n",
                   {"--model", setting / "one", "--on-bad-line", "report", "--output", setting / "a"})
            .code == 0);
  const auto answers = support::read_json_lines(setting / "a");
  REQUIRE(answers.size() == 3);
  CHECK(answers[1].at("line") == 2);
  CHECK(answers[2].contains("label"));
}

TEST_CASE("a bad line may become an object with its number") {
  const Setting setting;
  const Outcome outcome = setting.lines(kTwo + "\nred\n" + std::string("\0\n", 2) + "birds\n",
                                        {"--on-bad-line", "report", "--output", setting / "a"});
  CHECK(outcome.code == 0);
  CHECK(outcome.error.starts_with("warning: " + setting / "lines" + ": 2 bad lines\n"));
  const auto answers = support::read_json_lines(setting / "a");
  REQUIRE(answers.size() == 6);
  for (const std::size_t i : {0, 1, 3, 5}) CHECK(answers[i].contains("label"));
  CHECK(answers[0] != answers[1]);
  CHECK(answers[3] == answers[0]);
  CHECK(answers[2].at("line") == 3);
  CHECK(answers[2].at("error") == setting / "lines" + ":3: text: expected at least one token, got none");
  CHECK(answers[4].at("line") == 5);
  // Blank lines of JSON have no answer, but count.
  CHECK(setting
            .lines("\n{\"text\": \"red\"}\n \r\n[]\n{\"text\": 1}\n\n",
                   {"--on-bad-line", "report", "--output", setting / "a", "--input-format", "jsonl"})
            .code == 0);
  const auto of_json = support::read_json_lines(setting / "a");
  REQUIRE(of_json.size() == 3);
  CHECK(of_json[0] == answers[3]);
  CHECK(of_json[1].at("line") == 4);
  CHECK(of_json[2].at("line") == 5);
  // The first line that is not blank says whether all are JSON. Until then nothing is passed over.
  CHECK(setting.lines("\n \n{\"text\": \"red\"}\n\n", {"--on-bad-line", "report", "--output", setting / "a"}).code ==
        0);
  const auto found = support::read_json_lines(setting / "a");
  REQUIRE(found.size() == 3);
  CHECK(found[0].at("line") == 1);
  CHECK(found[1].at("error") == setting / "lines" + ":2: text: expected at least one token, got none");
  CHECK(found[2] == answers[3]);
  CHECK(setting.lines("\n{\"text\": \"red\"}\n").error.starts_with("error: " + setting / "lines" + ":1: text: "));
  CHECK(setting.lines("", {"--on-bad-line", "skip"}).code == 2);
}

TEST_CASE("a line of which --with-text would lose a member is bad") {
  const Setting setting;
  const std::string good = "{\"id\": 18446744073709551615, \"text\": \"red\"}\n",
                    gold = "{\"text\": \"red\", \"label\": \"x\"}\n",
                    large = "{\"id\": 18446744073709551616, \"text\": \"red\"}\n";
  const Outcome outcome = setting.lines(good, {"--with-text"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.starts_with("{\"id\":18446744073709551615,\"text\":\"red\",\"label\":\""));
  const std::string of_label =
      ":2: label: expected with --with-text a name that the answer does not have, got it; hint: rename it";
  const std::string of_id =
      ":3: expected whole numbers of at most 64 bits, got 18446744073709551616; hint: write it as a string";
  const Outcome refused = setting.lines(good + gold + good, {"--with-text"});
  CHECK(refused.code == 3);
  CHECK(refused.out == outcome.out);
  CHECK(refused.error == "error: " + setting / "lines" + of_label + "\n");
  CHECK(setting.lines(good + gold + large, {}).code == 0);
  const Outcome reported =
      setting.lines(good + gold + large + good, {"--with-text", "--on-bad-line", "report", "--output", setting / "a"});
  CHECK(reported.code == 0);
  CHECK(reported.error == "warning: " + setting / "lines" + ": 2 bad lines\n");
  const auto answers = support::read_json_lines(setting / "a");
  REQUIRE(answers.size() == 4);
  CHECK(answers[1] == nlohmann::json{{"error", setting / "lines" + of_label}, {"line", 2}});
  CHECK(answers[2] == nlohmann::json{{"error", setting / "lines" + of_id}, {"line", 3}});
  CHECK(answers[3] == answers[0]);
}

TEST_CASE("a line that is too long becomes an object with its number, and the lines after it are answered") {
  const Setting setting;
  const std::string text = "red\n" + std::string((std::size_t{1} << 26) + 1, 'x') + "\nfish\n";
  const Outcome outcome = setting.lines(text, {"--on-bad-line", "report", "--output", setting / "a"});
  CHECK(outcome.code == 0);
  const auto answers = support::read_json_lines(setting / "a");
  REQUIRE(answers.size() == 3);
  CHECK(answers[1].at("line") == 2);
  CHECK(answers[1].at("error") == setting / "lines" + ":2: expected a line of at most 67108864 bytes, got more");
  CHECK(answers[2].contains("label"));
  CHECK(setting.lines(text).code == 3);
}

TEST_CASE("a mask that is cut away and a question without a context are bad lines") {
  const Setting setting;
  support::write_small_head<bert::ForPretraining>(setting / "masked", {.architecture = "BertForPreTraining"});
  const std::vector<std::string> masked = {"--model", setting / "masked", "--max-seq-length", "6"};
  CHECK(setting.refusal("[MASK]\nred [MASK]\nred red red red [MASK]\n", masked) ==
        ":3: text: expected [MASK] among the first 4 tokens, got it as token 5; hint: a shorter text\n");
  CHECK(setting.refusal("[MASK]\nred [MASK]\nred\n", masked) == ":3: text: expected [MASK], got none\n");
  support::write_small_head<bert::ForQuestionAnswering>(setting / "answer",
                                                        {.architecture = "BertForQuestionAnswering"});
  const std::vector<std::string> answer = {"--model", setting / "answer", "--max-query-length", "4"};
  CHECK(setting.refusal("red ||| fish\nthe ||| bird\nfish\n", answer) ==
        ":3: expected question ||| context, got no |||\n");
  CHECK(setting.refusal("red ||| fish\nthe ||| bird\nfish ||| \n", answer) ==
        ":3: context: expected at least one token, got none\n");
}

TEST_CASE("bytes that are not UTF-8 and texts that are cut are counted") {
  const Setting setting;
  std::string text =
      "red\nre\xFF"
      "d\n";
  for (int i = 0; i < 30; ++i) text += "red ";
  const Outcome outcome = setting.lines(text);
  CHECK(outcome.code == 0);
  const std::string file = setting / "lines";
  CHECK(outcome.error == "warning: " + file +
                             ":2: text: dropped 1 byte that is not UTF-8, the first one in column 3; hint: iconv turns "
                             "other encodings into UTF-8\n" +
                             "warning: " + file +
                             ": texts that were longer than the model reads at once and lost their end: 1\n");
}

TEST_CASE("files that are no lines are refused") {
  const Setting setting;
  CHECK(setting.predict({"--input", setting / "absent"}).error ==
        "error: " + setting / "absent" + ": input: expected a file, got nothing there\n");
  CHECK(setting.predict({"--input", setting / "model"}).code == 3);
  CHECK(setting.lines("red\n", {"--output", setting / "absent/answers"}).code == 5);
  CHECK(setting.lines("red\n", {"--output", setting / "model"}).code == 2);
  CHECK(setting.predict({"--model", setting / "absent", "--input", setting / "lines"}).code == 4);
  const Outcome damaged = setting.lines(std::string("\x1F\x8B\x08\0\0\0\0\0\0\x03\x01\x02\x03", 13));
  CHECK(damaged.code == 3);
  CHECK(damaged.error.find("lines: expected whole compressed data, got ") != std::string::npos);
  const Outcome longest = setting.lines("red\n" + std::string((std::size_t{1} << 26) + 2, 'x'));
  CHECK(longest.code == 3);
  CHECK(longest.error == "error: " + setting / "lines" + ":2: expected a line of at most 67108864 bytes, got more\n");
  CHECK(std::ranges::count(longest.out, '\n') == 1);
}

TEST_CASE("a table is refused unless it is said to be lines") {
  const Setting setting;
  const std::string table = (setting / "rows.csv");
  support::write_text(table, "text,label\nred,fish\n");
  CHECK(setting.predict({"--input", table}).error ==
        "error: --input: expected lines of text or JSON, got a table, " + table +
            "; hint: finetune --model … --predict reads tables, --input-format text takes its lines as they are\n");
  CHECK(std::ranges::count(setting.predict({"--input", table, "--input-format", "text"}).out, '\n') == 2);
}

TEST_CASE("flags that do not fit the task or the machine are refused") {
  const Setting setting;
  const auto refusal = [&](const std::vector<std::string>& flags) {
    const Outcome outcome = setting.lines("red\n", flags);
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    return outcome.error;
  };
  CHECK(refusal({"--top-k", "3"}) == "error: --top-k: expected with --task fill-mask or answer, got --task classify\n");
  CHECK(refusal({"--normalize"}) == "error: --normalize: expected with --task embed, got --task classify\n");
  CHECK(refusal({"--doc-stride", "3"}).starts_with("error: --doc-stride: expected with --task answer or tokens, got "));
  CHECK(refusal({"--task", "clasify"}).find("did you mean classify?") != std::string::npos);
  CHECK(refusal({"--max-seq-length", "25"}) ==
        "error: --max-seq-length: expected at most 24, the model's positions, got 25\n");
  CHECK(refusal({"--device", "cuda:0,cuda:1"}) == "error: --device: expected one device, got cuda:0,cuda:1\n");
  CHECK(refusal({"--device", "gpu"}).starts_with("error: --device: expected cpu, cuda or cuda:N, got "));
  CHECK(refusal({"--precision", "tf32"}).starts_with("error: --precision: expected f32, bf16, f16 or f64 on the cpu"));
}

TEST_CASE("a link to nothing in the directory of a model is a bad model where it is needed, and else nothing") {
  const Setting setting;
  const std::filesystem::path weights = setting / "model/model.safetensors", other = setting / "model/old.safetensors";
  std::filesystem::create_symlink("nothing", other);
  CHECK(setting.lines("red\n").code == 0);
  std::filesystem::remove(weights);
  std::filesystem::create_symlink("nothing", weights);
  CHECK(setting.lines("red\n").code == 4);
}

TEST_CASE("files of finetune that predict would take for texts are refused with the command that reads them") {
  const Setting setting;
  const auto said = [&](const std::string& name, const std::string& text, int code = 3) {
    write_text(setting / name, text);
    const Outcome outcome = setting.predict({"--input", setting / name, "--on-bad-line", "fail"});
    CHECK(outcome.code == code);
    CHECK(outcome.out.empty());
    return outcome.error;
  };
  CHECK(said("dev.conll", "EU B-ORG\n", 2) ==
        "error: --input: expected lines of text or JSON, got a word a line, " + setting / "dev.conll" +
            "; hint: finetune --model … --predict reads it, --input-format text takes its lines as they are\n");
  const std::string list =
      ":1: expected a JSON object in each line, got a list; hint: jq -c '.[]' FILE writes its items as lines\n";
  CHECK(said("list", "[{\"text\": \"a\"}]\n") == "error: " + setting / "list" + list);
  CHECK(said("list.json", "[\n{\"text\": \"a\"}]\n") == "error: " + setting / "list.json" + list);
  CHECK(said("squad.json", "{\"version\": \"1.1\", \"data\": []}\n") ==
        "error: " + setting / "squad.json" +
            ":1: expected a question and its context in each line, got SQuAD's JSON; hint: finetune --task squad "
            "--model … --predict reads it\n");
  CHECK(setting.lines("[MASK] red\n").code == 0);
  CHECK(setting.lines("[{a} red] [MASK] bird\n").code == 0);
  CHECK(setting.lines("{\"text\": \"red [MASK]\", \"data\": [1]}\n").code == 0);
}
