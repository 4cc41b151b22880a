#include <doctest/doctest.h>

#include <sstream>

#include "support/small_finetuning.h"
#include "support/small_ranking.h"
#include "support/small_words.h"
#include "support/terminal.h"

using support::run_program;
using support::write_text;

namespace {

/// What is drawn on a terminal while finetune predicts, an example at a time, with a model as it was drawn.
std::string drawn_while_predicting(const support::TemporaryDirectory& directory, const std::string& flags) {
  return support::on_terminal(80, [&](std::FILE* out) {
    const std::string command =
        bertrand::paths::binary + "/finetune --max-seq-length 16 --threads 1 --micro-batch-size 1 --overwrite" +
        " --model " + (directory / "model").string() + " --output " + (directory / "out").string() + " " + flags +
        " >/dev/null 2>" + ::ttyname(::fileno(out));
    CHECK(std::system(command.c_str()) == 0);
  });
}

}  // namespace

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
                                                "--profile",        directory / "trace.json",
                                                "--log-format",     "jsonl"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  std::map<std::string, int> events;
  std::vector<nlohmann::json> metrics;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json object = nlohmann::json::parse(line);
    ++events[object.at("event")];
    if (object["event"] == "plan") CHECK(object.at("steps") == 3);
    if (object["event"] == "profile") CHECK(object.at("ops").at(0).at("calls") > 0);
    for (const char* const table : {"step ", "all ops "})
      if (object["event"] == "message") CHECK_FALSE(object.at("text").get<std::string>().starts_with(table));
    if (object["event"] != "step" && object["event"] != "evaluation") continue;
    object.erase("event");
    metrics.push_back(object);
  }
  CHECK(events["plan"] == 1);
  CHECK(events["profile"] == 1);
  CHECK(events["step"] == 3);
  CHECK(events["evaluation"] == 1);
  CHECK(events["message"] >= 3);
  CHECK(metrics == support::read_json_lines(directory / "run/metrics.jsonl"));
}

TEST_CASE("lines for people have the means of the losses since the line before, and all figures of an evaluation") {
  const support::SmallFinetuning setting(24);
  const auto path = [&](const std::string& name) { return (setting.directory / name).string(); };
  const auto outcome = setting.finetune("run", {"--train", path("train.csv"), "--eval", path("dev.csv"), "--batch-size",
                                                "6", "--steps", "4", "--log-every", "2", "--eval-every", "4"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  std::istringstream metrics(support::read_text(path("run/metrics.jsonl")));
  int lines = 0;
  for (std::string line; std::getline(metrics, line); ++lines) {
    const auto figures = nlohmann::ordered_json::parse(line);
    const int step = figures.at("step");
    std::string said = fmt::format("\nstep {}:", step);
    for (const auto& [name, value] : figures.items())
      if (name.starts_with("eval_")) said += fmt::format("  {} {:.4f}", name, value.get<double>());
    if (figures.contains("loss"))
      said = fmt::format("\nstep {}/4  {:.1f}%  loss {:.4f} ", step, 25.0 * step, figures.at("loss").get<double>());
    CHECK_MESSAGE(outcome.out.find(said) != std::string::npos, said);
  }
  CHECK(lines == 3);
  CHECK(outcome.out.find("  0s left  ") != std::string::npos);  // after the last step
}

TEST_CASE("under --log-format jsonl --quiet leaves out the plan, the steps and the evaluations of a training") {
  const support::SmallFinetuning setting(24);
  const auto outcome = setting.finetune(
      "run", {"--train", setting.directory / "train.csv", "--eval", setting.directory / "dev.csv", "--steps", "2",
              "--log-every", "1", "--eval-every", "2", "--log-format", "jsonl", "--quiet"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    const std::string event = nlohmann::json::parse(line).at("event");
    CHECK_MESSAGE((event != "plan" && event != "step" && event != "evaluation"), line);
  }
  CHECK(support::read_json_lines(setting.directory / "run/metrics.jsonl").size() == 3);
}

TEST_CASE("under --log-format jsonl an evaluation without training is one event with the figures that its file has") {
  const support::SmallFinetuning setting(24);
  REQUIRE(setting.train({}).code == 0);
  const auto outcome = setting.finetune(
      "out", {"--model", setting.at("run"), "--eval", setting.at("dev.csv"), "--log-format", "jsonl", "--quiet"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  nlohmann::json event;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    CHECK_MESSAGE(line.find("eval_accuracy = ") == std::string::npos, line);
    if (const auto object = nlohmann::json::parse(line); object.at("event") == "evaluation") event = object;
  }
  const auto file = nlohmann::json::parse(support::read_text(setting.at("out/eval_results.json")));
  CHECK(event.at("eval_accuracy") == file.at("eval_accuracy"));
  CHECK(event.at("eval_loss") == file.at("eval_loss"));
}

TEST_CASE("--quiet draws no progress of a training on a terminal") {
  const support::SmallFinetuning setting(24);
  const std::string directory = (setting.directory / "").string();
  const std::string drawn = support::on_terminal(80, [&](std::FILE* out) {
    const std::string command = bertrand::paths::binary +
                                "/finetune --quiet --task custom --label-column kind --steps 2 --threads 1 --model " +
                                directory + "model --train " + directory + "train.csv --output " + directory +
                                "run 2>/dev/null >" + ::ttyname(::fileno(out));
    CHECK(std::system(command.c_str()) == 0);
  });
  CHECK(drawn.find("step ") == std::string::npos);
}

TEST_CASE("--quiet draws no progress while a file is predicted, be it held or streamed") {
  const support::TemporaryDirectory directory;
  support::write_small_model(directory / "model");
  write_text(directory / "train.conll", support::small_sentences(6));
  write_text(directory / "triples.tsv", support::small_triples());
  std::string sentences, candidates;  // more than any processor predicts between two drawings of a line
  for (int i = 0; i < 1000; ++i) sentences += support::small_sentences(30, false);
  for (int i = 0; i < 1000; ++i) candidates += support::small_candidates();
  write_text(directory / "new.conll", sentences);
  write_text(directory / "new.tsv", candidates);
  const std::string d = (directory / "").string();
  for (const std::string& task :
       {"--task ner --train " + d + "train.conll --predict " + d + "new.conll",
        "--task msmarco --max-query-length 8 --train " + d + "triples.tsv --predict " + d + "new.tsv"}) {
    CAPTURE(task);
    const std::string flags = task + " --steps 1 --batch-size 2";
    CHECK(drawn_while_predicting(directory, flags).find("predicting: ") != std::string::npos);
    CHECK(drawn_while_predicting(directory, flags + " --quiet").find("predicting: ") == std::string::npos);
  }
}
