// finetune with a model as it is: what it says, and what it leaves.
#include <doctest/doctest.h>

#include <algorithm>

#include "span_setting.h"
#include "support/small_finetuning.h"
#include "support/small_heads.h"

using support::Outcome;
using support::read_text;

namespace {

nlohmann::json record_of(const std::string& run) {
  return nlohmann::json::parse(read_text(std::filesystem::path(run) / "run_config.json"));
}

}  // namespace

TEST_CASE("an evaluation and a prediction without training leave a record, and their pages lack nothing") {
  const support::SmallFinetuning setting(30);
  REQUIRE(setting.train({}).code == 0);
  const Outcome evaluated = setting.finetune("out", {"--model", setting.at("run"), "--eval", setting.at("dev.csv")});
  REQUIRE_MESSAGE(evaluated.code == 0, evaluated.error);
  CHECK(evaluated.out.find("evaluating 12 examples of " + setting.at("dev.csv") + "\n") != std::string::npos);
  const auto record = record_of(setting.at("out"));
  CHECK(record.at("program") == "finetune");
  CHECK(record.at("command").size() > 1);
  CHECK(record.at("inputs").at(0).at("path") == setting.at("dev.csv"));
  for (const char* const of_training : {"steps", "epochs", "warmup-steps"})
    CHECK_FALSE(record.at("settings").contains(of_training));
  const std::string page = read_text(setting.at("out/report.html"));
  CHECK(page.find("\"command\":\"") != std::string::npos);
  CHECK(page.find("\"command\":\"\"") == std::string::npos);
  CHECK(page.find("\"notes\":[]") != std::string::npos);

  const Outcome again = setting.finetune("out", {"--model", setting.at("run"), "--eval", setting.at("dev.csv")});
  CHECK(again.code == 2);
  CHECK(again.error.ends_with("; hint: --overwrite removes it\n"));
  CHECK(support::run_program("finetune", {"--resume", "--output", setting.at("out")}).error ==
        "error: --resume: expected a file to --train on, got none\n");
  const Outcome predicted = setting.finetune(
      "out", {"--model", setting.at("run"), "--predict", setting.at("dev.csv"), "--quiet", "--overwrite"});
  REQUIRE_MESSAGE(predicted.code == 0, predicted.error);
  CHECK_FALSE(std::filesystem::exists(setting.at("out/eval_results.json")));
  CHECK(record_of(setting.at("out")).at("command").back() == "--overwrite");
}

TEST_CASE("an evaluation with a prediction writes its record once, before its results") {
  const support::SmallFinetuning setting(30);
  REQUIRE(setting.train({}).code == 0);
  const Outcome outcome = setting.finetune(
      "out", {"--model", setting.at("run"), "--eval", setting.at("dev.csv"), "--predict", setting.at("dev.csv")});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  const auto written = [&](const char* file) { return std::filesystem::last_write_time(setting.at(file)); };
  CHECK(written("out/run_config.json") <= written("out/eval_results.json"));
}

TEST_CASE("without training a text is cut where the model's training cut it, unless a flag says otherwise") {
  const support::SmallFinetuning setting(30);
  REQUIRE(setting.train({"--max-seq-length", "7"}).code == 0);
  const auto length = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--task",     "custom",          "--label-column", "kind",
                                      "--model",    setting.at("run"), "--predict",      setting.at("dev.csv"),
                                      "--output",   setting.at("out"), "--threads",      "1",
                                      "--overwrite"};
    flags.insert(flags.end(), more.begin(), more.end());
    const Outcome outcome = support::run_program("finetune", flags);
    CHECK_MESSAGE(outcome.code == 0, outcome.error);
    return record_of(setting.at("out")).at("settings").at("max-seq-length").get<int>();
  };
  CHECK(length({}) == 7);
  CHECK(length({"--max-seq-length", "9"}) == 9);
  support::write_text(setting.at("run/run_config.json"), R"({"program": "x", "settings": {"max-seq-length": "7"}})");
  const int positions = length({});
  CHECK(positions > 9);
  support::write_text(setting.at("run/run_config.json"), R"({"program": "x", "settings": {"max-seq-length": 1000}})");
  CHECK(length({}) == positions);
  std::filesystem::remove(setting.at("run/run_config.json"));
  CHECK(length({}) == positions);
}

