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
#include "support/refusal.h"
#include "support/sentences.h"

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
  std::string answers = tasks::answer_rows_header(false, 3);
  for (const tasks::SquadQuestion& question : data[0].questions)
    answers += tasks::answer_row(false, data[0], question, "");
  CHECK(report::evaluation_of(answers, {.points = 10, .rows = 2})["wrong"].size() == 2);
  CHECK(report::evaluation_of(answers, {})["wrong"].size() == 3);
  CHECK(report::evaluation_of(answers, {})["wrong"][0]["prediction"].empty());
  for (const std::string& lines : {rows, answers}) {
    const io::Json none = report::evaluation_of(lines.substr(0, lines.find('\n') + 1), {});
    CHECK(none["rows"] == 0);
    CHECK_FALSE(none.contains("lengths"));
    CHECK_FALSE(none.contains("given"));
  }
  CHECK(report::evaluation_of(R"({"task":"ner","kind":"words","labels":["O","B-X"]})", {})["rows"] == 0);
}

TEST_CASE(
    "the rows of words are written line by line, and that of an answer is a line, as the plan counts no memory for all "
    "of them") {
  std::size_t ends = 0, lines = 0;
  const auto write = [&](std::string_view line) {
    ++lines;
    ends += line.find('\n') + 1 == line.size();
  };
  const tasks::LabelSet names({"O"});
  const tasks::SentenceList list = support::sentence_list({{"a", "b"}, {"c"}});
  const std::vector<std::int32_t> labels(3, 0);
  tasks::write_word_rows(tasks::TokenTask::pos, {list, names, labels, labels},
                         {.labels = support::spillable(labels), .probabilities = {1, 1, 1}}, write);
  CHECK(lines == 3);  // a header and two sentences
  std::vector<tasks::SquadParagraph> data(1);
  data[0].questions = {{.id = "a", .question = "?"}, {.id = "b", .question = "?"}};
  write(tasks::answer_rows_header(true, 2));
  for (const tasks::SquadQuestion& question : data[0].questions) write(tasks::answer_row(true, data[0], question, ""));
  CHECK(lines == 6);
  CHECK(ends == lines);
}

TEST_CASE("of words and of answers too the first line says how many rows there are") {
  const auto check = [](const std::string& lines) {
    CHECK_FALSE(report::evaluation_of(lines, {}).contains("written"));
    const io::Json cut = report::evaluation_of(lines.substr(0, lines.rfind('\n', lines.size() - 2) + 1), {});
    CHECK(cut["rows"] == 1);
    CHECK(cut["written"] == 2);
  };
  std::string words;
  const std::vector<std::int32_t> labels(3, 0);
  tasks::write_word_rows(
      tasks::TokenTask::pos, {support::sentence_list({{"a", "b"}, {"c"}}), tasks::LabelSet({"O"}), labels, labels},
      {.labels = support::spillable(labels), .probabilities = {1, 1, 1}}, [&](auto line) { words += line; });
  check(words);
  std::vector<tasks::SquadParagraph> data(1);
  data[0].questions = {{.id = "a", .question = "?"}, {.id = "b", .question = "?"}};
  check(tasks::answer_rows_header(true, 2) + tasks::answer_row(true, data[0], data[0].questions[0], "") +
        tasks::answer_row(true, data[0], data[0].questions[1], ""));
}

