// What stands in place of a run: --validate-only, --dry-run, --overfit-batch; and runs that keep less.
#include <doctest/doctest.h>

#include <sstream>

#include "io/units.h"
#include "support/small_model.h"
#include "support/small_squad.h"

using support::Outcome;
using support::read_text;
using support::run_program;
using support::write_text;

namespace {

/// A model and a file of 36 rows of two labels.
struct Setting {
  support::TemporaryDirectory directory;
  Setting() {
    support::write_small_model(directory / "model");
    write_text(directory / "train.csv", support::animals(36));
  }
  Outcome run(const std::vector<std::string>& flags) const {
    return run_program(
        "finetune",
        support::with_defaults({"--task", "custom", "--label-column", "kind", "--max-seq-length", "16", "--model",
                                directory / "model", "--batch-size", "6", "--learning-rate", "0.01", "--threads", "1"},
                               flags));
  }
  std::string path(const std::string& name) const { return (directory / name).string(); }
  Outcome train(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), {"--train", path("train.csv")});
    return run(flags);
  }
  /// Of a task without columns of its own.
  Outcome validate(const std::string& task, const std::string& file, const std::vector<std::string>& more) const {
    std::vector<std::string> flags = {"--task",           task, "--model",   path("model"), "--train",        file,
                                      "--max-seq-length", "16", "--threads", "1",           "--validate-only"};
    flags.insert(flags.end(), more.begin(), more.end());
    return run_program("finetune", flags);
  }
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("--validate-only names every bad row with its line and trains nothing") {
  const Setting setting;
  write_text(setting.directory / "bad.csv",
             "text,kind\nred fish,fish\n,bird\nblue bird,bird\none,two,three\ngreen fish,\nred bird,bird\n");
  const Outcome outcome = setting.run({"--train", setting.path("bad.csv"), "--validate-only"});
  CHECK(outcome.code == 3);
  const std::string file = setting.path("bad.csv");
  CHECK(outcome.error == file + ":3: text: expected some text, got none\n" + file +
                             ":5: columns: expected 2 as in line 1, got 3\n" + file +
                             ":6: label: expected one, got an empty cell\n" +
                             "error: data: expected rows as they should be, got 3 bad ones\n");
  CHECK(has(outcome.out, file + ": 3 examples of 4 tokens\n"));

  const Outcome good = setting.train({"--eval", setting.path("train.csv"), "--validate-only"});
  CHECK(good.code == 0);
  CHECK(has(good.out, "labels: 2, {bird,fish}\ncolumns: text; kind\n"));
  CHECK(good.out.ends_with("settings and data can be used; nothing was trained and nothing is written\n"));
}

TEST_CASE("of very many bad rows the first 20 are shown") {
  const Setting setting;
  std::string text = support::animals(4);
  for (int i = 0; i < 30; ++i) text += ",fish\n";
  write_text(setting.directory / "bad.csv", text);
  const Outcome outcome = setting.run({"--train", setting.path("bad.csv"), "--validate-only"});
  CHECK(outcome.code == 3);
  CHECK(std::count(outcome.error.begin(), outcome.error.end(), '\n') == 21);
  CHECK(has(outcome.error, "got 30 bad ones, the first 20 of them above\n"));
}

TEST_CASE("labels that no one means are doubted") {
  const Setting setting;
  std::string swapped = "text,kind\n";
  for (int i = 0; i < 6; ++i) swapped += "red fish," + std::string(1, static_cast<char>('a' + i)) + "\n";
  write_text(setting.directory / "swapped.csv", swapped);
  const Outcome many = setting.run({"--train", setting.path("swapped.csv"), "--plan"});
  CHECK(many.code == 0);
  CHECK(has(many.error, "swapped.csv: 6 labels in 6 rows: is --label-column the right one?\n"));
  write_text(setting.directory / "case.csv", "text,kind\nred fish,A\nblue bird,a\ntwo,A\nthe,a\n");
  const Outcome cases = setting.run({"--train", setting.path("case.csv"), "--plan"});
  CHECK(has(cases.error, "the labels \"A\" and \"a\" differ in case alone: they are two classes\n"));
  write_text(setting.directory / "scores.csv", "text,kind\nred fish,1\nblue bird,2.5\ntwo,1\nthe,2.5\n");
  const Outcome scores = setting.run({"--train", setting.path("scores.csv"), "--plan"});
  CHECK(has(scores.error, "scores.csv: all labels are numbers, 2.5 among them: is it --kind regression?\n"));
  const Outcome numbers =
      setting.run({"--train", setting.path("scores.csv"), "--kind", "regression", "--validate-only"});
  CHECK(numbers.code == 0);
  CHECK_FALSE(has(numbers.out, "labels: "));  // LABEL_0 stands for the number in config.json alone
  CHECK(setting.train({"--plan"}).error.empty());
}

