// Files of questions that are not as they should be: it is said in one line, and nothing is written or lost.
#include <doctest/doctest.h>

#include "apps/finetune/span_setting.h"

using support::Outcome;
using support::SpanSetting;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

Json& question(Json& file, std::size_t number) { return file["data"][0]["paragraphs"][number]["qas"][0]; }

struct Change {
  const char* what;
  std::function<void(Json& file)> make;
  std::string message;  ///< after the name of the file
};

/// What is said when the changed questions are the file of that flag.
void check_refused(const SpanSetting& setting, const std::string& flag, const Change& change) {
  CAPTURE(change.what);
  CAPTURE(flag);
  Json file = support::small_squad(12, setting.version_2);
  change.make(file);
  support::write_text(setting.at("bad.json"), file.dump());
  const Outcome outcome = setting.run("run", {flag, setting.at("bad.json")});
  CHECK(outcome.code == 3);
  CHECK(outcome.error == "error: " + setting.at("bad.json") + ": " + change.message + "\n");
  CHECK_FALSE(fs::exists(setting.at("run")));
}

void remove_key(Json& file, const char* key) { question(file, 5).erase(key); }

}  // namespace

TEST_CASE("questions that cannot be trained or evaluated on are refused before the first step with file and id") {
  const Change no_id = {"an id twice", [](Json& file) { question(file, 5)["id"] = "q2"; },
                        "data[0].paragraphs[5].qas[0].id: expected an id of its own, got \"q2\" again"};
  const Change no_data = {"no question", [](Json& file) { file["data"] = Json::array(); },
                          "data: expected at least one question about a text, got none"};
  const Change no_flag = {"no is_impossible", [](Json& file) { remove_key(file, "is_impossible"); },
                          "question q5: is_impossible: expected true or false, as in SQuAD 2.0, got none"};
  const Change of_version_1 = {"a file of 1.1", [](Json& file) { file = support::small_squad(12, false); },
                               "question q0: is_impossible: expected true or false, as in SQuAD 2.0, got none"};
  const SpanSetting version_2(true);
  for (const char* flag : {"--train", "--eval"})
    for (const Change& change : {no_id, no_data, no_flag, of_version_1}) check_refused(version_2, flag, change);

  const auto to_version_2 = [](Json& file) { file = support::small_squad(12, true); };
  const SpanSetting version_1(false);
  check_refused(version_1, "--train",
                {"a file of 2.0", to_version_2,
                 "question q3: answers: expected exactly one to train on, got 0; hint: questions without an answer are "
                 "of SQuAD 2.0: "
                 "--task squad2 (prepare squad: --version-2)"});
  check_refused(
      version_1, "--eval",
      {"a file of 2.0", to_version_2, "question q3: answers: expected at least one, got none; hint: is it SQuAD 2.0?"});
  check_refused(version_1, "--train",
                {"two answers",
                 [](Json& file) {
                   question(file, 1)["answers"].push_back({{"text", "the"}, {"answer_start", 0}});
                 },
                 "question q1: answers: expected exactly one to train on, got 2; hint: only a file to evaluate on has "
                 "several; keep the first of each question"});
}

TEST_CASE("an answer beyond its context and one about an empty context are refused before the first step") {
  const Change beyond = {
      "beyond the text", [](Json& file) { question(file, 1)["answers"][0]["answer_start"] = 57; },
      "question q1: answer_start: expected an answer within the context's 56 characters, got 57 to 62"};
  const Change empty = {
      "an empty context", [](Json& file) { file["data"][0]["paragraphs"][1]["context"] = ""; },
      "question q1: answer_start: expected an answer within the context's 0 characters, got 23 to 28"};
  for (const bool version_2 : {false, true}) {
    const SpanSetting setting(version_2);
    for (const Change& change : {beyond, empty}) check_refused(setting, "--train", change);
  }
}

TEST_CASE("places of answers are not looked at to evaluate and empty contexts without an answer train no one") {
  for (const bool version_2 : {false, true}) {
    CAPTURE(version_2);
    const SpanSetting setting(version_2);
    Json file = setting.json("dev.json");
    question(file, 1)["answers"][0]["answer_start"] = 1'000'000;
    support::write_text(setting.at("beyond.json"), file.dump());
    REQUIRE(setting.run("run", {"--steps", "2", "--eval", setting.at("dev.json")}).code == 0);
    const Outcome beyond = setting.run("beyond", {"--steps", "2", "--eval", setting.at("beyond.json")});
    REQUIRE_MESSAGE(beyond.code == 0, beyond.error);
    CHECK(setting.file("beyond/eval_results.json") == setting.file("run/eval_results.json"));
  }
  const SpanSetting setting(true);
  Json file = setting.json("train.json");
  file["data"][0]["paragraphs"][3]["context"] = "";  // of an impossible question
  support::write_text(setting.at("empty.json"), file.dump());
  const Outcome empty = setting.run("empty", {"--steps", "2", "--train", setting.at("empty.json")});
  CHECK(empty.code == 0);
  CHECK(empty.error ==
        "warning: " + setting.at("empty.json") + ": questions about a context without a word: 1, the first q3\n");
}