TEST_CASE("the intervals of punctuation are of the labels other than O, and what is undefined is 0") {
  const tasks::LabelSet names({"O", "COMMA", "PERIOD"});
  const std::vector<std::string> four(4, "a");
  const tasks::SentenceList list = support::sentence_list({four, four});
  const std::vector<std::int32_t> truth = {0, 1, 2, 0, 0, 1, 2, 0};  // two sentences alike: each draw has these figures
  const auto evaluated = [&](const std::vector<std::int32_t>& predicted) {
    const tasks::WordPredictions words{.labels = support::spillable(predicted),
                                       .probabilities = support::spillable(std::vector<float>(8, 0.5F))};
    std::string lines;
    tasks::write_word_rows(tasks::TokenTask::punct, {list, names, truth, predicted}, words,
                           [&](auto line) { lines += line; });
    return report::evaluation_of(lines, {});
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

TEST_CASE("one damaged line is named and a whole file is not, and a setting of a file has the file's name") {
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
  support::write_text(run / "metrics.jsonl", "{\"step\":1,\"loss\":2}\n");
  support::write_text(run / "samples.jsonl", "{\"step\":1,\"examples\":[]}\n");
  CHECK(report::numbers_of_run(run / ".", {})["notes"].empty());
}

TEST_CASE("a curve that is made short ends with its last point, be it high or low or neither") {
  std::string lines;
  for (int step = 1; step <= 1000; ++step) lines += fmt::format("{{\"step\":{},\"loss\":{}}}\n", step, step % 10);
  std::size_t damaged = 0;
  const io::Json curve = report::curves_of(lines, 10, damaged)["loss"];
  CHECK(curve["x"].back() == 1000);
  CHECK(curve["x"].size() <= 11);
  for (const int last : {0, 5, 99}) {
    std::string few;
    for (int step = 1; step <= 20; ++step)
      few += fmt::format("{{\"step\":{},\"loss\":{}}}\n", step, step == 20 ? last : step == 18 ? 9 : 3);
    const io::Json steps = report::curves_of(few, 10, damaged)["loss"]["x"];
    CHECK(steps.back() == 20);
    CHECK(steps.size() == (last == 5 ? 11 : 10));
    CHECK(std::ranges::adjacent_find(steps) == steps.end());  // and has no point twice
  }
}

TEST_CASE("a long stretch of a curve keeps its spike behind what is not finite, and a short curve keeps every point") {
  const auto curve_of = [](const std::vector<std::string>& values, std::size_t most) {
    std::string lines;
    for (std::size_t i = 0; i < values.size(); ++i)
      lines += fmt::format("{{\"step\":{},\"loss\":{},\"note\":\"a word\"}}\n", i + 1, values[i]);
    std::size_t damaged = 7;
    io::Json curves = report::curves_of(lines, most, damaged);
    CHECK(damaged == 0);
    CHECK(curves.size() == 1);
    return curves["loss"];
  };
  CHECK(curve_of({"null", "null", "1", "2"}, 4)["x"] == io::Json({1, 2, 3, 4}));
  std::vector<std::string> values(20, "1");
  values[4] = "null";
  values[6] = "99";
  const io::Json curve = curve_of(values, 10);
  CHECK(std::ranges::count(curve["y"], io::Json(99)) == 1);
  CHECK(std::ranges::count(curve["y"], io::Json()) == 1);
  CHECK(std::ranges::is_sorted(curve["x"]));
}

TEST_CASE("a row of more tokens than there can be is refused, and one that does not say how many has no length") {
  const std::string row = kHeader + R"({"text":"a","label":0,"prediction":0,"probabilities":[1,0])";
  CHECK(support::refusal(Failure::input, [&] {
          report::evaluation_of(row + R"(,"tokens":5000000000000000000})", {});
        }).starts_with("eval_rows.jsonl:2: tokens: expected"));
  const io::Json one = report::evaluation_of(row + "}", {});
  CHECK(one["lengths"].empty());
  CHECK(one["intervals"].empty());      // of a single row there are none
  CHECK(one["uncertain"].size() == 1);  // however sure the model is of it
  CHECK(report::evaluation_of(row + "}\n" + row_of(1, 5, 0, 0, 1), {})["intervals"].contains("eval_accuracy"));
}

TEST_CASE(
    "rows that are as bad as each other are in the order of the file, and so are mistakes in that of the labels") {
  std::string lines = kHeader;
  for (int i = 0; i < 5; ++i) lines += row_of(i, 5, 1, 0, 0.75);
  const io::Json json = report::evaluation_of(lines, {.points = 10, .rows = 3, .classes = 2});
  REQUIRE(json["wrong"].size() == 3);
  for (std::size_t i = 0; i < 3; ++i) CHECK(json["wrong"][i]["id"] == std::to_string(i));
  CHECK(json["wrong"][0]["probability"] == 0.75);
  CHECK(json["wrong"][0]["probability_of_label"] == 0.25);
  CHECK(json.contains("confusion"));
  CHECK_FALSE(report::evaluation_of(lines, {.points = 10, .rows = 3, .classes = 1}).contains("confusion"));
  std::string three = "{\"kind\":\"classification\",\"labels\":[\"a\",\"b\",\"c\"],\"metrics\":[],\"given\":2}\n";
  for (const char* said : {R"("label":2,"prediction":0)", R"("label":0,"prediction":1)"})
    three += fmt::format("{{\"text\":\"t\",{},\"probabilities\":[1,0,0]}}\n", said);
  const io::Json of_three = report::evaluation_of(three, {});
  REQUIRE(of_three["confused"].size() == 2);
  CHECK(of_three["confused"][0]["label"] == "a");
  CHECK(of_three["confused"][1]["label"] == "c");
  CHECK_FALSE(of_three.contains("given"));  // these are all of them
}

TEST_CASE("rows that do not fit their header are refused with their line") {
  const auto refused = [](const std::string& lines) {
    return support::refusal(Failure::input, [&] { report::evaluation_of(lines, {}); });
  };
  CHECK(refused(kHeader + R"({"text":"a","label":[0],"prediction":0,"probabilities":[1,0]})")
            .starts_with("eval_rows.jsonl:2: label: "));
  CHECK(refused(kHeader + R"({"text":"a","prediction":0,"probabilities":[1,0]})")
            .starts_with("eval_rows.jsonl:2: label: "));
  CHECK(refused(kHeader + R"({"text":"a","label":0,"prediction":0,"probabilities":[1]})")
            .starts_with("eval_rows.jsonl:2: probabilities: "));
  CHECK(refused(R"({"kind":"classification","labels":[],"metrics":[]})").starts_with("eval_rows.jsonl:1: labels: "));
  CHECK(refused(R"({"kind":"ranking","labels":["a"],"metrics":[]})").starts_with("eval_rows.jsonl:1: kind: "));
  CHECK(refused(R"({"kind":"classification","labels":["a"],"metrics":["pearson"]})")
            .starts_with("eval_rows.jsonl:1: metrics: "));
  CHECK(refused("{\"task\":\"ner\",\"kind\":\"words\",\"labels\":[\"O\",\"B-X\"]}\n"
                R"({"words":["a","b"],"label":[0,0],"prediction":[0,0],"probabilities":[1]})")
            .starts_with("eval_rows.jsonl:2: probabilities: "));
  CHECK(refused("{\"kind\":\"answers\"}\n"
                R"({"text":"?","prediction":"","exact":0,"f1":0})")
            .starts_with("eval_rows.jsonl:2: label: "));
  CHECK(report::has_texts(kHeader));
  CHECK_FALSE(report::has_texts(""));
  CHECK_FALSE(report::has_texts("{\"task\":\"ner\",\"kind\":\"words\"}\n"));
}

TEST_CASE("a label that a row has twice counts once, and each label of a row is in the calibration") {
  const io::Json json = report::evaluation_of(
      "{\"kind\":\"multi-label\",\"labels\":[\"a\",\"b\"],\"metrics\":[\"accuracy\"]}\n"
      R"({"text":"t","label":[1,1],"prediction":[1],"probabilities":[0.25,0.5]})",
      {});
  CHECK(json["wrong"].empty());
  CHECK(json["classes"][1]["support"] == 1);
  CHECK(json["calibration"]["bins"][2]["count"] == 1);
  CHECK(json["calibration"]["bins"][2]["accuracy"] == 0);
  CHECK(json["calibration"]["bins"][5]["count"] == 1);
  CHECK(json["calibration"]["bins"][5]["accuracy"] == 1);
  const io::Json only = report::evaluation_of(
      "{\"kind\":\"classification\",\"labels\":[\"only\"],\"metrics\":[]}\n"
      R"({"text":"t","label":0,"prediction":0,"probabilities":[1]})",
      {});
  CHECK(only["uncertain"].size() == 1);
}

TEST_CASE("entities are right or wrong as wholes, and the sentence with the most wrong words comes first") {
  const std::string head = "{\"task\":\"ner\",\"kind\":\"words\",\"labels\":[\"O\",\"B-X\",\"I-X\"]}\n";
  const std::string half =
      R"({"words":["a","b","c","d"],"label":[1,2,0,1],"prediction":[1,2,0,0],"probabilities":[1,1,1,1]})"
      "\n";
  const io::Json json = report::evaluation_of(head + half + half, {});  // each draw has the same figures
  CHECK(json["intervals"]["eval_accuracy"] == io::Json({0.75, 0.75}));
  CHECK(json["intervals"]["eval_precision"] == io::Json({1.0, 1.0}));
  CHECK(json["intervals"]["eval_recall"] == io::Json({0.5, 0.5}));
  CHECK(json["intervals"]["eval_f1"][0].get<double>() == doctest::Approx(2.0 / 3));
  CHECK_FALSE(json["lengths"][0].contains("loss"));  // words have none
  const std::string worse =
      R"({"id":"worse","words":["a","b"],"label":[0,0],"prediction":[1,1],"probabilities":[1,1]})";
  const io::Json both = report::evaluation_of(head + half + worse, {.points = 10, .rows = 1});
  REQUIRE(both["sentences"].size() == 1);
  CHECK(both["sentences"][0]["id"] == "worse");
  CHECK(both["sentences"][0]["wrong"] == 2);
  CHECK(report::evaluation_of(head + worse, {})["intervals"].empty());
}