TEST_CASE("quotes of a spreadsheet in a .tsv are told before anything is trained on them") {
  const Setting setting;
  const std::string rows = "text\tkind\nred fish\tA\n\"the \"\"blue\"\" bird\"\tB\n";
  write_text(setting.directory / "quoted.tsv", rows);
  const Outcome quoted = setting.run({"--train", setting.path("quoted.tsv"), "--plan"});
  CHECK(quoted.code == 0);
  CHECK(has(quoted.error, "quoted.tsv:3: a cell is quoted as spreadsheets do it, and .tsv keeps its quotes; "));
}

TEST_CASE("weights that are not read are refused before the data is") {
  const Setting setting;
  std::filesystem::remove(setting.directory / "model/model.safetensors");
  write_text(setting.directory / "model/pytorch_model.bin", "x");
  write_text(setting.directory / "bad.csv", "text,kind\n,x\n");
  const Outcome outcome = setting.run({"--train", setting.path("bad.csv"), "--plan"});
  CHECK(outcome.code == 4);
  CHECK(has(outcome.error, "pytorch_model.bin: pickled weights can run code and are not read"));
}

TEST_CASE("a model by its name on a hub is answered with how to fetch it") {
  const Setting setting;
  const Outcome outcome = setting.train({"--model", "someone/bert-small", "--plan"});
  CHECK(outcome.code == 4);
  CHECK(has(outcome.error,
            "someone/bert-small: expected a model directory or a checkpoint, got nothing there; hint: "
            "nothing is downloaded"));
}

TEST_CASE("--validate-only names every bad line of words") {
  const Setting setting;
  const std::string words = setting.path("words.conll"), other = setting.path("eval.conll");
  write_text(words, "red O\nfish B-X\n\nblue\nbird O\ngreen  O x\n\nthe O\n");
  write_text(other, "red O\nbird B-Y\nfish B-Z\n");
  const Outcome lines = setting.validate("ner", words, {"--eval", other});
  CHECK(lines.code == 3);
  CHECK(lines.error == words + ":4: columns: expected 2 as in line 1, got 1\n" + words +
                           ":6: columns: expected 2 as in line 1, got 3\n" + other +
                           ":2: label: expected one of {B-X,O}, got \"B-Y\"\n" + other +
                           ":3: label: expected one of {B-X,O}, got \"B-Z\"\n" +
                           "error: data: expected rows as they should be, got 4 bad ones\n");
  CHECK(has(lines.out, words + ": 3 examples of 3 to 4 tokens\n"));
  write_text(words, "fish\n");
  CHECK(setting.validate("ner", words, {}).error ==
        "error: " + words + ":1: columns: expected a word and a label, got 1 column\n");
  write_text(words, "red fish\tO B\n\n\tO\nblue bird\tO\nred\tB\n");
  CHECK(setting.validate("ner", words, {"--layout", "rows"}).error ==
        words + ":2: words: expected a sentence, got an empty line\n" + words +
            ":4: labels: expected 2, one for each word, got 1\n" +
            "error: data: expected rows as they should be, got 2 bad ones\n");
}

TEST_CASE("--validate-only names every bad line of triples and candidates") {
  const Setting setting;
  const std::string triples = setting.path("triples.tsv"), candidates = setting.path("candidates.tsv");
  write_text(triples, "red\tfish\tbird\nred\t\tbird\nred\tfish\nblue\tbird\tfish\n");
  write_text(candidates, "1\t7\tred\tfish\n1\t8\tred\n");
  const std::vector<std::string> ranking = {"--max-query-length", "4", "--predict", candidates};
  const std::string of_triples = "query, relevant passage and other passage";
  CHECK(setting.validate("msmarco", triples, ranking).error ==
        triples + ":2: column 2: expected " + of_triples + " with a text each, got an empty one\n" + triples +
            ":3: columns: expected " + of_triples + " between tabs, got 2 of them\n" + candidates +
            ":2: columns: expected query id, passage id, query and passage between tabs, got 3 of them\n" +
            "error: data: expected rows as they should be, got 3 bad ones\n");
  write_text(triples, "red\n");
  CHECK(setting.validate("msmarco", triples, ranking).error ==
        "error: " + triples + ":1: columns: expected " + of_triples +
            " between tabs, got 1 of them; no line of the file is a triple\n");
}