TEST_CASE("without training the columns are those of the run that made the model, unless one is given") {
  const support::SmallFinetuning setting(30);
  for (const std::string name : {"train", "dev"})
    support::write_text(setting.at(name + "2.csv"), "review,tag\n" + read_text(setting.at(name + ".csv")).substr(10));
  const std::string dev = setting.at("dev2.csv"), record = setting.at("run/run_config.json");
  const Outcome trained = setting.finetune("run", {"--train", setting.at("train2.csv"), "--eval", dev, "--epochs", "1",
                                                   "--text-column", "review", "--label-column", "tag"});
  REQUIRE_MESSAGE(trained.code == 0, trained.error);
  const auto apply = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--task",    "custom", "--model",    setting.at("run"),
                                      "--eval",    dev,      "--output",   setting.at("out"),
                                      "--threads", "1",      "--overwrite"};
    flags.insert(flags.end(), more.begin(), more.end());
    return support::run_program("finetune", flags);
  };
  const Outcome outcome = apply({});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out.find("of " + record + ": --text-column review, --label-column tag\n") != std::string::npos);
  CHECK(record_of(setting.at("out")).at("settings").at("label-column") == "tag");
  CHECK(apply({"--text-column", "review"}).error.find("--label-column: expected a column named label") !=
        std::string::npos);
  auto untrusted = record_of(setting.at("run"));
  untrusted["settings"]["text-column"] = nlohmann::json::array();
  support::write_text(record, untrusted.dump());
  const Outcome refused = apply({});
  CHECK(refused.code == 4);
  CHECK(refused.error ==
        "error: " + record + ": settings: text-column: expected a text, a number, true or false, got []\n");
}

TEST_CASE("columns of the model's run are taken only if the data has all that it names") {
  const support::SmallFinetuning setting(30);
  const std::string review = setting.at("review.csv"), usual = setting.at("usual.csv"),
                    lines = setting.at("lines.jsonl");
  support::write_text(review, "review,tag\n" + read_text(setting.at("train.csv")).substr(10));
  support::write_text(usual, "id,text\n7,the red fish\n");
  support::write_text(lines, "{\"extra\": 1, \"review\": \"the red fish\"}\n");
  const auto train = [&](const std::string& data, const std::vector<std::string>& columns) {
    std::vector<std::string> flags = {"--task",          "custom",  "--model",    setting.at("model"), "--output",
                                      setting.at("run"), "--train", data,         "--epochs",          "1",
                                      "--threads",       "1",       "--overwrite"};
    flags.insert(flags.end(), columns.begin(), columns.end());
    const Outcome outcome = support::run_program("finetune", flags);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  };
  const auto predict = [&](const std::string& data) {
    const Outcome outcome =
        support::run_program("finetune", {"--task", "custom", "--model", setting.at("run"), "--predict", data,
                                          "--output", setting.at("out"), "--threads", "1", "--overwrite"});
    CHECK_MESSAGE(outcome.code == 0, outcome.error);
    const std::string table = read_text(setting.at("out/predictions.tsv"));
    CHECK(std::ranges::count(table, '\n') == 2);  // the header and one row
    return outcome.out.find("run_config.json: --text-column review, --label-column tag\n") != std::string::npos;
  };
  train(review, {"--text-column", "review", "--label-column", "tag"});
  CHECK_FALSE(predict(usual));
  CHECK(predict(lines));

  const std::string plain = setting.at("plain.csv");
  support::write_text(plain, read_text(setting.at("train.csv")).substr(10));
  train(plain, {"--no-header", "--text-column", "0", "--label-column", "1"});
  CHECK_FALSE(predict(usual));
  CHECK(record_of(setting.at("out")).at("settings").at("header") == true);
}

TEST_CASE("a model of pairs that is given single texts is warned of") {
  const support::SmallFinetuning setting(30);
  const std::string pairs = setting.at("pairs.csv"), single = setting.at("single.csv");
  support::write_text(pairs, "body,title,kind\nthe red fish,fish,a\nthe blue bird,bird,b\n");
  support::write_text(single, "body,kind\nthe red fish,a\n");
  const auto run = [&](const std::string& output, const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--text-column", "body", "--overwrite"};
    flags.insert(flags.end(), more.begin(), more.end());
    const Outcome outcome = setting.finetune(output, flags);
    CHECK_MESSAGE(outcome.code == 0, outcome.error);
    return outcome.error;
  };
  run("run", {"--train", pairs, "--text-pair-column", "title", "--epochs", "1"});
  const std::string model = setting.at("run");
  CHECK(run("out", {"--model", model, "--predict", single}) ==
        "warning: " + single +
            ": columns: expected pairs of texts as the model was trained on, with --text-pair-column title, got single "
            "texts\n");
  CHECK(run("out", {"--model", model, "--predict", pairs, "--text-pair-column", "title"}) == "");
  CHECK(run("new", {"--model", model, "--train", pairs, "--epochs", "1"}) == "");
}

TEST_CASE("without training the lengths of questions are those of the run that made the model") {
  const support::SpanSetting setting;
  REQUIRE(setting.run("run", {"--epochs", "1"}).code == 0);
  const auto apply = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {
        "--task",      "squad2",   "--model",         setting.at("run"), "--eval", setting.at("dev.json"),
        "--overwrite", "--output", setting.at("out"), "--threads",       "1"};
    flags.insert(flags.end(), more.begin(), more.end());
    return support::run_program("finetune", flags);
  };
  const std::string record = setting.at("run/run_config.json");
  const Outcome outcome = apply({});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out.find("of " + record + ": --max-query-length 4, --doc-stride 4\n") != std::string::npos);
  // 8 tokens are enough for a query of 4, 7 are not; the default of it is too long for both.
  CHECK(apply({"--max-seq-length", "8"}).code == 0);
  CHECK(apply({"--max-seq-length", "7"}).error ==
        "error: --max-seq-length: expected more than --max-query-length 64 and 3, got 7\n");
  auto untrusted = record_of(setting.at("run"));
  untrusted["settings"]["doc-stride"] = 70000;
  support::write_text(record, untrusted.dump());
  const Outcome refused = apply({});
  CHECK(refused.code == 4);
  CHECK(refused.error ==
        "error: " + record + ": settings: --doc-stride: expected a whole number, 0 to 65536, got \"70000\"\n");
}

