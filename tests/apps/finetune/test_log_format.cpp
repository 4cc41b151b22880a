#include <doctest/doctest.h>

#include <sstream>

#include "support/small_model.h"

using support::run_program;
using support::write_text;

TEST_CASE("under --log-format jsonl every line of standard output is an object, as metrics.jsonl has it") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(directory / "train.csv", support::animals(24));
  const auto outcome = run_program("finetune", {"--task",           "custom",
                                                "--label-column",   "kind",
                                                "--max-seq-length", "16",
                                                "--model",          directory / "model",
                                                "--train",          directory / "train.csv",
                                                "--eval-split",     "0.25",
                                                "--predict",        directory / "train.csv",
                                                "--batch-size",     "6",
                                                "--epochs",         "1",
                                                "--log-every",      "1",
                                                "--threads",        "1",
                                                "--output",         directory / "run",
                                                "--log-format",     "jsonl"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  std::map<std::string, int> events;
  std::vector<nlohmann::json> metrics;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json object = nlohmann::json::parse(line);
    ++events[object.at("event")];
    if (object["event"] == "plan") CHECK(object.at("steps") == 3);
    if (object["event"] == "message") CHECK(object.at("text").is_string());
    if (object["event"] != "step" && object["event"] != "evaluation") continue;
    object.erase("event");
    metrics.push_back(object);
  }
  CHECK(events["plan"] == 1);
  CHECK(events["step"] == 3);
  CHECK(events["evaluation"] == 1);
  CHECK(events["message"] >= 3);
  CHECK(metrics == support::read_json_lines(directory / "run/metrics.jsonl"));
}