TEST_CASE("--validate-only names every bad question") {
  const Setting setting;
  const std::string squad = setting.path("squad.json");
  auto data = support::small_squad(6, true);
  auto& paragraphs = data.at("data").at(0).at("paragraphs");
  paragraphs.at(0).at("qas").at(0).erase("is_impossible");
  paragraphs.at(1).at("qas").at(0).at("answers").clear();
  write_text(squad, data.dump());
  const Outcome answers = setting.validate("squad2", squad, {"--max-query-length", "4"});
  CHECK(answers.code == 3);
  CHECK(answers.error == squad + ": question q0: is_impossible: expected true or false, as in SQuAD 2.0, got none\n" +
                             squad + ": question q1: answers: expected exactly one to train on, got 0\n" +
                             "error: data: expected rows as they should be, got 2 bad ones\n");
}

TEST_CASE("a dry run makes a step in the memory that was planned and leaves nothing behind") {
  const Setting setting;
  support::write_small_model(setting.directory / "model", 4);  // layers, so that recomputing saves much
  std::vector<double> taken;
  for (const char* recompute : {"0", "1"}) {
    CAPTURE(recompute);
    const Outcome outcome = setting.train({"--eval-split", "0.25", "--dry-run", "--output", setting.path("run"),
                                           "--quiet", "--batch-size", "24", "--recompute-activations", recompute});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    CHECK(has(outcome.out, "dry run: a step of the longest examples took "));
    CHECK_FALSE(std::filesystem::exists(setting.directory / "run"));
    const auto bytes_between = [&](const std::string& before, const std::string& after) {
      const std::size_t begin = outcome.out.find(before) + before.size();
      return static_cast<double>(
          bertrand::io::parse_bytes("memory", outcome.out.substr(begin, outcome.out.find(after, begin) - begin)));
    };
    const double bytes = bytes_between("took ", " of memory"), plan = bytes_between("memory, ", " were planned");
    CHECK(bytes <= 1.01 * plan);
    CHECK(bytes >= 0.5 * plan);
    taken.push_back(bytes);
  }
  CHECK(taken[1] < 0.8 * taken[0]);
  const Outcome shared = setting.train({"--dry-run", "--quiet", "--replicas", "2", "--micro-batch-size", "3"});
  REQUIRE_MESSAGE(shared.code == 0, shared.error);
  CHECK(shared.out.find("dry run: ") != std::string::npos);
  CHECK(shared.out.find("dry run: ") == shared.out.rfind("dry run: "));  // the first replica speaks for all
}

TEST_CASE("a batch that is learnt by heart is told from one that is not, and no model is written") {
  const Setting setting;
  const Outcome learnt = setting.train({"--overfit-batch", "--output", setting.path("run")});
  REQUIRE_MESSAGE(learnt.code == 0, learnt.error);
  CHECK(has(learnt.out, "  run         100 steps of the first batch, about 600 examples, "));
  for (const char* line : {"  saves ", "  evaluation ", "  best model "}) CHECK_FALSE(has(learnt.out, line));
  CHECK(has(learnt.out, "learnt by heart: the loss of the first 6 examples went from 0."));
  CHECK_FALSE(std::filesystem::exists(setting.directory / "run"));
  const int steps = std::stoi(learnt.out.substr(learnt.out.rfind(" in ") + 4));
  const Outcome almost = setting.train({"--overfit-batch", "--steps", std::to_string(steps - 1)});
  CHECK_MESSAGE(almost.code == 0, almost.error);
  CHECK(has(almost.out, "being learnt: the loss of the first 6 examples went from 0."));

  const Outcome not_learnt =
      setting.train({"--overfit-batch", "--learning-rate", "1e-9", "--steps", "5", "--log-every", "2"});
  CHECK(not_learnt.code == 6);
  for (const int step : {1, 2, 3, 4, 5}) CHECK(has(not_learnt.out, fmt::format("step {}/5", step)) == (step % 2 == 0));
  CHECK(has(not_learnt.out, " left\n"));  // the time, from the second step on
  CHECK(has(not_learnt.error, "error: --overfit-batch: not learnt: "));
  CHECK(has(not_learnt.error, "hint: usually --learning-rate is far too low"));
}

TEST_CASE("a batch is learnt in half types on replicas as on one, and --quiet leaves the result alone") {
  const Setting setting;
  const auto learn = [&](const std::string& replicas) {
    const Outcome outcome = setting.train({"--overfit-batch", "--precision", "bf16", "--micro-batch-size", "3",
                                           "--log-every", "1", "--quiet", "--replicas", replicas});
    CHECK_MESSAGE(outcome.code == 0, outcome.error);
    CHECK_FALSE(has(outcome.out, "step 1/"));
    CHECK(has(outcome.out, "learnt by heart: "));
    return outcome.out;
  };
  CHECK(learn("1") == learn("2"));
}

