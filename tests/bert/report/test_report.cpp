// The page of runs that are as they should be, and of such that are not.
#include "bert/report/report.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <random>

#include "bert/report/curves.h"
#include "bert/report/evaluation.h"
#include "bert/report/intervals.h"
#include "bert/tasks/answer_rows.h"
#include "bert/tasks/evaluation_rows.h"
#include "bert/tasks/metrics.h"
#include "bert/tasks/word_rows.h"
#include "io/signals.h"
#include "support/program.h"
#include "support/refusal.h"
#include "support/sentences.h"

namespace {

using namespace bertrand;
using report::Extent;

/// The numbers of a page, as a program reads them out of it.
io::Json numbers_in(const std::string& page) {
  const std::string begin = "<script id=\"numbers\" type=\"application/json\">", end = "</script>";
  const std::size_t from = page.find(begin) + begin.size();
  return io::parse_json(page.substr(from, page.find(end, from) - from), {"page"});
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// Rows of two classes: `rights` right ones of 100, each with the probability 0.75.
std::string rows_of(int rights) {
  std::string lines =
      "{\"task\":\"custom\",\"kind\":\"classification\",\"labels\":[\"no\",\"yes\"],\"positive\":1,\"metrics\":["
      "\"accuracy\",\"f1\"]}\n";
  for (int i = 0; i < 100; ++i) {
    const int label = i % 2, prediction = i < rights ? label : 1 - label;
    lines += fmt::format(
        "{{\"id\":\"{}\",\"text\":\"text "
        "{}\",\"tokens\":{},\"label\":{},\"prediction\":{},\"probabilities\":[{},{}]}}\n",
        i, i, i < 50 ? 5 : 20, label, prediction, prediction == 0 ? 0.75 : 0.25, prediction == 1 ? 0.75 : 0.25);
  }
  return lines;
}

}  // namespace

TEST_CASE("the confused classes of very many are found without a matrix of all of them") {
  io::Json labels = io::Json::array(), probabilities = io::Json::array();
  for (int k = 0; k < 100'000; ++k) {
    labels.push_back(std::to_string(k));
    probabilities.push_back(0);
  }
  const io::Json head{
      {"task", "custom"}, {"kind", "classification"}, {"labels", labels}, {"positive", 1}, {"metrics", {"accuracy"}}};
  const io::Json row{{"id", "0"},  {"text", "a"},          {"tokens", 3},
                     {"label", 7}, {"prediction", 99'999}, {"probabilities", probabilities}};
  const io::Json json = report::evaluation_of(head.dump() + "\n" + row.dump() + "\n", {});
  CHECK_FALSE(json.contains("confusion"));
  CHECK(json["confused"] == io::Json::array({{{"label", "7"}, {"prediction", "99999"}, {"rows", 1}}}));
}

TEST_CASE("a page of a run has its command, its settings, its curves and its figures as JSON") {
  const support::TemporaryDirectory run;
  support::write_text(run / "run_config.json",
                      R"({"program":"finetune","command":["finetune","--task","it's","--epochs=2"],)"
                      R"("settings":{"task":"it's","epochs":2.0,"seed":42}})");
  support::write_text(run / "metrics.jsonl", "{\"step\":1,\"epoch\":0.5,\"loss\":2.5}\n{\"step\":2,\"loss\":1.25}\n");
  support::write_text(run / "eval_results.json", R"({"eval_accuracy":0.8,"global_step":2})");
  support::write_text(run / "eval_rows.jsonl", rows_of(80));
  const std::string page = report::page_of_runs({run / "."});
  const io::Json numbers = numbers_in(page)["runs"][0];
  CHECK(numbers["command"] == "finetune --task 'it'\\''s' --epochs=2");
  CHECK(numbers["settings"] ==
        io::parse_json(R"([["task","it's",true],["epochs","2.0",true],["seed","42",false]])", {}));
  CHECK(numbers["curves"]["loss"]["x"] == io::Json({1, 2}));
  CHECK(numbers["curves"]["loss"]["y"] == io::Json({2.5, 1.25}));
  CHECK_FALSE(numbers["curves"].contains("epoch"));
  CHECK(numbers["results"][0]["name"] == "eval_accuracy");
  CHECK(numbers["results"][0]["interval"] == numbers["evaluation"]["intervals"]["eval_accuracy"]);
  CHECK(numbers["notes"].empty());
}

TEST_CASE("no text of a run can end the page's script or begin markup") {
  const support::TemporaryDirectory run;
  const std::string nasty = "</script><script>alert(1)</script><!--<b>";
  support::write_text(run / "run_config.json", io::json_text({{"program", nasty}, {"settings", {{nasty, nasty}}}}));
  support::write_text(run / "metrics.jsonl", io::json_text({{"step", 1}, {nasty, 1.5}}) + "\n");
  const std::string page = report::page_of_runs({run / "."});
  CHECK(count(page, "alert(1)") == 4);
  CHECK(count(page, "<script>alert") == 0);
  CHECK(count(page, "<!--") == 0);
  CHECK(numbers_in(page)["runs"][0]["program"] == nasty);
}

TEST_CASE("files that are missing or damaged are named and left out") {
  const support::TemporaryDirectory run;
  support::write_text(run / "metrics.jsonl", "{\"step\":1,\"loss\":2}\nnot JSON\n[]\n{\"loss\":1}\n{\"step\":2,\"lo");
  support::write_text(run / "eval_rows.jsonl", rows_of(80) + "{\"id\":\"x\"}\n");
  support::write_text(run / "profile.json", "[1,");
  support::write_text(run / "eval_results.json", R"({"eval_loss":"a word"})");
  const io::Json numbers = report::numbers_of_run(run / ".", {});
  CHECK(numbers["curves"]["loss"]["y"] == io::Json({2}));
  REQUIRE(numbers["notes"].size() == 4);
  CHECK(numbers["notes"][0] == "run_config.json: not there");
  CHECK(numbers["notes"][1] == "metrics.jsonl: left out 4 damaged lines");
  CHECK(numbers["notes"][2].get<std::string>().starts_with("eval_rows.jsonl:102: text: expected"));
  CHECK(numbers["notes"][3] == "profile.json: damaged, and left out");
  CHECK(numbers["results"].empty());
}

TEST_CASE("a long curve keeps its ends, its highest spike and what is not finite") {
  std::string lines;
  for (int step = 1; step <= 10'000; ++step)
    lines += fmt::format("{{\"step\":{},\"loss\":{}}}\n", step,
                         step == 7'003 ? "null" : fmt::format("{}", step == 5'001 ? 99.5 : 1.0 / step));
  std::size_t damaged = 0;
  const io::Json curve = report::curves_of(lines, 100, damaged)["loss"];
  CHECK(damaged == 0);
  CHECK(curve["points"] == 10'000);
  CHECK(curve["x"].size() <= 103);
  CHECK(curve["x"].size() == curve["y"].size());
  CHECK(curve["x"].front() == 1);
  CHECK(curve["x"].back() == 10'000);
  CHECK(std::ranges::is_sorted(curve["x"]));
  CHECK(std::ranges::count(curve["y"], io::Json(99.5)) == 1);
  CHECK(std::ranges::count(curve["y"], io::Json()) == 1);
}

TEST_CASE("an evaluation has intervals about its figures, a confusion matrix, lengths and calibration") {
  const io::Json json = report::evaluation_of(rows_of(80), {});
  const io::Json interval = json["intervals"]["eval_accuracy"];
  // The binomial distribution of 100 draws of 0.8: 95 % of it lie within 0.8 ± 0.08.
  CHECK(interval[0].get<double>() == doctest::Approx(0.72).scale(0).epsilon(0.02));
  CHECK(interval[1].get<double>() == doctest::Approx(0.88).scale(0).epsilon(0.02));
  CHECK(json["confusion"] == io::Json({{40, 10}, {10, 40}}));
  CHECK(json["classes"][1]["precision"] == 0.8);
  CHECK(json["classes"][1]["support"] == 50);
  REQUIRE(json["lengths"].size() == 2);
  CHECK(json["lengths"][0]["accuracy"] == 1);
  CHECK(json["lengths"][1]["accuracy"] == 0.6);
  CHECK(json["lengths"][1]["to"] == 32);
  CHECK(json["calibration"]["bins"][7]["count"] == 100);
  CHECK(json["calibration"]["error"].get<double>() == doctest::Approx(0.05));
  REQUIRE(json["wrong"].size() == 20);
  CHECK(json["wrong"][0]["label"] == io::Json({"no"}));
  CHECK(json["wrong"][0]["loss"].get<double>() == doctest::Approx(-std::log(0.25)));
}

TEST_CASE("the rows of an evaluation that a task writes are those that the page reads") {
  tasks::Task task = tasks::custom_task({.kind = tasks::Kind::multi_label});
  const tasks::LabelSet labels({"red", "שלום", "c"});
  tasks::Dataset dataset{.file = "d.tsv", .labelled = true};
  dataset.examples = {{.id = "7", .text_a = "first", .text_b = "second"}, {.id = "8", .text_a = "<b>", .text_b = ""}};
  tasks::EncodedDataset encoded;
  encoded.token_ids.append(std::vector<std::int32_t>{1, 2, 3});
  encoded.end_example(2);
  encoded.token_ids.append(std::vector<std::int32_t>{4, 5});
  encoded.end_example(1);
  encoded.targets.append(std::vector<std::int32_t>{1, 0, 1, 0, 0, 0});
  const tasks::Logits logits{.outputs = 3, .values = {2, -2, -1, -3, 0.1F, -3}};
  std::string lines;
  tasks::write_evaluation_rows(task, labels, dataset, encoded, logits, [&](auto line) { lines += line; });
  const io::Json json = report::evaluation_of(lines, {});
  CHECK(json["kind"] == "multi-label");
  CHECK(json["rows"] == 2);
  CHECK(json["intervals"].contains("eval_micro_f1"));
  REQUIRE(json["wrong"].size() == 2);
  CHECK(json["wrong"][0]["label"] == io::Json({"red", "c"}));
  CHECK(json["wrong"][0]["prediction"] == io::Json({"red"}));
  CHECK(json["wrong"][0]["pair"] == "second");
  // −log of 0.8808 of each of the first two labels, and of 0.2689.
  CHECK(json["wrong"][0]["loss"].get<double>() == doctest::Approx(0.522373).epsilon(1e-4));
  CHECK(json["uncertain"][0]["id"] == "8");  // 0.1 is next to one half
  CHECK(json["wrong"][1]["prediction"] == io::Json({"שלום"}));
  CHECK(json["wrong"][1]["tokens"] == 2);
  CHECK_FALSE(json.contains("given"));
}

TEST_CASE("the intervals of several labels are those of figures over a 0 or 1 for each label") {
  constexpr std::size_t kLabels = 7, kRows = 40, kResamples = 1000;
  std::mt19937_64 random(3);
  io::Json names = io::Json::array();
  for (std::size_t j = 0; j < kLabels; ++j) names.push_back(std::to_string(j));
  const io::Json head{{"kind", "multi-label"}, {"labels", names}, {"metrics", {"accuracy", "micro_f1", "macro_f1"}}};
  std::string lines = head.dump() + "\n";
  std::vector<std::int32_t> truth, predicted;
  const auto draw = [&](std::vector<std::int32_t>& flags) {
    io::Json numbers = io::Json::array();
    for (std::size_t j = 0; j < kLabels; ++j)
      if (flags.push_back(random() % 3 == 0); flags.back() == 1) numbers.push_back(j);
    return numbers;
  };
  for (std::size_t i = 0; i < kRows; ++i) {
    const io::Json is = draw(truth);
    if (i % 2 == 0) predicted.insert(predicted.end(), truth.end() - kLabels, truth.end());
    lines += io::Json{{"text", "t"},
                      {"label", is},
                      {"prediction", i % 2 == 0 ? is : draw(predicted)},
                      {"probabilities", std::vector<double>(kLabels, 0.5)}}
                 .dump() +
             "\n";
  }
  std::mt19937_64 again(12345);
  std::map<std::string, std::vector<double>> values;
  for (std::size_t k = 0; k < kResamples; ++k) {
    std::vector<std::int32_t> t, p;
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto from = static_cast<std::ptrdiff_t>(again() % kRows * kLabels);
      t.insert(t.end(), truth.begin() + from, truth.begin() + from + kLabels);
      p.insert(p.end(), predicted.begin() + from, predicted.begin() + from + kLabels);
    }
    const tasks::MultiLabelScores scores = tasks::multi_label_scores(p, t, kLabels);
    values["eval_accuracy"].push_back(scores.accuracy);
    values["eval_micro_f1"].push_back(scores.micro_f1);
    values["eval_macro_f1"].push_back(scores.macro_f1);
  }
  const io::Json intervals = report::evaluation_of(lines, {})["intervals"];
  for (auto& [name, list] : values) {
    CAPTURE(name);
    std::ranges::sort(list);
    CHECK(intervals[name] == io::Json({list[25], list[974]}));
  }
}

TEST_CASE("rows are read with little memory: what was read is given back, and shown rows are read again") {
  std::string lines = rows_of(0);
  const std::string row = lines.substr(lines.rfind('\n', lines.size() - 2) + 1);
  while (lines.size() < 9'000'000) lines += row;
  int given_back = 0;
  const io::Json json = report::evaluation_of(lines, {}, [&] { ++given_back; });
  CHECK(given_back == 2);
  CHECK(json["wrong"][0]["text"] == "text 0");
}

TEST_CASE("a signal that asks to leave ends a report") {
  report::Rows rows{.kind = tasks::Kind::classification, .labels = {"no", "yes"}, .metrics = {tasks::Metric::accuracy}};
  for (std::int32_t i = 0; i < 10; ++i) rows.add({}, std::vector{i % 2}, std::vector{0});
  const std::string lines = rows_of(80);
  const support::TemporaryDirectory run;
  support::write_text(run / "eval_rows.jsonl", lines);
  for (const auto& work :
       {std::function([&] { report::evaluation_of(lines, {}); }), std::function([&] { report::intervals(rows); }),
        std::function([&] { report::numbers_of_run(run / ".", {}); })}) {
    const pid_t child = ::fork();
    if (child == 0) {
      io::catch_stop_signals(io::OnStop::leave);
      std::raise(SIGTERM);
      try {
        work();
      } catch (const Error& error) {
        ::_exit(static_cast<int>(error.failure()));
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    CHECK(WEXITSTATUS(status) == 75);
  }
}

TEST_CASE("of more rows than a page can use those are written that are evenly spread, and it says of how many") {
  using Shown = std::vector<int>;
  for (const auto& [outputs, shown] : {std::pair<std::size_t, Shown>{1, {0, 2, 4}}, {200, {0}}}) {
    tasks::Dataset dataset{.file = "d.tsv", .labelled = true};
    tasks::EncodedDataset encoded;
    tasks::Logits logits{.outputs = outputs};
    for (int i = 0; i < 6; ++i) {
      dataset.examples.push_back({.id = std::to_string(i), .text_a = "a"});
      encoded.end_example(0);
      encoded.targets.push_back(0);
      for (std::size_t j = 0; j < outputs; ++j) logits.values.push_back(static_cast<float>(i));
    }
    std::string lines;
    tasks::write_evaluation_rows(
        tasks::named_task("stsb"), {}, dataset, encoded, logits, [&](auto line) { lines += line; }, 3);
    const io::Json json = report::evaluation_of(lines, {});
    CHECK(json["rows"] == shown.size());
    CHECK(json["given"] == 6);
    CHECK(json["scatter"]["y"] == io::Json(shown));
    const io::Json cut = report::evaluation_of(lines.substr(0, lines.rfind('\n', lines.size() - 2) + 1), {});
    CHECK(cut["written"] == shown.size());
    for (const char* of_all : {"given", "intervals"}) CHECK_FALSE(cut.contains(of_all));
  }
}

TEST_CASE("scores have a scatter and the widest misses") {
  const io::Json json = report::evaluation_of(
      "{\"kind\":\"regression\",\"labels\":[],\"metrics\":[\"pearson\",\"spearman\"]}\n"
      "{\"id\":\"0\",\"text\":\"a\",\"tokens\":3,\"label\":1,\"prediction\":1.5}\n"
      "{\"id\":\"1\",\"text\":\"b\",\"tokens\":4,\"label\":5,\"prediction\":2}\n",
      {});
  CHECK(json["scatter"] == io::Json({{"x", {1, 5}}, {"y", {1.5, 2.0}}}));
  CHECK(json["wrong"][0]["id"] == "1");
  CHECK(json["wrong"][0]["loss"] == 9);
  CHECK(json["lengths"][0]["error"] == 1.75);
}

TEST_CASE("the sentences of a model that labels words have intervals, entities and their mistakes") {
  const tasks::LabelSet names({"O", "B-X", "I-X"});
  const tasks::SentenceList list = support::sentence_list({{"in", "New", "York"}, {"שלום", "<b>"}});
  const std::vector<std::int32_t> truth = {0, 1, 2, 0, 0}, predicted = {0, 1, 0, 0, 1};
  const tasks::WordPredictions words{.labels = support::spillable(predicted),
                                     .probabilities = {0.9F, 0.8F, 0.7F, 0.95F, 0.5F}};
  std::string lines;
  tasks::write_word_rows(tasks::TokenTask::ner, {list, names, truth, predicted}, words, [&](auto x) { lines += x; });
  const io::Json json = report::evaluation_of(lines, {});
  CHECK(json["kind"] == "words");
  CHECK(json["rows"] == 2);
  CHECK(json["confusion"] == io::Json({{2, 1, 0}, {0, 1, 0}, {1, 0, 0}}));
  // Each of the two sentences is drawn twice in a quarter of all draws.
  CHECK(json["intervals"]["eval_accuracy"][0] == 0.5);
  CHECK(json["intervals"]["eval_accuracy"][1].get<double>() == doctest::Approx(2.0 / 3));
  CHECK(json["intervals"]["eval_recall"][1] == 0);  // B-X O is another entity than B-X I-X
  REQUIRE(json["sentences"].size() == 2);
  CHECK(json["sentences"][0]["words"][2] == io::Json({"York", "I-X", "O"}));
  CHECK(json["sentences"][1]["words"][0] == io::Json({"שלום", "O"}));
  const auto calibration_with = [&](const std::string& probability) {
    const std::string more =
        R"({"id":"2","words":["a"],"label":[0],"prediction":[0],"probabilities":[)" + probability + "]}\n";
    return report::evaluation_of(lines + more, {}).at("calibration");
  };
  CHECK(calibration_with("null") == calibration_with("0"));  // of a word that no window holds
  CHECK(calibration_with("null") != calibration_with("1"));
  CHECK(support::refusal(Failure::input, [&] {
          report::evaluation_of(lines + R"({"id":"2","words":["a"],"label":[3]})", {});
        }) == "eval_rows.jsonl:4: label: expected 1 numbers of labels below 3, got [3]");
}

TEST_CASE("answers have intervals in percent and the questions that they miss") {
  std::vector<tasks::SquadParagraph> data(1);
  data[0].context = "the <b> context";
  data[0].questions = {{.id = "q1", .question = "who?", .answers = {{"The cat"}, {"a dog"}}},
                       {.id = "q2", .question = "מי?", .answers = {{"red fish"}, {"red fish"}}},
                       {.id = "q3", .question = "none?", .answers = {}},
                       {.id = "q4", .question = "lost?", .answers = {}}};
  const std::vector<std::string> said = {"cat", "fish and bird", "x", ""};
  std::string lines = tasks::answer_rows_header(true, 4);
  for (std::size_t i = 0; i < said.size(); ++i)
    lines += tasks::answer_row(true, data[0], data[0].questions[i], said[i]);
  const io::Json json = report::evaluation_of(lines, {});
  CHECK(json["rows"] == 4);
  CHECK(json["intervals"]["eval_exact_match"][1] == 100);
  REQUIRE(json["wrong"].size() == 2);
  CHECK(json["wrong"][0]["id"] == "q3");
  CHECK(json["wrong"][0]["label"].empty());
  CHECK(json["wrong"][1]["text"] == "מי?");
  CHECK(json["wrong"][1]["label"] == io::Json({"red fish"}));
  CHECK(json["wrong"][1]["f1"] == doctest::Approx(0.4));
  CHECK(support::refusal(Failure::input, [&] {
          report::evaluation_of(lines + R"({"text":"","prediction":"","exact":2})", {});
        }).starts_with("eval_rows.jsonl:6: exact: expected"));
}

TEST_CASE("a label that is none is refused with its line") {
  const std::string lines = rows_of(100) + R"({"id":"q","text":"","label":2,"prediction":0,"probabilities":[0,1]})";
  CHECK(support::refusal(Failure::input, [&] { report::evaluation_of(lines, {}); }) ==
        "eval_rows.jsonl:102: label: expected the number of a label below 2, got 2");
}

TEST_CASE("a page of many long runs stays below two megabytes") {
  const support::TemporaryDirectory root;
  std::string lines;
  for (int step = 1; step <= 3'000; ++step)
    lines += fmt::format("{{\"step\":{},\"loss\":{},\"grad_norm\":{},\"tokens_per_second\":{}}}\n", step,
                         1.0 / (step + 0.123), 1.0 / (step + 0.456), 1e5 / (step + 0.789));
  std::vector<std::filesystem::path> runs;
  for (int i = 0; i < 12; ++i) {
    runs.push_back(root / fmt::format("run{}", i));
    std::filesystem::create_directory(runs.back());
    support::write_text(runs.back() / "metrics.jsonl", lines);
  }
  const std::string page = report::page_of_runs(runs);
  CHECK(page.size() <= report::kMostBytes);
  CHECK(numbers_in(page)["runs"].size() == 12);
  CHECK(numbers_in(page)["runs"][11]["curves"]["loss"]["x"].size() > 100);
}

TEST_CASE("the table of a task without rows has its classes") {
  const io::Json classes = report::classes_of(
      "label\tprecision\trecall\tf1\tsupport\nB-<x>\t0.5\t1\t0.66\t7\nmacro avg\t0.5\t1\t0.66\t7\n\nother\n");
  REQUIRE(classes.size() == 1);
  CHECK(classes[0]["name"] == "B-<x>");
  CHECK(classes[0]["support"] == 7);
}
