// What a page says of evaluations: rows at the ends of bins and lists, and files with little in them.
#include "bert/report/evaluation.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

#include "bert/report/curves.h"
#include "bert/report/rows.h"
#include "bert/tasks/answer_rows.h"
#include "bert/tasks/word_rows.h"
#include "support/program.h"

namespace {

using namespace bertrand;

const std::string kHeader =
    "{\"kind\":\"classification\",\"labels\":[\"no\",\"yes\"],\"positive\":1,\"metrics\":[\"accuracy\"]}\n";

/// A row of two classes, where the first one has the probability `no`.
std::string row_of(int id, int tokens, int label, int prediction, double no) {
  return fmt::format(
      "{{\"id\":\"{}\",\"text\":\"a\",\"tokens\":{},\"label\":{},\"prediction\":{},\"probabilities\":[{},{}]}}\n", id,
      tokens, label, prediction, no, 1 - no);
}

}  // namespace

TEST_CASE("a row counts at its length, ends included, and those that a model doubts most come first") {
  const std::string lines = kHeader + row_of(0, 1, 0, 0, 1) + row_of(1, 8, 0, 0, 0.75) + row_of(2, 9, 1, 0, 0.5625) +
                            row_of(3, 16, 0, 0, 0.9375) + row_of(4, 17, 1, 1, 0);
  const io::Json json = report::evaluation_of(lines, {.points = 100, .rows = 3});
  REQUIRE(json["lengths"].size() == 3);
  const int expected[3][3] = {{1, 8, 2}, {9, 16, 2}, {17, 32, 1}};
  for (std::size_t i = 0; i < 3; ++i) {
    CAPTURE(i);
    CHECK(json["lengths"][i]["from"] == expected[i][0]);
    CHECK(json["lengths"][i]["to"] == expected[i][1]);
    CHECK(json["lengths"][i]["rows"] == expected[i][2]);
  }
  CHECK(json["lengths"][1]["accuracy"] == 0.5);
  CHECK(json["lengths"][0]["loss"].get<double>() == doctest::Approx(-std::log(0.75) / 2));
  CHECK(json["calibration"]["bins"][9]["count"] == 3);
  REQUIRE(json["uncertain"].size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(json["uncertain"][i]["id"] == std::vector<std::string>{"2", "1", "3"}[i]);
  REQUIRE(json["wrong"].size() == 1);
  CHECK(json["wrong"][0]["id"] == "2");
}

TEST_CASE("a list has no more rows than the page has room for, and an evaluation without rows says so") {
  std::string rows = kHeader;
  for (int i = 0; i < 9; ++i) rows += row_of(i, 5, 1, 0, 0.75);
  CHECK(report::evaluation_of(rows, {.points = 10, .rows = 7})["wrong"].size() == 7);
  std::vector<tasks::SquadParagraph> data(1);
  for (const char* id : {"a", "b", "c"})
    data[0].questions.push_back({.id = id, .question = "?", .answers = {{"x", 0}}});
  const std::string answers = tasks::answer_rows(false, data, {});
  CHECK(report::evaluation_of(answers, {.points = 10, .rows = 2})["wrong"].size() == 2);
  CHECK(report::evaluation_of(answers, {})["wrong"].size() == 3);
  for (const std::string& lines : {rows, answers}) {
    const io::Json none = report::evaluation_of(lines.substr(0, lines.find('\n') + 1), {});
    CHECK(none["rows"] == 0);
    CHECK_FALSE(none.contains("lengths"));
  }
  CHECK(report::evaluation_of(R"({"task":"ner","kind":"words","labels":["O","B-X"]})", {})["rows"] == 0);
}

TEST_CASE("a text is cut between characters") {
  CHECK(report::cut("aé", 3) == "aé");
  CHECK(report::cut("aé", 2) == "a…");
  CHECK(report::cut("abc", 2) == "ab…");
  CHECK(report::cut("שלום", 3) == "ש…");
}

TEST_CASE("the intervals of punctuation are of the labels other than O, and what is undefined is 0") {
  const tasks::LabelSet names({"O", "COMMA", "PERIOD"});
  const tasks::TokenFile file{.file = "f", .words = std::vector<std::string>(8, "a"), .offsets = {0, 4, 8}};
  const std::vector<std::int32_t> truth = {0, 1, 2, 0, 0, 1, 2, 0};  // two sentences alike: each draw has these figures
  const auto evaluated = [&](const std::vector<std::int32_t>& predicted) {
    const tasks::WordPredictions words{.labels = predicted, .probabilities = std::vector<float>(8, 0.5F)};
    return report::evaluation_of(tasks::word_rows(tasks::TokenTask::punct, {file, names, truth, predicted}, words), {});
  };
  const auto check = [&](const io::Json& json, const std::map<std::string, double>& figures) {
    for (const auto& [name, value] : figures) {
      CAPTURE(name);
      CHECK(json["intervals"][name] == io::Json({value, value}));
    }
  };
  const io::Json some = evaluated({0, 1, 1, 1, 0, 1, 1, 1});
  check(some, {{"eval_accuracy", 0.5}, {"eval_precision", 1.0 / 3}, {"eval_recall", 0.5}, {"eval_f1", 0.4}});
  CHECK(some["sentences"].size() == 2);
  CHECK(some["sentences"][0]["wrong"] == 2);
  const io::Json none = evaluated(std::vector<std::int32_t>(8, 0));
  check(none, {{"eval_accuracy", 0.5}, {"eval_precision", 0}, {"eval_recall", 0}, {"eval_f1", 0}});
  CHECK(evaluated(truth)["sentences"].empty());
}

TEST_CASE("one damaged line is named, and a setting of a file has the file's name") {
  const support::TemporaryDirectory run;
  support::write_text(run / "run_config.json",
                      R"({"program":"finetune","command":["finetune","--train","data.tsv","--quiet"],)"
                      R"("settings":{"train":"crc32c 0000002a","quiet":true}})");
  support::write_text(run / "metrics.jsonl", "{\"step\":1,\"loss\":2}\n{\"step\":\n");
  support::write_text(run / "samples.jsonl", "{\"step\":\n");
  const io::Json numbers = report::numbers_of_run(run / ".", {});
  CHECK(numbers["settings"] ==
        io::parse_json(R"-([["train","data.tsv (crc32c 0000002a)",true],["quiet","true",true]])-", {}));
  CHECK(numbers["notes"] ==
        io::Json({"metrics.jsonl: left out 1 damaged line", "samples.jsonl: left out 1 damaged line"}));
}

TEST_CASE("a curve that is made short ends with its last point, be it high or low or neither") {
  std::string lines;
  for (int step = 1; step <= 1000; ++step) lines += fmt::format("{{\"step\":{},\"loss\":{}}}\n", step, step % 10);
  std::size_t damaged = 0;
  const io::Json curve = report::curves_of(lines, 10, damaged)["loss"];
  CHECK(curve["x"].back() == 1000);
  CHECK(curve["x"].size() <= 11);
}