TEST_CASE("without training words have the layout of the file, and a stride that the length has room for") {
  const support::SmallFinetuning setting(30);
  const std::string rows = setting.at("rows.tsv"), words = setting.at("words.conll");
  support::write_text(rows, "the red fish\tO O B-A\nthe blue bird\tO O B-A\n");
  support::write_text(words, "the O\nred O\nfish B-A\n\n");
  const auto run = [&](const std::string& output, const std::vector<std::string>& more) {
    std::vector<std::string> flags = {"--task", "ner", "--output", setting.at(output), "--threads", "1", "--overwrite"};
    flags.insert(flags.end(), more.begin(), more.end());
    const Outcome outcome = support::run_program("finetune", flags);
    CHECK_MESSAGE(outcome.code == 0, outcome.error);
    return outcome.out;
  };
  run("run", {"--model", setting.at("model"), "--train", rows, "--layout", "rows", "--doc-stride", "6", "--epochs", "1",
              "--max-seq-length", "16"});
  const std::string record = setting.at("run/run_config.json");
  const auto apply = [&](const std::string& length) {
    return run("out", {"--model", setting.at("run"), "--eval", words, "--max-seq-length", length});
  };
  CHECK(apply("9").find("of " + record + ": --doc-stride 6\n") != std::string::npos);
  CHECK(apply("8").find("of " + record) == std::string::npos);
}

TEST_CASE("the separator of several labels goes with the columns of the model's run, and may be given without --kind") {
  const support::SmallFinetuning setting(30);
  const std::string data = setting.at("several.csv");
  std::string text = "text,kind\n";
  for (int i = 0; i < 10; ++i) text += "the red fish,a;b\nthe blue bird,b\n";
  support::write_text(data, text);
  std::vector<std::string> training = {"--train", data, "--epochs", "1", "--kind", "multi-label", "--overwrite"};
  const std::string doubt =
      "warning: " + data + ": labels: \"a;b\" is one of them: is --label-separator the right one?\n";
  CHECK(setting.finetune("run", training).error == doubt);
  training.insert(training.end(), {"--label-separator", ";"});
  const Outcome trained = setting.finetune("run", training);
  CHECK(trained.error.find(doubt) == std::string::npos);
  REQUIRE_MESSAGE(trained.code == 0, trained.error);
  const Outcome taken = support::run_program("finetune", {"--task", "custom", "--model", setting.at("run"), "--eval",
                                                          data, "--output", setting.at("out"), "--threads", "1"});
  CHECK_MESSAGE(taken.code == 0, taken.error);
  CHECK(taken.out.find(": --label-column kind, --label-separator ;\n") != std::string::npos);
  std::vector<std::string> flags = {"--model", setting.at("run"), "--eval", data, "--overwrite"};
  CHECK(setting.finetune("out", flags).code == 3);  // a column is given, and so are all
  flags.insert(flags.end(), {"--label-separator", ";"});
  const Outcome outcome = setting.finetune("out", flags);
  CHECK_MESSAGE(outcome.code == 0, outcome.error);
  flags.back() = "|";
  CHECK(setting.finetune("out", flags).error ==
        "error: " + data + ":2: label: expected one of {a,b}, got \"a;b\"; hint: --label-separator is what stands " +
            "between the labels of a row\n");
}

TEST_CASE("a model with one label gives each row the probability that predict gives its text") {
  const support::SmallFinetuning setting(30);
  support::write_small_classifier(setting.at("one"), {"LABEL_0"});
  support::write_text(setting.at("texts.csv"), "text\nred fish\nbird\n");
  support::write_text(setting.at("texts.txt"), "red fish\nbird\n");
  const Outcome outcome =
      support::run_program("finetune", {"--task", "custom", "--model", setting.at("one"), "--predict",
                                        setting.at("texts.csv"), "--output", setting.at("out"), "--threads", "1"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  const std::string table = read_text(setting.at("out/predictions.tsv"));
  std::string lines =
      support::run_program("predict", {"--model", setting.at("one"), "--input", setting.at("texts.txt")}).out;
  CHECK(lines.find("LABEL_0") != std::string::npos);
  for (std::size_t at = 0; (at = lines.find("\"LABEL_0\":", at)) != std::string::npos;) {
    at += 10;
    const std::string score = lines.substr(at, lines.find_first_of(",}", at) - at);
    CHECK(score != "1.0");
    CHECK_MESSAGE(table.find(score) != std::string::npos, score);
  }
}
