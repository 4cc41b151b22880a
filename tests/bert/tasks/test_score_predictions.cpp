// predictions.tsv of classes and of numbers, scored against a table.
#include "bert/tasks/score_predictions.h"

#include <doctest/doctest.h>

#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

struct Files {
  support::TemporaryDirectory directory;
  std::string data = directory / "data.csv", predictions = directory / "predictions.tsv";

  FileScores score(const Task& task) const { return score_predictions(task, data, predictions); }
  /// What is said against them, without the directory.
  std::string refusal(const Task& task) const {
    std::string error = support::refusal(Failure::input, [&] { score(task); });
    const std::string own = directory / "";
    for (std::size_t at = 0; (at = error.find(own)) != error.npos;) error.erase(at, own.size());
    return error;
  }
};

const Task kClasses = custom_task({.kind = Kind::classification, .columns = {}});
const std::string kHeader = "id\tprediction\tprobability_fish\tprobability_bird\tlabel\tprobability\ttext\n";

}  // namespace

TEST_CASE("predicted classes have the figures of an evaluation, and the report that goes with them") {
  const Files files;
  support::write_text(files.data, "text,label\na,bird\nb,fish\nc,bird\nd,bird\n");
  support::write_text(files.predictions, kHeader +
                                             "0\tbird\t.1\t.9\t\t.9\ta\n1\tbird\t.2\t.8\t\t.8\tb\n"
                                             "2\tfish\t.7\t.3\t\t.7\tc\n3\tbird\t.4\t.6\t\t.6\td\n");
  const FileScores scores = files.score(kClasses);
  CHECK(scores.figures.at("accuracy") == 0.5);
  CHECK(scores.figures.at("f1") == doctest::Approx(2.0 / 3));  // of bird, the second class of the model
  CHECK(scores.figures.at("rows") == 4);
  CHECK_FALSE(scores.figures.contains("loss"));
  CHECK(scores.table.find("\nbird\t0.6667\t0.6667\t0.6667\t3\n") != std::string::npos);
  CHECK(scores.table.ends_with("\ntrue \\ predicted\tfish\tbird\nfish\t0\t1\nbird\t1\t2\n"));
}

TEST_CASE("the F1 of a task of GLUE is that of its second label, wherever the model has it") {
  const Files files;
  const std::string table = files.directory / "data.tsv";
  support::write_text(table,
                      "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\ta\tb\n1\t3\t4\tc\td\n0\t5\t6\te\tf\n");
  support::write_text(files.predictions,
                      "id\tprediction\tprobability_1\tprobability_0\n"
                      "0\t1\t.9\t.1\n1\t0\t.1\t.9\n2\t0\t.1\t.9\n");
  const FileScores scores = score_predictions(named_task("mrpc"), table, files.predictions);
  CHECK(scores.figures.at("accuracy") == doctest::Approx(2.0 / 3));
  CHECK(scores.figures.at("f1") == doctest::Approx(2.0 / 3));
}

TEST_CASE("predicted numbers have correlations, and no table") {
  const Files files;
  support::write_text(files.data, "id,text,score\nx,a,1\ny,b,2\nz,c,4\n");
  support::write_text(files.predictions, "id\tprediction\tlabel\ttext\nx\t2\t1\ta\ny\t3\t2\tb\nz\t5\t4\tc\n");
  const FileScores scores = files.score(custom_task({.kind = Kind::regression, .columns = {}}));
  CHECK(scores.figures.at("pearson") == doctest::Approx(1));
  CHECK(scores.figures.at("spearman") == doctest::Approx(1));
  CHECK(scores.figures.at("rows") == 3);
  CHECK(scores.table.empty());
}

TEST_CASE("rows of another file, labels that no model could say and rows without a prediction are refused") {
  const Files files;
  support::write_text(files.data, "id,text,label\nx,a,bird\ny,b,fish\n");
  const auto refusal = [&](const std::string& predictions) {
    support::write_text(files.predictions, predictions);
    return files.refusal(kClasses);
  };
  const std::string x = "x\tbird\t.1\t.9\t\t.9\ta\n", y = "y\tfish\t.9\t.1\t\t.9\tb\n";
  CHECK(refusal(kHeader + x + y) == "");
  CHECK(refusal(kHeader + y + x) ==
        "predictions.tsv:2: id: expected \"x\" as in data.csv:2, got \"y\"; hint: --id-column");
  CHECK(refusal(kHeader + x) == "predictions.tsv: rows: expected 2 as in data.csv, got 1");
  CHECK(refusal(kHeader + x + "y\tfish\t.9\t.1\t\t.9\tc\n") ==
        "predictions.tsv:3: text: expected \"b\" as in data.csv:3, got \"c\"; hint: --text-column");
  CHECK(refusal(kHeader + x + "y\t\t\t\t\t\t\n") ==
        "predictions.tsv:3: prediction: expected one, got an empty cell; hint: rows that --on-bad-line report left out "
        "cannot be judged, nor several labels for a text");
  CHECK(refusal(kHeader + x + "y\tfish\xE9\t.9\t.1\t\t.9\tb\n") ==
        "predictions.tsv:3: label: expected UTF-8, got other bytes; hint: iconv turns other encodings into UTF-8");
  CHECK(refusal("id\tprediction\nx\tbird\ny\tfish\n") ==
        "predictions.tsv:1: columns: expected probability_LABEL for each class, got {id,prediction}");
  CHECK(refusal("word\ttag\na\tb\n") ==
        "predictions.tsv:1: columns: expected those of predictions.tsv, got {word,tag}");
  support::write_text(files.data, "id,text,label\nx,a,horse\ny,b,fish\n");
  CHECK(refusal(kHeader + x + y) == "data.csv:2: label: expected one of {fish,bird}, got \"horse\"");
}

TEST_CASE("an id may be empty, and a TAB or a new line in an id, a text or a label is a blank in predictions.tsv") {
  const Files files;
  support::write_text(files.data, "id,text,label\n,\"a\n\",\"big\nbird\"\n\"y\tz\",\"b\tc\",fish\n");
  support::write_text(files.predictions,
                      "id\tprediction\tprobability_big bird\tprobability_fish\ttext\n"
                      "\tbig bird\t.9\t.1\ta \ny z\tfish\t.1\t.9\tb c\n");
  CHECK(files.score(kClasses).figures.at("accuracy") == 1);
}
