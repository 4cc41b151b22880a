// What a page takes out of the files of a run.
#include <doctest/doctest.h>

#include "bert/report/evaluation.h"
#include "bert/report/report.h"
#include "io/input_files.h"
#include "support/program.h"

using namespace bertrand;

TEST_CASE("what a run's files say in another form than they should is left out") {
  const support::TemporaryDirectory run;
  support::write_text(run / "run_config.json",
                      R"({"program":5,"replicas":"two","machine":[],"inputs":[{"name":"a"}],"settings":[1]})");
  support::write_text(run / "metrics.jsonl", "{\"step\":1,\"loss\":2}\n");
  support::write_text(run / "profile.json", "[1]");
  const io::Json numbers = report::numbers_of_run(run / ".", {});
  for (const char* name : {"program", "replicas", "machine"}) CHECK_FALSE(numbers.contains(name));
  CHECK(numbers["inputs"] == io::parse_json(R"([{"name":"a"}])", {}));
  CHECK(numbers["settings"].empty());
  CHECK(numbers["profile"] == io::Json::object());
  CHECK(numbers["notes"] == io::Json::array({"profile.json: damaged, and left out"}));
}

TEST_CASE("curves are missed of a run that trains, or of which that is not known, and of no other") {
  const auto notes = [](const std::string& config) {
    const support::TemporaryDirectory run;
    support::write_text(run / "run_config.json", config);
    return report::numbers_of_run(run / ".", {})["notes"];
  };
  const io::Json missed = io::Json::array({"metrics.jsonl: not there"});
  CHECK(notes(R"({"settings":{"steps":3}})") == missed);
  CHECK(notes(R"({"settings":[]})") == missed);
  CHECK(notes("{}") == missed);
  CHECK(notes(R"({"settings":{"seed":3}})").empty());
}

TEST_CASE("a file of one value that no run needs to be so large is left out, and the others are not") {
  const support::TemporaryDirectory run;
  support::write_text(run / "run_config.json", R"({"program":"finetune"})");
  support::write_text(run / "metrics.jsonl", "{\"step\":1,\"loss\":2}\n");
  support::write_text(run / "profile.json", "{}");
  std::filesystem::resize_file(run / "profile.json", io::kMostSmallFile + 1);  // zeros that take no room on the disk
  const io::Json numbers = report::numbers_of_run(run / ".", {});
  CHECK(numbers["program"] == "finetune");
  CHECK(numbers["profile"] == io::Json::object());
  CHECK(numbers["notes"] == io::Json::array({"profile.json: more than 33.6 MB, and left out"}));
}

TEST_CASE("the time that has passed is no curve, and the time at which a run began stands on the page") {
  const support::TemporaryDirectory run;
  support::write_text(run / "run_config.json", R"({"started":"2026-11-28T10:00:00Z"})");
  support::write_text(run / "metrics.jsonl", "{\"step\":1,\"epoch\":1,\"loss\":2,\"seconds\":0.5}\n");
  const io::Json numbers = report::numbers_of_run(run / ".", {});
  CHECK(numbers["started"] == "2026-11-28T10:00:00Z");
  CHECK(numbers["curves"].size() == 1);
}

TEST_CASE("a command is shown as it may be typed, and a file of it beside its checksum however it was given") {
  const support::TemporaryDirectory run;
  support::write_text(run / "run_config.json", R"({"command":["finetune","--train=data….tsv","--output","a b"],)"
                                               R"("settings":{"train":"crc32c 0000002a"}})");
  const io::Json numbers = report::numbers_of_run(run / ".", {});
  CHECK(numbers["command"] == "finetune --train=data….tsv --output 'a b'");
  CHECK(numbers["settings"] == io::parse_json(R"-([["train","data….tsv (crc32c 0000002a)",true]])-", {}));
}