TEST_CASE("a batch is learnt by heart without --label-smoothing, whose least loss is not 0") {
  const Setting setting;
  const auto figures = [&](const std::string& smoothing) {
    const Outcome outcome = setting.train({"--overfit-batch", "--label-smoothing", smoothing});
    CHECK_MESSAGE(outcome.code == 0, outcome.error);
    return outcome.out.substr(outcome.out.find("learnt by heart: "));
  };
  CHECK(figures("0.4") == figures("0"));
  CHECK(
      setting.train({"--overfit-batch", "--label-smoothing", "0.4", "--learning-rate", "1e-9", "--steps", "5"}).code ==
      6);
  write_text(setting.directory / "sizes.csv", "text,size\nred fish,1\nblue bird,2\n");
  const Outcome sizes = setting.run({"--train", setting.path("sizes.csv"), "--kind", "regression", "--label-column",
                                     "size", "--overfit-batch", "--label-smoothing", "0.4"});
  CHECK(sizes.error == "error: --class-weights, --label-smoothing: expected with classes, got --kind regression\n");
}

TEST_CASE("a batch whose loss becomes no number is not learnt") {
  const Setting setting;
  for (const std::string precision : {"f32", "f16"}) {  // in f16 such a step is left out, and the next one is tried
    CAPTURE(precision);
    const Outcome outcome = setting.train(
        {"--overfit-batch", "--precision", precision, "--learning-rate", "1e6", "--warmup-steps", "0", "--steps", "5"});
    CAPTURE(outcome.out);
    CHECK(outcome.code == 6);
  }
}

TEST_CASE("under --log-format jsonl a loss that is no number leaves every line an object") {
  const Setting setting;
  const Outcome outcome =
      setting.train({"--overfit-batch", "--precision", "f16", "--learning-rate", "1e6", "--warmup-steps", "0",
                     "--steps", "5", "--log-every", "1", "--log-format", "jsonl"});
  CHECK(outcome.code == 6);
  CHECK(has(outcome.out, "\"loss\":null"));
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(nlohmann::json::accept(line), line);
}

TEST_CASE("only one thing stands in place of a run, and none of them goes on with one") {
  const Setting setting;
  const Outcome two = setting.train({"--plan", "--dry-run"});
  CHECK(two.code == 2);
  CHECK(two.error == "error: --plan, --dry-run: expected one of them, got 2\n");
  const Outcome resumed = setting.train({"--overfit-batch", "--resume"});
  CHECK(resumed.code == 2);
  CHECK(has(resumed.error, "--overfit-batch: expected without --resume, got both"));
}

TEST_CASE("a bound of memory that a plan breaks is refused with the micro-batch that keeps it") {
  const Setting setting;
  std::string text = "text,kind\n";
  for (int i = 0; i < 5000; ++i) text += support::animals(2).substr(10);
  write_text(setting.directory / "many.csv", text);
  const auto run = [&](const std::string& memory, const std::string& micro_batch) {
    return setting.run({"--train", setting.path("many.csv"), "--batch-size", "10000", "--micro-batch-size", micro_batch,
                        "--steps", "1", "--output", setting.path("run"), "--overwrite", "--memory", memory});
  };
  const Outcome plan = run("100GB", "10000");
  const std::size_t at = plan.out.find("at most ", plan.out.find("process")) + 8;  // "at most 112 MB on the host"
  const std::string bound = std::to_string(std::stoi(plan.out.substr(at)) - 20) + "MB";
  const Outcome tight = run(bound, "10000");
  CHECK(tight.code == 7);
  CHECK(has(tight.error, "error: --memory: expected at least "));
  const Outcome none = run("1MB", "10000");
  CHECK(none.code == 7);
  CHECK(has(none.error, "B, which the process has before it trains, got 1MB\n"));
  const std::size_t hint = tight.error.find("hint: --micro-batch-size ");
  REQUIRE_MESSAGE(hint != std::string::npos, tight.error);
  const std::string fitting = std::to_string(std::stoi(tight.error.substr(hint + 25)));
  const Outcome fits = run(bound, fitting);
  CHECK_MESSAGE(fits.code == 0, fits.error);
  const auto planned = [&](const std::string& memory) {
    return setting.run({"--train", setting.path("many.csv"), "--batch-size", "10000", "--micro-batch-size", "10000",
                        "--steps", "1", "--memory", memory, "--plan"});
  };
  const Outcome too_much = planned(bound);
  CHECK(too_much.code == 7);
  CHECK(has(too_much.out, "predicted of "));
  CHECK(has(too_much.error, "error: --memory: expected at least "));
  const Outcome elsewhere = planned("500TB");  // more than there is here
  CHECK(elsewhere.code == 0);
  CHECK(has(elsewhere.out, " predicted of 500 TB available"));
  const Outcome wrong = run("much", "4");
  CHECK(wrong.code == 2);
  CHECK(has(wrong.error, "--memory: expected a number of bytes as 8GiB, 500MB or 1000000, got \"much\""));
}

