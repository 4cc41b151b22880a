#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "support/conversation.h"
#include "support/small_finetuning.h"
#include "support/soon.h"

using support::Outcome;
using support::read_text;
using support::run_program;
using support::write_text;

namespace {

/// A model and a file of 36 rows to learn; extra flags come last.
struct Setting : support::SmallFinetuning {
  Setting() : SmallFinetuning(36) {}
  Outcome run(const std::string& output, const std::vector<std::string>& flags,
              const std::string& threads = "1") const {
    return finetune(output, support::with_defaults({"--train", directory / "train.csv", "--batch-size", "6",
                                                    "--learning-rate", "0.01", "--threads", threads},
                                                   flags));
  }
};

std::vector<std::string> lines_of(const std::filesystem::path& file) {
  std::vector<std::string> lines;
  std::istringstream in(read_text(file));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("evaluation takes no more memory than the plan says if micro-batches are small") {
  const Setting setting;
  const Outcome outcome = setting.run(
      "run", {"--eval", setting.directory / "dev.csv", "--micro-batch-size", "1", "--epochs", "2", "--log-every", "1"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  const double predicted = std::stod(outcome.out.substr(outcome.out.find("memory      ") + 12)) * 1e3;
  double most = 0;
  for (const auto& line : support::read_json_lines(setting.directory / "run/metrics.jsonl"))
    most = std::max(most, line.value("memory_bytes", 0.0));
  CHECK(most > 0);
  CHECK(most <= 1.01 * predicted);
}

TEST_CASE("a custom CSV is learnt, and labels, results and predictions carry the data's names") {
  const Setting setting;
  const Outcome outcome = setting.run(
      "run", {"--eval", setting.directory / "dev.csv", "--predict", setting.directory / "dev.csv", "--epochs", "15"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out.find("classifier.weight") != std::string::npos);  // the load report: what was initialised

  const auto config = nlohmann::json::parse(read_text(setting.directory / "run/config.json"));
  CHECK(config.at("id2label") == nlohmann::json({{"0", "bird"}, {"1", "fish"}}));
  CHECK(config.at("label2id") == nlohmann::json({{"bird", 0}, {"fish", 1}}));
  CHECK(config.at("problem_type") == "single_label_classification");
  CHECK(config.at("architectures") == nlohmann::json({"BertForSequenceClassification"}));

  const auto results = nlohmann::json::parse(read_text(setting.directory / "run/eval_results.json"));
  CHECK(results.at("eval_accuracy") == 1.0);
  CHECK(results.at("eval_f1") == 1.0);
  CHECK(read_text(setting.directory / "run/eval_results.txt")
            .starts_with("eval_accuracy = 1\neval_f1 = 1\neval_loss = "));
  CHECK(read_text(setting.directory / "run/eval_report.tsv") ==
        "label\tprecision\trecall\tf1\tsupport\nbird\t1.0000\t1.0000\t1.0000\t6\nfish\t1.0000\t1.0000\t1.0000\t6\n"
        "macro avg\t1.0000\t1.0000\t1.0000\t12\nweighted avg\t1.0000\t1.0000\t1.0000\t12\n\n"
        "true \\ predicted\tbird\tfish\nbird\t6\t0\nfish\t0\t6\n");

  const auto predictions = lines_of(setting.directory / "run/predictions.tsv");
  REQUIRE(predictions.size() == 13);
  CHECK(predictions[0] == "id\tprediction\tprobability_bird\tprobability_fish\tlabel\tprobability\ttext");
  CHECK(predictions[1].starts_with("0\tfish\t"));
  CHECK(predictions[1].ends_with("\tone, red fishs."));
  CHECK(predictions[2].starts_with("1\tbird\t"));

  // The second row contradicts what was learnt: rows of the matrix are what is true.
  const std::string judged = setting.directory / "judged.csv";
  write_text(judged, "text,kind\n\"one, red fishs.\",fish\n\"one, blue fishs.\",bird\n\"one, green birds.\",bird\n");
  REQUIRE(setting.finetune("judged", {"--model", setting.directory / "run", "--eval", judged}).code == 0);
  CHECK(read_text(setting.directory / "judged/eval_report.tsv") ==
        "label\tprecision\trecall\tf1\tsupport\nbird\t1.0000\t0.5000\t0.6667\t2\nfish\t0.5000\t1.0000\t0.6667\t1\n"
        "macro avg\t0.7500\t0.7500\t0.6667\t3\nweighted avg\t0.8333\t0.6667\t0.6667\t3\n\n"
        "true \\ predicted\tbird\tfish\nbird\t1\t1\nfish\t0\t1\n");
}

TEST_CASE("a fine-tuned model evaluates and predicts without training, with its own label names") {
  const Setting setting;
  REQUIRE(setting.run("run", {"--eval", setting.directory / "dev.csv", "--epochs", "4"}).code == 0);
  write_text(setting.directory / "new.csv", "text\nred fish.\nblue bird.\n");
  const std::string model = setting.directory / "run", file = setting.directory / "new.csv";
  const Outcome predicted = setting.finetune("predicted", {"--model", model, "--predict", file});
  REQUIRE_MESSAGE(predicted.code == 0, predicted.error);
  CHECK(lines_of(setting.directory / "predicted/predictions.tsv").at(0) ==
        "id\tprediction\tprobability_bird\tprobability_fish\tprobability\ttext");
  REQUIRE(setting.finetune("evaluated", {"--model", model, "--eval", setting.directory / "dev.csv"}).code == 0);
  auto expected = nlohmann::json::parse(read_text(setting.directory / "run/eval_results.json"));
  for (const char* of_training : {"global_step", "best_model_by"}) expected.erase(of_training);
  CHECK(nlohmann::json::parse(read_text(setting.directory / "evaluated/eval_results.json")) == expected);
}

TEST_CASE("flags of training that have no effect without --train are named") {
  const Setting setting;
  REQUIRE(setting.run("run", {"--eval", setting.directory / "dev.csv", "--epochs", "1"}).code == 0);
  const Outcome evaluated =
      setting.finetune("evaluated", {"--model", setting.directory / "run", "--eval", setting.directory / "dev.csv",
                                     "--steps", "3", "--no-shuffle", "--freeze", "embeddings", "--label-smoothing",
                                     "0.1", "--keep", "2", "--batch-size", "4"});
  CHECK(evaluated.code == 0);
  CHECK(evaluated.error ==
        "warning: --label-smoothing, --steps, --freeze, --no-shuffle, --keep: of no effect without --train\n");
  const Outcome unjudged = setting.run("unjudged", {"--eval-every", "2", "--steps", "2"});
  CHECK(unjudged.code == 0);
  CHECK(unjudged.error == "warning: --eval-every: of no effect without --eval\n");
}

TEST_CASE("a head for other labels is replaced and the report says so, but not without training") {
  const Setting setting;
  REQUIRE(setting.run("first", {"--epochs", "1"}).code == 0);
  write_text(setting.directory / "three.tsv", "text\tkind\nred\tr\ngreen\tg\nblue\tb\n");
  const std::string model = setting.directory / "first", file = setting.directory / "three.tsv";
  const Outcome outcome = setting.finetune("second", {"--model", model, "--train", file, "--epochs", "1"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out.find("classifier.weight: expected [3, 16]") != std::string::npos);
  CHECK(nlohmann::json::parse(read_text(setting.directory / "second/config.json")).at("id2label").size() == 3);

  const Outcome refused = setting.finetune("third", {"--model", model, "--eval", file});
  CHECK(refused.code == 3);
  CHECK(refused.error == "error: " + file + ":2: label: expected one of {bird,fish}, got \"r\"\n");
  CHECK_FALSE(std::filesystem::exists(setting.directory / "third"));
}

TEST_CASE("a head that was trained for other labels of the same number goes on and a warning names both lists") {
  const Setting setting;
  REQUIRE(setting.run("first", {"--epochs", "1"}).code == 0);
  const std::string model = setting.directory / "first", file = setting.directory / "two.tsv";
  const auto warning_for = [&](const std::string& rows) {
    write_text(file, "text\tkind\n" + rows);
    const Outcome outcome =
        setting.finetune("second", {"--model", model, "--train", file, "--epochs", "1", "--overwrite"});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    CHECK(outcome.out.find(" loaded, 0 missing") != std::string::npos);
    return outcome.error;
  };
  CHECK(warning_for("red\tr\ngreen\tg\n") ==
        "warning: " + model +
            ": id2label: expected the data's labels {g,r}, got {bird,fish}: the rows of the old head begin as those of "
            "the new labels, in this order\n");
  CHECK(warning_for("red\tfish\ngreen\tbird\n").empty());
  CHECK(warning_for("red\t0\ngreen\t1\n").empty());  // the numbers of its outputs
}

TEST_CASE("a run resumed from an earlier checkpoint ends with the same bits, whatever the threads") {
  const Setting setting;
  const std::vector<std::string> flags = {
      "--eval", setting.directory / "dev.csv", "--epochs", "3", "--save-every", "5", "--keep", "9"};
  REQUIRE(setting.run("run", flags).code == 0);
  const auto read = [&](const std::string& file) { return read_text(setting.directory / ("run/" + file)); };
  const std::vector<std::string> files = {"checkpoint-18/model.safetensors", "checkpoint-18/optimizer.safetensors",
                                          "model.safetensors", "eval_results.json"};
  std::vector<std::string> expected;
  for (const std::string& file : files) expected.push_back(read(file));
  for (const char* gone : {"run/checkpoint-18", "run/checkpoint-15", "run/eval_results.json"})
    std::filesystem::remove_all(setting.directory / gone);

  std::vector<std::string> resumed = flags;
  resumed.push_back("--resume");
  const Outcome outcome = setting.run("run", resumed, /*threads=*/"2");
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out.find("resumed from") != std::string::npos);
  for (std::size_t i = 0; i < files.size(); ++i) CHECK_MESSAGE(read(files[i]) == expected[i], files[i]);
}

TEST_CASE("a run goes on with the same bits when the model that it began with is gone") {
  const Setting setting;
  const std::string model = setting.directory / "model", words = setting.directory / "words.txt";
  std::filesystem::rename(model + "/vocab.txt", words);
  auto config = nlohmann::json::parse(read_text(model + "/config.json"));
  config.update({{"_name_or_path", "where it was"}, {"transformers_version", "4.8.2"}});  // as one that is downloaded
  write_text(model + "/config.json", config.dump());
  REQUIRE(setting.run("run", {"--vocab-file", words, "--steps", "6", "--save-every", "3"}).code == 0);
  const auto weights = [&] { return read_text(setting.directory / "run/checkpoint-6/model.safetensors"); };
  const std::string expected = weights();
  const auto resume = [&] {
    std::filesystem::remove_all(setting.directory / "run/checkpoint-6");
    return support::run_program("finetune", {"--resume", "--output", setting.directory / "run"});
  };
  for (const std::string& gone : {words, model}) {
    std::filesystem::remove_all(gone);
    const Outcome outcome = resume();
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    CHECK(outcome.error.find(": expected the file that the run began with, got none; ") != std::string::npos);
    CHECK(weights() == expected);
  }
  write_text(setting.directory / "run/checkpoint-6/config.json", "{");  // so that the one before is the newest
  const Outcome outcome = support::run_program("finetune", {"--resume", "--output", setting.directory / "run"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out.find("resumed from " + (setting.directory / "run/checkpoint-3").string()) != std::string::npos);
  CHECK(weights() == expected);
  std::filesystem::remove_all(setting.directory / "run/checkpoint-3");
  CHECK(resume().code == 4);  // nothing has the shape
}

TEST_CASE("a run is resumed from its own weights, and another start model is refused") {
  const Setting setting;
  const std::string model = setting.directory / "model", other = setting.directory / "other";
  REQUIRE(setting.run("run", {"--steps", "2"}).code == 0);
  std::filesystem::copy(model, other, std::filesystem::copy_options::recursive);
  const Outcome refused = setting.run("run", {"--steps", "3", "--resume", "--model", other});
  CHECK(refused.code == 2);
  CHECK(refused.error == "error: --resume: expected to go on with the weights of the run, which began with --model " +
                             model + ", got --model " + other +
                             "; hint: leave --model out, or begin a new run in another --output\n");
  CHECK(setting.run("run", {"--steps", "3", "--resume", "--model", other + "/../model"}).code == 0);
}

TEST_CASE("a run is not resumed with other added tokens, of which the vocabulary shows nothing") {
  const Setting setting;
  REQUIRE(setting.run("run", {"--steps", "2"}).code == 0);
  const std::string added = setting.directory / "model/added_tokens.json";
  write_text(added, R"({"red": 5})");
  const Outcome refused = setting.run("run", {"--steps", "3", "--resume"});
  CHECK(refused.code == 2);
  CHECK_MESSAGE(refused.error.find("the tokenizer was lower case true, longest word 200, now lower case true, longest "
                                   "word 200, added tokens ") != std::string::npos,
                refused.error);
  std::filesystem::remove(added);
  CHECK(setting.run("run", {"--steps", "3", "--resume"}).code == 0);
}

TEST_CASE("a run whose columns look like numbers is resumed from its record") {
  const Setting setting;
  const std::string file = setting.directory / "rows.csv", run = setting.directory / "run";
  write_text(file, "1e2,2.50\nred fish,fish\ntwo birds,bird\n");
  REQUIRE(setting.finetune("run", {"--train", file, "--text-column", "1e2", "--label-column", "2.50", "--steps", "2"})
              .code == 0);
  const auto settings = nlohmann::json::parse(read_text(run + "/run_config.json")).at("settings");
  CHECK(settings.at("text-column") == "1e2");
  CHECK(settings.at("learning-rate") == 5e-5);
  const Outcome outcome = support::run_program("finetune", {"--resume", "--output", run});
  CHECK_MESSAGE(outcome.code == 0, outcome.error);
}

TEST_CASE("a prediction after training that is interrupted is made by --resume, also if the model was kept alone") {
  const Setting setting;
  const std::string many = setting.directory / "many.csv", run = setting.directory / "run";
  write_text(many, support::animals(150'000));
  for (const bool model_alone : {false, true}) {
    std::vector<std::string> command = {"--task",
                                        "custom",
                                        "--label-column",
                                        "kind",
                                        "--max-seq-length",
                                        "16",
                                        "--train",
                                        setting.directory / "train.csv",
                                        "--predict",
                                        many,
                                        "--steps",
                                        "2",
                                        "--output",
                                        run,
                                        "--model",
                                        setting.directory / "model",
                                        "--overwrite",
                                        "--threads",
                                        "1"};
    if (model_alone) command.emplace_back("--save-model-only");
    support::Conversation program("finetune", command);
    REQUIRE(support::soon([&] { return program.line().starts_with("finished after"); }));
    program.signal(SIGTERM);
    CHECK(program.finish() == 75);
    CHECK_FALSE(std::filesystem::exists(run + "/predictions.tsv"));
    CHECK(run_program("finetune", {"--resume", "--output", run}).code == 0);
    CHECK(std::filesystem::exists(run + "/predictions.tsv"));
  }
}

TEST_CASE("a regression has one output and is judged by its correlations") {
  const Setting setting;
  std::string rows = "text\tkind\n";
  for (int i = 0; i < 24; ++i) rows += i % 2 ? "red fish\t1.5\n" : "two birds\t-0.5\n";
  write_text(setting.directory / "scores.tsv", rows);
  const std::string file = setting.directory / "scores.tsv";
  const Outcome outcome =
      setting.finetune("run", {"--kind", "regression", "--train", file, "--eval", file, "--predict", file, "--epochs",
                               "20", "--batch-size", "8", "--learning-rate", "0.01"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  const auto config = nlohmann::json::parse(read_text(setting.directory / "run/config.json"));
  CHECK(config.at("problem_type") == "regression");
  CHECK(config.at("id2label").size() == 1);
  const auto results = nlohmann::json::parse(read_text(setting.directory / "run/eval_results.json"));
  CHECK(results.at("eval_pearson") > 0.99);
  CHECK_FALSE(std::filesystem::exists(setting.directory / "run/eval_report.tsv"));
  CHECK(lines_of(setting.directory / "run/predictions.tsv").at(0) == "id\tprediction\tlabel\ttext");
}

TEST_CASE("several labels a row, from JSON lines") {
  const Setting setting;
  std::string rows;
  for (int i = 0; i < 8; ++i)
    rows += R"({"text": "red fish", "kind": ["colour", "animal"]})"
            "\n"
            R"({"text": "two birds", "kind": ["animal"]})"
            "\n"
            R"({"text": "the one", "kind": []})"
            "\n";
  write_text(setting.directory / "rows.jsonl", rows);
  const std::string file = setting.directory / "rows.jsonl";
  const Outcome outcome =
      setting.finetune("run", {"--kind", "multi-label", "--train", file, "--eval", file, "--predict", file, "--epochs",
                               "60", "--batch-size", "8", "--learning-rate", "0.01"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  const auto results = nlohmann::json::parse(read_text(setting.directory / "run/eval_results.json"));
  CHECK(results.at("eval_accuracy") == 1.0);
  CHECK(results.at("eval_micro_f1") == 1.0);
  CHECK(read_text(setting.directory / "run/eval_report.tsv") ==
        "label\tprecision\trecall\tf1\tsupport\nanimal\t1.0000\t1.0000\t1.0000\t16\n"
        "colour\t1.0000\t1.0000\t1.0000\t8\nmacro avg\t1.0000\t1.0000\t1.0000\t24\n"
        "weighted avg\t1.0000\t1.0000\t1.0000\t24\n");
  const auto predictions = lines_of(setting.directory / "run/predictions.tsv");
  CHECK(predictions.at(0) == "id\tprediction\tprobability_animal\tprobability_colour\tlabel\ttext");
  CHECK(predictions.at(1).starts_with("0\tanimal,colour\t"));
  CHECK(predictions.at(3).starts_with("2\t\t"));
}

TEST_CASE("--plan says what would be done and writes nothing") {
  const Setting setting;
  const Outcome outcome = setting.run("run", {"--plan", "--batch-size", "40"});
  CHECK(outcome.code == 0);
  CHECK(outcome.out.find("step        36 examples in ") != std::string::npos);  // all that there are
  CHECK_FALSE(std::filesystem::exists(setting.directory / "run"));
}

TEST_CASE("bad input ends with one line and its exit code, and leaves no run behind") {
  const Setting setting;
  write_text(setting.directory / "bad.csv", support::animals(4) + "red one,horse\n");
  write_text(setting.directory / "ragged.csv", support::animals(4) + "red one\n");
  const std::string bad = setting.directory / "bad.csv", ragged = setting.directory / "ragged.csv";
  const auto expect = [&](const std::vector<std::string>& flags, int code, const std::string& message) {
    const Outcome outcome = setting.run("run", flags);
    CHECK(outcome.code == code);
    CHECK(outcome.error == "error: " + message + "\n");
    CHECK_FALSE(std::filesystem::exists(setting.directory / "run"));
  };
  expect({"--eval", bad}, 3, bad + ":6: label: expected one of {bird,fish}, got \"horse\"");
  expect({"--eval", ragged}, 3, ragged + ":6: columns: expected 2 as in line 1, got 1");
  expect({"--eval", setting.directory / "none.csv"}, 3,
         (setting.directory / "none.csv").string() + ": open: No such file or directory");
  expect({"--text-column", "txt"}, 3,
         (setting.directory / "train.csv").string() +
             ":1: --text-column: expected a column \"txt\", got {text,kind}; did you mean text?");
  for (const char* name : {"model/vocab.txt", "model/tokenizer.json"})
    std::filesystem::remove(setting.directory / name);
  expect({}, 4,
         (setting.directory / "model").string() +
             ": expected vocab.txt or tokenizer.json, got neither; hint: --vocab-file names one elsewhere");
}

TEST_CASE("a model without a classifier cannot predict") {
  const Setting setting;
  write_text(setting.directory / "new.csv", "text\nred fish.\n");
  const Outcome nameless = setting.finetune("run", {"--predict", setting.directory / "new.csv"});
  CHECK(nameless.code == 4);
  CHECK(nameless.error == "error: " + (setting.directory / "model/config.json").string() +
                              ": id2label: expected the names of the classes or a file to --train, got none\n");
  const Outcome headless = setting.finetune("run", {"--eval", setting.directory / "dev.csv"});
  CHECK(headless.code == 4);
  CHECK(headless.error.find("classifier.weight") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(setting.directory / "run"));
}

TEST_CASE("flags that do not fit together are refused") {
  const Setting setting;
  CHECK(setting.finetune("run", {}).code == 2);
  CHECK(setting.run("run", {"--cased"}).code == 2);
  CHECK(setting.run("run", {"--task", "mrpc"}).error ==
        "error: --label-column: expected with --task ner, pos, punct, tokens, custom, got --task mrpc\n");
  const Outcome same = setting.run("model", {"--overwrite"});
  CHECK(same.code == 2);
  CHECK(same.error.starts_with("error: --output: expected another directory than --model, got "));
  CHECK(std::filesystem::exists(setting.directory / "model/model.safetensors"));
  CHECK(run_program("finetune", {"--task", "mprc", "--model", setting.directory / "model", "--train",
                                 setting.directory / "train.csv", "--output", setting.directory / "run"})
            .error.starts_with("error: --task: expected one of cola, "));
  const Outcome longer =
      run_program("finetune", {"--task", "custom", "--model", setting.directory / "model", "--train",
                               setting.directory / "train.csv", "--output", setting.directory / "run"});
  CHECK(longer.code == 3);  // without --max-seq-length it is what the model has, and then the column is looked for
  CHECK(setting.run("run", {"--max-seq-length", "25"}).error ==
        "error: --max-seq-length: expected at most 24, the model's positions, got 25\n");
}
