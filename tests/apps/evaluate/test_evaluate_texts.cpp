// evaluate's commands for tables of texts, classes and scores.
#include <doctest/doctest.h>

#include "support/program.h"

using support::run_program;
using support::write_text;

TEST_CASE("classes and scores that finetune has predicted are scored as its evaluation does") {
  const support::TemporaryDirectory directory;
  const std::string data = directory / "data.csv", predictions = directory / "predictions.tsv";
  const auto run = [&](const std::string& command, const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {command, "--data", data, "--predictions", predictions};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program("evaluate", arguments);
  };
  write_text(data, "text,kind,n\na,bird,1\nb,fish,2\n");
  write_text(predictions, "id\tprediction\tprobability_bird\tprobability_fish\n0\tbird\t1\t0\n1\tfish\t0\t1\n");
  CHECK(run("classes", {"--label-column", "kind"}).out == "accuracy = 1\nf1 = 1\nrows = 2\n");
  CHECK(run("classes", {"--label-column", "kind", "--json"}).out == "{\"accuracy\": 1.0, \"f1\": 1.0, \"rows\": 2}\n");
  CHECK(
      run("classes", {"--label-column", "kind", "--table"}).out.starts_with("label\tprecision\trecall\tf1\tsupport\n"));
  CHECK(run("classes", {"--task", "stsb"}).error ==
        "error: --task: expected one of classification, got stsb, one of regression\n");
  CHECK(run("classes", {"--task", "mrpc", "--no-header"}).error ==
        "error: --task: expected custom with flags for columns, got mrpc\n");
  write_text(predictions, "id\tprediction\tprobability_a\tprobability_a\n0\ta\t1\t0\n1\ta\t0\t1\n");
  CHECK(run("classes").error == "error: " + predictions + ":1: labels: expected different names, got \"a\" twice\n");
  write_text(predictions, "id\tprediction\n0\t0.5\n1\t1.5\n");
  CHECK(run("scores", {"--label-column", "n"}).out.find("\nrows = 2\nspearman = ") != std::string::npos);
}

TEST_CASE("the columns that evaluate reads are those of their flags") {
  const support::TemporaryDirectory directory;
  const std::string data = directory / "data.csv", predictions = directory / "predictions.tsv";
  write_text(data, "key,title,body,kind,n\nx,a,b,bird,1\ny,c,d,fish,2\n");
  for (const auto& [command, label, rows, figures] :
       {std::tuple("classes", "kind",
                   "id\tprediction\tprobability_bird\tprobability_fish\nx\tbird\t1\t0\ny\tfish\t0\t1\n",
                   "accuracy = 1\nf1 = 1\nrows = 2\n"),
        {"scores", "n", "id\tprediction\nx\t0.5\ny\t1.5\n", "rows = 2\n"}}) {
    CAPTURE(command);
    write_text(predictions, rows);
    const auto with = [&](const std::vector<std::string>& more) {
      auto flags = support::with_defaults({"--data", data, "--predictions", predictions, "--text-column", "title",
                                           "--text-pair-column", "body", "--label-column", label, "--id-column", "key"},
                                          more);
      flags.insert(flags.begin(), command);
      return run_program("evaluate", flags);
    };
    const support::Outcome outcome = with({"--header"});
    CHECK(outcome.code == 0);
    CHECK(outcome.out.find(figures) != std::string::npos);
    CHECK(with({"--id-column", "n"}).error.find(": id: expected ") != std::string::npos);
    for (const std::string flag : {"--text-column", "--text-pair-column", "--label-column", "--id-column"}) {
      const std::string expected = "error: " + data + ":1: " + flag + ": expected a column \"none\", got ";
      CHECK(with({flag, "none"}).error.starts_with(expected));
      CHECK(with({flag, "none", "--no-header"}).code == 3);
    }
    CHECK(with({"--no-header"}).error.find("got 5 columns without names") != std::string::npos);
  }
}
