// What ranking makes of outputs, of a model's labels and of a file that changes.
#include "bert/objectives/ranking_task.h"

#include <doctest/doctest.h>

#include <fmt/ranges.h>

#include <cmath>

#include "support/program.h"
#include "support/refusal.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::objectives;

namespace {

struct Setting {
  support::TemporaryDirectory directory;
  text::Tokenizer tokenizer{text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\n", "vocab.txt")};
  Setting() {
    write_candidates("1\tp1\ta\tb\n1\tp2\ta\tc\n");
    support::write_text(directory / "qrels.tsv", "1\t0\tp1\t1\n");
  }
  void write_candidates(const std::string& text) const { support::write_text(directory / "candidates.tsv", text); }
  RankingTask task(const std::vector<std::string>& labels = {}) const {
    bert::Config config;
    config.labels = labels;
    return {{.train = {},
             .evaluation = directory / "candidates.tsv",
             .prediction = {},
             .qrels = directory / "qrels.tsv",
             .config_file = "m/config.json"},
            config,
            tokenizer};
  }
};

}  // namespace

TEST_CASE("two names that a model has for relevance stay and placeholders give way, but not three labels") {
  const Setting setting;
  const auto labels = [&](const std::vector<std::string>& own) { return setting.task(own).directory().config.labels; };
  const std::vector<std::string> usual = {"not_relevant", "relevant"};
  CHECK(labels({"no", "yes"}) == std::vector<std::string>{"no", "yes"});
  CHECK(labels({}) == usual);
  CHECK(labels({"LABEL_0", "LABEL_1"}) == usual);
  CHECK(support::refusal(Failure::model,
                         [&] {
                           labels({"a", "b", "c"});
                         }) ==
        "m/config.json: id2label: expected 1 or 2 labels for --task msmarco, got {a,b,c}; hint: --train makes another "
        "model of it");
}

TEST_CASE("a model of one label ranks by its logit, and keeps one output when it is trained") {
  const Setting setting;
  support::write_text(setting.directory / "triples.tsv", "a\tb\tc\n");
  const auto task = [&](const std::string& own, const std::string& label, bool trains) {
    bert::Config config;
    config.problem_type = own;
    config.labels = {label};
    RankingTask::Inputs inputs{.train = {},
                               .evaluation = setting.directory / "candidates.tsv",
                               .prediction = {},
                               .qrels = setting.directory / "qrels.tsv",
                               .config_file = "m/config.json"};
    if (trains) inputs.train = setting.directory / "triples.tsv";
    return RankingTask(inputs, config, setting.tokenizer);
  };
  const auto written = [&](const std::string& own, const std::string& label, bool trains) {
    const bert::Config config = task(own, label, trains).directory().config;
    return config.problem_type + fmt::format(" {}", fmt::join(config.labels, ","));
  };
  CHECK(written("", "LABEL_0", false) == "multi_label_classification relevant");
  CHECK(written("multi_label_classification", "fits", false) == "multi_label_classification fits");
  CHECK(written("", "fits", true) == "multi_label_classification relevant");
  CHECK(written("regression", "fits", true) == "single_label_classification not_relevant,relevant");
  CHECK(support::refusal(Failure::model, [&] { written("regression", "fits", false); }) ==
        "m/config.json: problem_type: expected multi_label_classification for --task msmarco, got regression; "
        "hint: --train makes another model of it");

  const RankingTask one = task("", "LABEL_0", true);
  const auto backend = open_cpu({.threads = 1});
  const Variable outputs(ops::from_host(std::vector<float>{0.5F, -20}, {2, 1}, *backend));
  const double even = std::log1p(std::exp(-0.5));  // 0.5 for what is relevant
  CHECK(ops::item(one.loss(outputs, {}, std::vector<std::int64_t>{4, 7}, 2).value()) == doctest::Approx(even / 2));
  const tasks::Logits logits{.outputs = 1, .values = {0.5F, -20}};  // p1 is relevant, p2 is not
  CHECK(metric(one.evaluate(logits), "eval_loss") == doctest::Approx(even / 2));
  CHECK(metric(one.evaluate(logits), "eval_mrr_at_10") == 1);
}

TEST_CASE("a ranking model whose first class is the relevant one is refused") {
  const Setting setting;
  CHECK(support::refusal(Failure::model,
                         [&] {
                           setting.task({"relevant", "not_relevant"});
                         }) ==
        "m/config.json: id2label: expected the class of relevant passages second for --task msmarco, got "
        "{relevant,not_relevant}; hint: --train makes another model of it");
}

TEST_CASE("a model of another problem is no ranking model unless it is trained to be one") {
  const Setting setting;
  support::write_text(setting.directory / "triples.tsv", "a\tb\tc\n");
  const auto problem = [&](const std::string& own, bool trains) {
    bert::Config config;
    config.problem_type = own;
    config.labels = {"no", "yes"};
    RankingTask::Inputs inputs{.train = {},
                               .evaluation = {},
                               .prediction = setting.directory / "candidates.tsv",
                               .qrels = {},
                               .config_file = "m/config.json"};
    if (trains) inputs.train = setting.directory / "triples.tsv";
    return RankingTask(inputs, config, setting.tokenizer).directory().config.problem_type;
  };
  const std::string ranking = "single_label_classification";
  CHECK(problem("", false) == ranking);
  CHECK(problem(ranking, false) == ranking);
  CHECK(problem("regression", true) == ranking);
  CHECK(support::refusal(Failure::model, [&] {
          problem("regression", false);
        }).starts_with("m/config.json: problem_type: "));
}

TEST_CASE("a single byte that is not UTF-8 is warned of in each file, and whole ones are not warned of") {
  const Setting setting;
  const auto warnings = [&](const std::string& train, const std::string& candidates) {
    support::write_text(setting.directory / "triples.tsv", train);
    setting.write_candidates(candidates);
    const RankingTask task({.train = setting.directory / "triples.tsv",
                            .evaluation = {},
                            .prediction = setting.directory / "candidates.tsv",
                            .qrels = {}},
                           bert::Config{}, setting.tokenizer);
    return task.warnings();
  };
  const std::string good = "a\tb\tc\n", bad = "a\tb\xFF\tc\n", candidate = "1\tp1\t";
  CHECK(warnings(good, candidate + "a\tb\n") == "");
  CHECK(warnings(bad, candidate + "a\tb\n").find("triples.tsv:1: ") != std::string::npos);
  CHECK(warnings(good, candidate + "a\tb\xFF\n").find("candidates.tsv:1: ") != std::string::npos);
}

TEST_CASE("a ranking model that cannot tell a query from its passage is refused") {
  const Setting setting;
  bert::Config config;
  config.type_vocab_size = 1;
  CHECK(support::refusal(Failure::model, [&] {
          RankingTask({.train = {},
                       .evaluation = {},
                       .prediction = setting.directory / "candidates.tsv",
                       .qrels = {},
                       .config_file = "m/config.json"},
                      config, setting.tokenizer);
        }) == "m/config.json: type_vocab_size: expected 2 for a query and a passage, got 1");
}

TEST_CASE("bad lines of passages are kept of every file if they are to be") {
  const Setting setting;
  support::write_text(setting.directory / "triples.tsv", "a\tb\tc\na\n");
  setting.write_candidates("1\tp1\ta\tb\na\n");
  const std::filesystem::path candidates = setting.directory / "candidates.tsv";
  const RankingTask task({.train = setting.directory / "triples.tsv",
                          .evaluation = candidates,
                          .prediction = candidates,
                          .qrels = setting.directory / "qrels.tsv",
                          .keep_bad_rows = true},
                         bert::Config{}, setting.tokenizer);
  const std::string of_candidates =
      candidates.string() + ":2: columns: expected query id, passage id, query and passage between tabs, got 1 of them";
  CHECK(task.bad_rows() == std::vector<std::string>{(setting.directory / "triples.tsv").string() +
                                                        ":2: columns: expected query, relevant passage and other "
                                                        "passage between tabs, got 1 of them",
                                                    of_candidates, of_candidates});
}

TEST_CASE("of a triple the first example is the relevant one to learn") {
  const Setting setting;
  const RankingTask task = setting.task();
  const auto backend = open_cpu({.threads = 1});
  // The first row says that it is relevant, the second that it is not.
  const Variable outputs(ops::from_host(std::vector<float>{0, 20, 20, 0}, {2, 2}, *backend));
  const auto loss = [&](const std::vector<std::int64_t>& numbers) {
    return ops::item(task.loss(outputs, {}, numbers, 2).value());
  };
  CHECK(loss({4, 7}) < 1e-6);
  CHECK(loss({7, 4}) == doctest::Approx(20));
}

TEST_CASE("the loss of an evaluation is finite where the model is sure of what is wrong") {
  const Setting setting;
  const tasks::Logits outputs{.outputs = 2, .values = {1000, 0, 0, 1000}};  // p1 is relevant
  const training::Metrics metrics = setting.task().evaluate(outputs);
  CHECK(metric(metrics, "eval_loss") == 1000);
  CHECK(metric(metrics, "eval_mrr_at_10") == 0.5);
}

TEST_CASE("the loss of an evaluation is the mean of the negative log probability of what is true") {
  const Setting setting;
  const tasks::Logits outputs{.outputs = 2, .values = {0.5F, 0, 0.5F, 0}};  // p1 is relevant, p2 is not
  const double expected = (std::log1p(std::exp(0.5)) + std::log1p(std::exp(-0.5))) / 2;
  CHECK(metric(setting.task().evaluate(outputs), "eval_loss") == doctest::Approx(expected));
}

TEST_CASE("scores of more than a megabyte have each passage once, in the order of the file") {
  const Setting setting;
  std::string lines, expected = "query_id\tpassage_id\tscore\n";
  tasks::Logits outputs{.outputs = 2, .values = {}};
  for (int i = 0; i < 15; ++i) {
    const std::string passage(100'000, static_cast<char>('a' + i));
    lines += "1\t" + passage + "\ta\tb\n";
    expected += "1\t" + passage + "\t-0.6931472\n";
    outputs.values.append(std::vector<float>{0, 0});
  }
  setting.write_candidates(lines);
  const RankingTask task(
      {.train = {}, .evaluation = {}, .prediction = setting.directory / "candidates.tsv", .qrels = {}}, bert::Config{},
      setting.tokenizer);
  task.write_predictions(io::Files::system(), setting.directory / "", outputs);
  CHECK((support::read_text(setting.directory / "predictions.tsv") == expected));
}

TEST_CASE("passages are in the files of an evaluation and of a prediction, query by query, the best first") {
  const Setting setting;
  setting.write_candidates("1\tp1\ta\tb\n1\tp2\ta\tc\n2\tp1\tb\td\n");
  const RankingTask task({.train = {},
                          .evaluation = setting.directory / "candidates.tsv",
                          .prediction = setting.directory / "candidates.tsv",
                          .qrels = setting.directory / "qrels.tsv"},
                         bert::Config{}, setting.tokenizer);
  const tasks::Logits outputs{.outputs = 2, .values = {100, 0, 0, 0, 0, 0}};
  task.write_evaluation(io::Files::system(), setting.directory / "", outputs);
  CHECK(task.write_predictions(io::Files::system(), setting.directory / "", outputs) ==
        (setting.directory / "msmarco_predictions.tsv").string() + ": 3 passages of 2 queries ranked");
  const auto file = [&](const char* name) { return support::read_text(setting.directory / name); };
  for (const char* const name : {"eval_msmarco_predictions.tsv", "msmarco_predictions.tsv"})
    CHECK(file(name) == "1\tp2\t1\n1\tp1\t2\n2\tp1\t1\n");
  CHECK(file("predictions.tsv") == "query_id\tpassage_id\tscore\n1\tp1\t-100\n1\tp2\t-0.6931472\n2\tp1\t-0.6931472\n");
}

TEST_CASE("a file of candidates that changes while it is read is refused") {
  const Setting setting;
  const RankingTask task = setting.task();
  const auto refusal = [&](const std::string& text) {
    setting.write_candidates(text);
    const auto stream = task.streamed(File::evaluation)->open(16);
    const std::string line = support::refusal(Failure::input, [&] {
      while (stream->next_part() > 0) continue;
    });
    return line.substr(line.find("candidates.tsv"));
  };
  CHECK(refusal("1\tp1\ta\tb\n1\tp2\ta\tc\n1\tp3\ta\td\n") == "candidates.tsv: expected 2 candidates as before, got 3");
  CHECK(refusal("1\tp1\ta\tb\n") == "candidates.tsv: expected 2 candidates as before, got 1");
}