TEST_CASE("a table of classes is shown where rows have none, and of labelled words before theirs") {
  const support::TemporaryDirectory run;
  support::write_text(run / "eval_report.tsv", "label\tprecision\trecall\tf1\tsupport\nX\t0.5\t1\t0.66\t7\n");
  const auto name = [&] {
    const io::Json numbers = report::numbers_of_run(run / ".", {});
    return numbers.at("evaluation").at("classes").at(0).at("name");
  };
  CHECK(name() == "X");
  support::write_text(run / "eval_rows.jsonl",
                      "{\"kind\":\"classification\",\"labels\":[\"no\"],\"metrics\":[]}\n"
                      R"({"text":"t","label":0,"prediction":0,"probabilities":[1]})");
  CHECK(name() == "no");
  support::write_text(run / "eval_rows.jsonl",
                      "{\"task\":\"ner\",\"kind\":\"words\",\"labels\":[\"O\"]}\n"
                      R"({"words":["a"],"label":[0],"prediction":[0],"probabilities":[1]})");
  CHECK(name() == "X");
}

TEST_CASE("rows of an evaluation that end early are told of at the top of the page") {
  const support::TemporaryDirectory run;
  support::write_text(run / "run_config.json", R"({"settings":{"seed":3}})");  // no training
  const auto notes = [&](const std::string& rows) {
    support::write_text(run / "eval_rows.jsonl", rows);
    return report::numbers_of_run(run / ".", {})["notes"].dump();
  };
  const std::string row = "{\"text\":\"t\",\"label\":0,\"prediction\":0,\"probabilities\":[1]}\n";
  const auto header = [](const std::string& rows) {
    return R"({"kind":"classification",)" + rows + R"("labels":["no"],"metrics":[],"given":9})" + "\n";
  };
  CHECK(notes(header("\"rows\":3,") + row + row + row) == "[]");
  CHECK(notes(header("\"rows\":3,") + row + row) == R"(["eval_rows.jsonl: expected 3 rows, got 2"])");
  CHECK(notes(header("\"rows\":3,")) == R"(["eval_rows.jsonl: expected 3 rows, got 0"])");
  CHECK(notes(header("") + row) == "[]");  // of a version that wrote no number of them
  for (const std::string& none : {header(""), std::string()})
    CHECK(notes(none) == R"(["eval_rows.jsonl: expected rows, got none"])");
}

TEST_CASE("a page of runs that is made shorter and shorter keeps a wrong row of each and the matrix of two classes") {
  const support::TemporaryDirectory run;
  const std::string label(200'000, 'x');  // too long for a page of so many runs, however much else is left out
  std::string rows = "{\"kind\":\"classification\",\"labels\":[\"no\",\"" + label + "\"],\"metrics\":[]}\n";
  for (int i = 0; i < 3; ++i) rows += "{\"text\":\"t\",\"label\":0,\"prediction\":1,\"probabilities\":[0.1,0.9]}\n";
  support::write_text(run / "eval_rows.jsonl", rows);
  const std::string page = report::page_of_runs(std::vector<std::filesystem::path>(11, run / "."));
  const std::string begin = "<script id=\"numbers\" type=\"application/json\">";
  const std::size_t from = page.find(begin) + begin.size();
  const io::Json numbers = io::parse_json(page.substr(from, page.find("</script>", from) - from), {"page"});
  const io::Json& evaluation = numbers.at("runs").at(10).at("evaluation");
  CHECK(evaluation.at("wrong").size() == 1);
  CHECK(evaluation.at("confusion").size() == 2);
}

TEST_CASE("a table of classes has every figure, what is no number is 0, and a table of other columns is none") {
  const std::string header = "label\tprecision\trecall\tf1\tsupport\n";
  const io::Json one = report::classes_of(header + "X\t0.5\t1\t0.66\t7\n").at(0);
  CHECK(one == io::parse_json(R"({"name":"X","precision":0.5,"recall":1,"f1":0.66,"support":7})", {}));
  CHECK(report::classes_of(header + "X\t-\t1\t0.66\t7\n").at(0).at("precision") == 0);
  CHECK(report::classes_of("label\tcount\nX\t7\n").empty());
}