TEST_CASE("a file of questions that is cut or nested 100000 deep or a directory is refused with its name") {
  const SpanSetting setting;
  const std::string whole = setting.file("dev.json");
  support::write_text(setting.at("cut.json"), whole.substr(0, whole.size() / 2));
  support::write_text(setting.at("deep.json"), R"({"data": [], "x": )" + std::string(100'000, '['));
  fs::create_directory(setting.at("folder.json"));
  for (const char* flag : {"--train", "--eval", "--predict"})
    for (const std::string name : {"cut.json", "deep.json", "folder.json"}) {
      CAPTURE(flag);
      CAPTURE(name);
      const Outcome outcome = setting.run("run", {flag, setting.at(name)});
      CHECK(outcome.code == 3);
      CHECK(outcome.error.starts_with("error: " + setting.at(name)));
      CHECK(std::ranges::count(outcome.error, '\n') == 1);
      CHECK_FALSE(fs::exists(setting.at("run")));
    }
}

TEST_CASE("answers that are not where the file says are left out and named and counted") {
  const SpanSetting setting(false);
  Json file = support::small_squad(24, false);
  for (std::size_t i = 0; i < 12; ++i) question(file, i)["answers"][0]["answer_start"] = 0;
  support::write_text(setting.at("odd.json"), file.dump());
  const Outcome outcome = setting.run("run", {"--train", setting.at("odd.json"), "--steps", "1"});
  CHECK(outcome.code == 0);
  const std::string warning = "warning: " + setting.at("odd.json") + ": ";
  CHECK(outcome.error.starts_with(warning + "question q0: Could not find answer: 'the' vs. 'red'\n"));
  CHECK(outcome.error.ends_with(warning +
                                "left out 12 of 24 questions, whose answers are not where answer_start says\n"));
  CHECK(std::ranges::count(outcome.error, '\n') == 11);  // the first ten and the count
  CHECK(outcome.out.find("12 questions in ") != std::string::npos);
}

TEST_CASE("empty texts and questions and rare spaces get their answers") {
  const SpanSetting setting;
  Json file = support::small_squad(6, true);
  question(file, 0)["question"] = "";
  question(file, 1)["question"] = "the fish";
  Json& paragraphs = file["data"][0]["paragraphs"];
  paragraphs[2]["context"] = "";
  paragraphs[3]["context"] = " \n ";
  paragraphs[4]["context"] = "the red\u202ffish";
  support::write_text(setting.at("odd.json"), file.dump());
  REQUIRE(setting.run("run", {"--steps", "2"}).code == 0);
  const Outcome outcome =
      setting.run_without_training("used", {"--model", setting.at("run"), "--predict", setting.at("odd.json")});
  CHECK(outcome.code == 0);
  const std::string warning = "warning: " + setting.at("odd.json") + ": ";
  CHECK(outcome.error == warning + "questions without a word: 1, the first q0\n" + warning +
                             "questions about a context without a word: 2, the first q2\n");
  const Json answers = setting.json("used/predictions.json");
  CHECK(answers.size() == 6);
  CHECK(answers.at("q2") == "");
  CHECK(setting.json("used/nbest_predictions.json").at("q2")[0].at("text") == "empty");
  const Json n_best = setting.json("used/nbest_predictions.json").at("q4");
  const auto is_both = [](const Json& entry) { return entry.at("text") == "red fish"; };  // with one blank between them
  CHECK(std::ranges::count_if(n_best, is_both) == 1);
}

TEST_CASE("version 1 answers the impossible questions of version 2 with a warning") {
  const SpanSetting setting(false);
  support::write_text(setting.at("two.json"), support::small_squad(8, true).dump());
  const Outcome outcome = setting.run("run", {"--steps", "1", "--predict", setting.at("two.json")});
  CHECK(outcome.code == 0);
  CHECK(outcome.error ==
        "warning: " + setting.at("two.json") +
            ": questions that have no answer, which version 1 answers all the same: 2, the first q3\n");
  CHECK(setting.json("run/predictions.json").size() == 8);
}

TEST_CASE("flags of answer spans are refused with other tasks and so are lengths without room") {
  const SpanSetting setting(false);
  const auto refusal = [&](const std::vector<std::string>& flags) {
    const Outcome outcome = support::run_program(
        "finetune",
        support::with_defaults({"--task", "squad", "--model", setting.at("model"), "--train", setting.at("train.json"),
                                "--output", setting.at("run"), "--max-seq-length", "16"},
                               flags));
    CHECK(outcome.code == 2);
    CHECK_FALSE(fs::exists(setting.at("run")));
    return outcome.error;
  };
  CHECK(refusal({"--null-score-diff-threshold", "1"}) ==
        "error: --null-score-diff-threshold: expected with --task squad2, got --task squad\n");
  const std::string spans = "squad, squad2", ranking = spans + ", msmarco", words = "ner, pos, punct, tokens, " + spans;
  for (const auto& [flag, tasks] : std::vector<std::pair<std::string, std::string>>{{"--doc-stride", words},
                                                                                    {"--max-query-length", ranking},
                                                                                    {"--n-best-size", spans},
                                                                                    {"--max-answer-length", spans}})
    CHECK(refusal({"--task", "mrpc", flag, "7"}) ==
          "error: " + flag + ": expected with --task " + tasks + ", got --task mrpc\n");
  CHECK(refusal({"--max-query-length", "13"}) ==
        "error: --max-seq-length: expected more than --max-query-length 13 and 3, got 16\n");
  CHECK(refusal({"--doc-stride", "0", "--max-query-length", "4"}) ==
        "error: --doc-stride: expected at least 1, got 0\n");
  CHECK(refusal({"--layout", "rows"}) ==
        "error: --layout: expected with --task ner, pos, punct, tokens, got --task squad\n");
  CHECK(refusal({"--task", "squad1"}).ends_with("got squad1; did you mean squad?\n"));
}

TEST_CASE("a model that cannot tell a question from its context is refused") {
  const SpanSetting setting;
  Json config = setting.json("model/config.json");
  config["type_vocab_size"] = 1;
  support::write_text(setting.at("model/config.json"), config.dump());
  const Outcome outcome = setting.run("run", {});
  CHECK(outcome.code == 4);
  CHECK(outcome.error == "error: " + setting.at("model/config.json") +
                             ": type_vocab_size: expected 2 for a question and its context, got 1\n");
}
