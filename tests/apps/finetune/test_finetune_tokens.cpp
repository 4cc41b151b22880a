// Labels for words, from the flags to the files.
#include <doctest/doctest.h>

#include <sstream>

#include "support/gzip.h"
#include "support/small_model.h"
#include "support/small_words.h"

using support::Outcome;
using support::read_text;
using support::run_program;
using support::write_text;

namespace {

using Flags = std::vector<std::string>;

struct Setting {
  support::TemporaryDirectory directory;
  Setting() {
    support::write_small_model(at("model"));
    write_text(at("train.conll"), support::small_sentences(30));
    write_text(at("dev.conll"), support::small_sentences(13));
    write_text(at("new.conll"), support::small_sentences(7, false));
  }
  std::string at(const std::string& name) const { return directory / name; }
  std::string file(const std::string& name) const { return read_text(directory / name); }
  Outcome apply(const std::string& output, const Flags& flags) const {
    return run_program("finetune", support::with_defaults({"--task", "ner", "--max-seq-length", "16", "--threads", "1",
                                                           "--output", at(output), "--model", at("model")},
                                                          flags));
  }
  Outcome train(const std::string& output, const Flags& flags) const {
    return apply(output, support::with_defaults(
                             {"--train", at("train.conll"), "--batch-size", "6", "--learning-rate", "0.01"}, flags));
  }
  nlohmann::json results(const std::string& run) const {
    return nlohmann::json::parse(file(run + "/eval_results.json"));
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// The rows of predictions.tsv as `word gold predicted`, as the program evaluate reads them.
std::string conll_of(const std::string& predictions) {
  std::string text, sentence;
  std::istringstream in(predictions);
  std::string line;
  std::getline(in, line);
  while (std::getline(in, line)) {
    std::vector<std::string> cells;
    std::istringstream cut(line);
    for (std::string cell; std::getline(cut, cell, '\t');) cells.push_back(cell);
    if (cells.at(0) != sentence && !sentence.empty()) text += '\n';
    sentence = cells[0];
    text += cells[1] + '\t' + cells.at(4) + '\t' + cells[2] + '\n';
  }
  return text;
}

/// Sentences of words and labels as JSON lines.
std::string json_of(const std::string& conll) {
  std::string text;
  std::vector<std::string> words, tags;
  for (const std::string& line : lines_of(conll)) {
    if (line.empty()) {
      text += nlohmann::json({{"tokens", words}, {"ner_tags", tags}}).dump() + '\n';
      words.clear(), tags.clear();
      continue;
    }
    words.push_back(line.substr(0, line.find('\t')));
    tags.push_back(line.substr(line.find('\t') + 1));
  }
  return text;
}

}  // namespace

TEST_CASE("entities are learnt, and the model, the figures and the predictions name the labels") {
  const Setting setting;
  const Outcome outcome =
      setting.train("run", {"--eval", setting.at("dev.conll"), "--predict", setting.at("dev.conll"), "--epochs", "15"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out.find("classifier.weight") != std::string::npos);  // the load report: what was initialised
  CHECK(outcome.out.find("  eval_illegal_tags 0  ") != std::string::npos);
  const auto config = nlohmann::json::parse(setting.file("run/config.json"));
  CHECK(config.at("architectures") == nlohmann::json({"BertForTokenClassification"}));
  CHECK(config.at("id2label") == nlohmann::json({{"0", "B-A"}, {"1", "B-B"}, {"2", "I-A"}, {"3", "O"}}));
  CHECK(config.at("label2id") == nlohmann::json({{"B-A", 0}, {"B-B", 1}, {"I-A", 2}, {"O", 3}}));
  for (const char* key : {"eval_precision", "eval_recall", "eval_f1", "eval_accuracy"})
    CHECK(setting.results("run").at(key) == 1.0);
  CHECK(setting.results("run").at("eval_illegal_tags") == 0);
  CHECK(setting.file("run/eval_illegal_tags.tsv") == "before\ttag\tcount\n");
  CHECK(setting.file("run/eval_report.tsv") ==
        "entity\tprecision\trecall\tf1\tsupport\n"
        "A\t1.0000\t1.0000\t1.0000\t13\nB\t1.0000\t1.0000\t1.0000\t3\nmicro avg\t1.0000\t1.0000\t1.0000\t16\n"
        "macro avg\t1.0000\t1.0000\t1.0000\t16\nweighted avg\t1.0000\t1.0000\t1.0000\t16\n");
  const auto predictions = lines_of(setting.file("run/predictions.tsv"));
  REQUIRE(predictions.size() == 1 + 13 * 4 + 3);
  CHECK(predictions[0] == "sentence\tword\tprediction\tprobability\tlabel");
  CHECK(predictions[3].starts_with("0\tfish\tI-A\t0."));
  CHECK(predictions[3].ends_with("\tI-A"));
  CHECK(predictions.back().starts_with("12\t.\tO\t"));
}

TEST_CASE("JSON lines of words give the run of a file with a word a line") {
  const Setting setting;
  for (const std::string name : {"train", "dev"})
    write_text(setting.at(name + ".jsonl"), json_of(setting.file(name + ".conll")));
  write_text(setting.at("new.jsonl"), "{\"tokens\": [\"the\", \"red\", \"fish\"]}\n");
  write_text(setting.at("short.conll"), "the\nred\nfish\n");
  const auto train = [&](const std::string& run, const std::string& ending, const std::string& predicted) {
    const Outcome outcome = setting.train(run, {"--train", setting.at("train" + ending), "--eval",
                                                setting.at("dev" + ending), "--predict", setting.at(predicted)});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  };
  train("words", ".conll", "short.conll");
  train("json", ".jsonl", "new.jsonl");
  CHECK(setting.results("json") == setting.results("words"));
  CHECK(setting.file("json/predictions.tsv") == setting.file("words/predictions.tsv"));
}

TEST_CASE("the program evaluate gives the figures of a run for its predictions") {
  const Setting setting;
  REQUIRE(setting
              .train("run", {"--eval", setting.at("dev.conll"), "--predict", setting.at("dev.conll"), "--epochs", "1",
                             "--learning-rate", "0.005"})
              .code == 0);
  write_text(setting.at("judged.conll"), conll_of(setting.file("run/predictions.tsv")));
  const Outcome outcome = run_program("evaluate", {"tokens", setting.at("judged.conll"), "--json"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  const auto figures = nlohmann::json::parse(outcome.out), results = setting.results("run");
  CHECK(results.at("eval_f1") < 1);
  for (const std::string name : {"precision", "recall", "f1", "accuracy", "illegal_tags"})
    CHECK_MESSAGE(results.at("eval_" + name) == figures.at(name), name);
}

TEST_CASE("a model that labels words evaluates and predicts without training") {
  const Setting setting;
  const Flags eval = {"--eval", setting.at("dev.conll")};
  REQUIRE(setting.train("run", {"--eval", setting.at("dev.conll"), "--epochs", "2"}).code == 0);
  REQUIRE(setting
              .apply("applied", {"--model", setting.at("run"), "--eval", setting.at("dev.conll"), "--predict",
                                 setting.at("new.conll")})
              .code == 0);
  auto expected = setting.results("run");
  for (const char* of_training : {"global_step", "best_model_by"}) expected.erase(of_training);
  CHECK(setting.results("applied") == expected);
  CHECK(setting.file("applied/eval_report.tsv") == setting.file("run/eval_report.tsv"));
  const auto predictions = lines_of(setting.file("applied/predictions.tsv"));
  CHECK(predictions[0] == "sentence\tword\tprediction\tprobability");
  CHECK(predictions.size() == 1 + 7 * 4 + 2);
}

TEST_CASE("classes of words and punctuation have their own figures") {
  const Setting setting;
  const auto keys = [&](const std::string& task) {
    REQUIRE(setting.train(task, {"--task", task, "--eval", setting.at("dev.conll"), "--epochs", "2"}).code == 0);
    std::vector<std::string> names;
    const auto results = setting.results(task);
    for (const auto& [name, value] : results.items())
      if (value.is_number()) names.push_back(name);
    return names;
  };
  const std::vector<std::string> classes = {"eval_accuracy", "eval_loss", "eval_macro_f1", "global_step"};
  CHECK(keys("pos") == classes);
  CHECK(keys("tokens") == classes);
  CHECK(keys("punct") == std::vector<std::string>{"eval_accuracy", "eval_f1", "eval_loss", "eval_precision",
                                                  "eval_recall", "global_step"});
  CHECK_FALSE(std::filesystem::exists(setting.at("pos/eval_illegal_tags.tsv")));
  CHECK(setting.file("pos/eval_report.tsv").starts_with("label\tprecision\trecall\tf1\tsupport\nB-A\t"));
}

TEST_CASE("a sentence of 10000 words is learnt and predicted word by word") {
  const Setting setting;
  std::string text;
  for (int i = 0; i < 2500; ++i) text += "one\tO\nred\tB-A\nbirds\tI-A\n.\tO\n";
  write_text(setting.at("long.conll"), text);
  const Outcome outcome = setting.train(
      "run", {"--train", setting.at("long.conll"), "--predict", setting.at("long.conll"), "--doc-stride", "3"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out.find("sentences longer than --max-seq-length, cut into windows: 1 of 1\n") != std::string::npos);
  const auto predictions = lines_of(setting.file("run/predictions.tsv"));
  REQUIRE(predictions.size() == 10001);
  std::size_t right = 0;
  for (std::size_t i = 1; i < predictions.size(); ++i) {
    std::istringstream cells(predictions[i]);
    std::string sentence, word, prediction, probability, label;
    cells >> sentence >> word >> prediction >> probability >> label;
    right += prediction == label;
  }
  CHECK(right == 10000);
}

TEST_CASE("a step whose windows lie within one word moves nothing and ends no run") {
  const Setting setting;
  std::string word = "fish";
  for (int i = 0; i < 60; ++i) word += 's';
  write_text(setting.at("long.conll"), word + "\tB-A\n\none\tO\n");
  const Outcome outcome = setting.train(
      "run", {"--train", setting.at("long.conll"), "--epochs", "1", "--batch-size", "1", "--log-every", "1"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  std::size_t empty_steps = 0;
  for (const auto& line : support::read_json_lines(setting.directory / "run/metrics.jsonl"))
    empty_steps += line.at("loss") == 0.0 && line.at("grad_norm") == 0.0;
  CHECK(empty_steps == 5);
}

TEST_CASE("a word of which the tokenizer leaves nothing has the most frequent label and is counted") {
  const Setting setting;
  write_text(setting.at("new.conll"), "one\nred\n\xE2\x80\x8B\n\n\xE2\x80\x8B\n");
  const Outcome outcome = setting.train("run", {"--predict", setting.at("new.conll"), "--epochs", "8"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out.find("words without a token: 2 of 4; they are predicted as the most frequent label") !=
        std::string::npos);
  const auto predictions = lines_of(setting.file("run/predictions.tsv"));
  REQUIRE(predictions.size() == 5);
  CHECK(predictions[2].starts_with("0\tred\tB-A\t"));
  CHECK(predictions[3].starts_with("0\t\xE2\x80\x8B\tO\t0.476"));
  CHECK(predictions[4].starts_with("1\t\xE2\x80\x8B\tO\t0.476"));
}

TEST_CASE("a file with a sentence a line gives the model of the same file with a word a line") {
  const Setting setting;
  std::string rows, words, labels;
  for (const std::string& line : lines_of(support::small_sentences(30))) {
    if (line.empty()) {
      rows += words.substr(1) + '\t' + labels.substr(1) + '\n';
      words.clear(), labels.clear();
    } else {
      words += ' ' + line.substr(0, line.find('\t'));
      labels += ' ' + line.substr(line.find('\t') + 1);
    }
  }
  write_text(setting.at("train.tsv"), rows);
  REQUIRE(setting.train("words", {"--epochs", "1"}).code == 0);
  const Outcome outcome =
      setting.train("rows", {"--train", setting.at("train.tsv"), "--layout", "rows", "--epochs", "1"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(setting.file("rows/model.safetensors") == setting.file("words/model.safetensors"));
}

TEST_CASE("columns have numbers and a gzip file gives the model of the plain one") {
  const Setting setting;
  std::string numbered = "# text = one\n";
  int i = 0;
  for (const std::string& line : lines_of(support::small_sentences(30)))
    numbered += line.empty() ? "\n# a comment\n" : std::to_string(++i) + '\t' + line + "\t-\n";
  support::write_text(setting.at("train.iob2.gz"), support::gzipped(numbered));
  REQUIRE(setting.train("words", {"--epochs", "1"}).code == 0);
  const Outcome outcome = setting.train(
      "gzip", {"--train", setting.at("train.iob2.gz"), "--text-column", "1", "--label-column", "2", "--epochs", "1"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(setting.file("gzip/model.safetensors") == setting.file("words/model.safetensors"));
}

TEST_CASE("labels on all pieces make another model") {
  const Setting setting;
  REQUIRE(setting.train("first", {"--epochs", "1"}).code == 0);
  REQUIRE(setting.train("all", {"--epochs", "1", "--label-all-pieces"}).code == 0);
  CHECK(setting.file("first/model.safetensors") != setting.file("all/model.safetensors"));
}

TEST_CASE("replicas, threads and micro-batches that label words leave the bits of one and a run resumes with them") {
  const Setting setting;
  const Flags common = {"--eval",
                        setting.at("dev.conll"),
                        "--predict",
                        setting.at("new.conll"),
                        "--batch-size",
                        "8",
                        "--micro-batch-size",
                        "2",
                        "--epochs",
                        "3",
                        "--save-every",
                        "4",
                        "--keep",
                        "9",
                        "--max-seq-length",
                        "5",
                        "--doc-stride",
                        "1"};
  const auto with = [&](const Flags& more) {
    Flags flags = common;
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  };
  const std::vector<std::string> files = {"model.safetensors", "eval_results.json", "eval_report.tsv",
                                          "eval_illegal_tags.tsv", "predictions.tsv"};
  REQUIRE(setting.train("one", common).code == 0);
  for (const std::string replicas : {"2", "3"}) {
    // The replicas share the threads unevenly, and one of them at least has several.
    const Outcome outcome = setting.train("some" + replicas, with({"--replicas", replicas, "--threads", "5"}));
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    for (const std::string& name : files)
      CHECK_MESSAGE(setting.file("some" + replicas + "/" + name) == setting.file("one/" + name), name);
  }
  std::vector<std::string> expected;
  for (const std::string& name : files) expected.push_back(setting.file("one/" + name));
  for (const auto& entry : std::filesystem::directory_iterator(setting.directory / "one"))
    if (const std::string name = entry.path().filename(); name.starts_with("checkpoint-") && name != "checkpoint-4")
      std::filesystem::remove_all(entry.path());
  const Outcome resumed = setting.train("one", with({"--resume", "--replicas", "2"}));
  REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
  CHECK(resumed.out.find("resumed from") != std::string::npos);
  for (std::size_t i = 0; i < files.size(); ++i)
    CHECK_MESSAGE(setting.file("one/" + files[i]) == expected[i], files[i]);
}

TEST_CASE("a plan of labelling words is printed and half precision learns the words too") {
  const Setting setting;
  const Outcome plan = setting.train("run", {"--plan"});
  CHECK(plan.code == 0);
  CHECK(plan.out.find("30 examples") != std::string::npos);
  for (const std::string precision : {"bf16", "f16"}) {
    const Outcome outcome =
        setting.train(precision, {"--precision", precision, "--eval", setting.at("dev.conll"), "--epochs", "15"});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    CHECK(setting.results(precision).at("eval_f1") > 0.9);
  }
}