TEST_CASE("a micro-batch that is larger than the batch is warned of, and one as large is not") {
  const Setting setting;
  const auto warning = [&](const std::string& size) {
    return setting.train({"--plan", "--micro-batch-size", size}).error;
  };
  CHECK(warning("6").empty());
  CHECK(warning("7") == "warning: --micro-batch-size: a step has 6 examples, so 7 are never computed at once\n");
}

TEST_CASE("a run that keeps its model alone leaves no checkpoint and is not gone on with") {
  const Setting setting;
  const Outcome outcome =
      setting.train({"--output", setting.path("run"), "--steps", "3", "--save-every", "1", "--save-model-only"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(has(outcome.out, "saves       every 1 step, and 10 minutes after the save before\n"));
  for (const auto& entry : std::filesystem::directory_iterator(setting.directory / "run"))
    CHECK_FALSE(entry.path().filename().string().starts_with("checkpoint-"));
  CHECK(std::filesystem::exists(setting.directory / "run/model.safetensors"));
  const Outcome resumed = run_program("finetune", {"--resume", "--output", setting.path("run"), "--steps", "5"});
  CHECK(resumed.code == 2);
  CHECK(has(resumed.error, "got none, as the run ended with --save-model-only; hint: its model can begin another run"));
}

TEST_CASE("a row without text is predicted as nothing if bad rows are reported, and ends the run if not") {
  const Setting setting;
  REQUIRE(setting.train({"--output", setting.path("run"), "--epochs", "10"}).code == 0);
  write_text(setting.directory / "new.csv", "text\nred fish\n\"\"\nblue bird\n");
  const auto predict = [&](const std::string& on_bad) {
    return run_program("finetune",
                       {"--task", "custom", "--model", setting.path("run"), "--predict", setting.path("new.csv"),
                        "--output", setting.path("out"), "--overwrite", "--on-bad-line", on_bad, "--threads", "1"});
  };
  const Outcome none = setting.train({"--output", setting.path("none"), "--on-bad-line", "report"});
  CHECK(none.code == 2);
  CHECK(has(none.error, "--on-bad-line: expected with --predict, got no --predict\n"));
  const auto refusal = [&] {
    const Outcome outcome = predict("fail");
    CHECK(outcome.code == 3);
    return outcome.error.substr(outcome.error.find("new.csv"));
  };
  const std::string hint = "; hint: --on-bad-line report keeps the row without a prediction\n";
  CHECK(refusal() == "new.csv:3: text: expected some text, got none" + hint);
  const Outcome reports = predict("report");
  REQUIRE_MESSAGE(reports.code == 0, reports.error);
  CHECK(has(reports.error, "new.csv:3: text: expected some text, got none; 1 row of predictions.tsv without a "));
  const std::string table = read_text(setting.directory / "out/predictions.tsv");
  CHECK(table.starts_with("id\tprediction\tprobability_bird\tprobability_fish\tprobability\ttext\n0\tfish\t"));
  CHECK(has(table, "\tred fish\n1\t\t\t\t\t\n2\tbird\t"));
  CHECK(table.ends_with("\tblue bird\n"));

  write_text(setting.directory / "new.csv", "text\nred fish\n\xE2\x80\x8B\nblue bird\n");  // of no width
  CHECK(refusal() == "new.csv:3: text: expected at least one token, got none" + hint);
  write_text(setting.directory / "new.csv", "text\nred fish\nblue,bird\n\"\"\n");
  CHECK(refusal() == "new.csv:3: columns: expected 1 as in line 1, got 2" + hint);
}

TEST_CASE("standard input is not predicted here, and the program that does it is named") {
  const Setting setting;
  const Outcome outcome = run_program(
      "finetune", {"--task", "custom", "--model", setting.path("model"), "--predict", "-", "--output", "x"});
  CHECK(outcome.code == 2);
  CHECK(outcome.error == "error: --predict: expected a regular file, got standard input; hint: predict --model " +
                             setting.path("model") + " reads a pipe or standard input and answers line by line\n");
}
