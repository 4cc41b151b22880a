#include "bert/objectives/classification_task.h"

#include <doctest/doctest.h>

#include <cmath>

#include "autograd/engine.h"
#include "bert/tasks/task.h"
#include "support/program.h"
#include "support/refusal.h"
#include "tensor/backends.h"

using namespace bertrand;
using namespace bertrand::objectives;

TEST_CASE("samples are rows evenly spread over a table, and all of them if there are no more") {
  const support::TemporaryDirectory directory;
  const text::Tokenizer tokenizer(text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n", "vocab"));
  std::string rows = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n";
  for (const char* row : {"1\t1\t2\ta\tb", "0\t3\t4\tb\ta", "1\t5\t6\ta a\tb", "0\t7\t8\tb\tb"})
    rows += row + std::string("\n");
  support::write_text(directory / "dev.tsv", rows);
  const ClassificationTask task(
      tasks::read_task_data(tasks::named_task("mrpc"), {.evaluation = directory / "dev.tsv"},
                            {.config = "", .problem_type = "", .labels = {"0", "1"}}, tokenizer, 8),
      bert::Config{}, tokenizer, {});
  const tasks::Logits outputs{.outputs = 2, .values = {0, 1, 0, 1, 1, 0, 0, 0}};
  const auto texts = [&](std::size_t most) {
    std::vector<std::string> found;
    for (const FineTuningTask::Sample& sample : task.samples(outputs, most))
      found.push_back(sample.text + ", " + sample.truth + ": " + sample.prediction);
    return found;
  };
  const std::vector<std::string> all = {"a | b, 1: 1 73.1 %", "b | a, 0: 1 73.1 %", "a a | b, 1: 0 73.1 %",
                                        "b | b, 0: 0 50.0 %"};
  CHECK(texts(9) == all);
  CHECK(texts(4) == all);
  CHECK(texts(2) == std::vector<std::string>{all[0], all[2]});
  CHECK(texts(0).empty());
}

namespace {

struct Setting {
  support::TemporaryDirectory directory;
  text::Tokenizer tokenizer{text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n", "vocab")};

  /// A task of one's own columns, text and label.
  ClassificationTask task(tasks::Kind kind, const std::string& rows, const std::vector<std::string>& labels,
                          const ClassificationTask::Options& options = {}) const {
    support::write_text(directory / "rows.csv", "text,label\n" + rows);
    const bool trains = labels.empty();
    tasks::TaskFiles files;
    (trains ? files.train : files.evaluation) = directory / "rows.csv";
    return {tasks::read_task_data(tasks::custom_task({.kind = kind, .columns = {.text = "text", .label = "label"}}),
                                  files, {.config = "", .problem_type = "", .labels = labels}, tokenizer, 8),
            bert::Config{}, tokenizer, options};
  }
};

}  // namespace

TEST_CASE("a sample of several labels has the names of those that are true and predicted, and one of a number both") {
  const Setting setting;
  const auto of = [](const ClassificationTask& task, const tasks::Logits& outputs) {
    std::vector<std::string> found;
    for (const FineTuningTask::Sample& sample : task.samples(outputs, 9))
      found.push_back(sample.text + ": " + sample.truth + ": " + sample.prediction);
    return found;
  };
  const ClassificationTask several = setting.task(tasks::Kind::multi_label, "a,\"x,y\"\nb,y\na b,x\n", {"x", "y"});
  CHECK(of(several, {.outputs = 2, .values = {1, -1, -1, 1, 1, 1}}) ==
        std::vector<std::string>{"a: x, y: x", "b: y: y", "a b: x: x, y"});
  const ClassificationTask number = setting.task(tasks::Kind::regression, "a,2.5\nb,-1\n", {"LABEL_0"});
  CHECK(of(number, {.outputs = 1, .values = {1.25F, 3}}) == std::vector<std::string>{"a: 2.5: 1.25", "b: -1: 3"});
}

TEST_CASE("a number to learn is not rounded to the precision of the outputs") {
  const Setting setting;
  const ClassificationTask task = setting.task(tasks::Kind::regression, "a,1.003\n", {});
  const auto backend = open_cpu({.threads = 1});
  const Tensor output = ops::cast(ops::from_host(std::vector<float>{1}, {1, 1}, *backend), DType::bf16);
  const std::int64_t numbers[] = {0};
  const double loss = ops::item(task.loss(Variable(output), {}, numbers, 1).value());
  CHECK(loss > 1e-6);  // 9e-6, and 0 if 1.003 were rounded to 1
  const Variable near(ops::from_host(std::vector<double>{static_cast<double>(1.003F) + 1e-9}, {1, 1}, *backend));
  CHECK(ops::item(task.loss(near, {}, numbers, 1).value()) > 0);  // 1e-18, and 0 if f64 were rounded to f32
}

TEST_CASE("an evaluation's files have each row and the figures of each class, and of a number the rows alone") {
  const Setting setting;
  const auto write = [&](const ClassificationTask& task, const tasks::Logits& outputs) {
    task.write_evaluation(io::Files::system(), setting.directory / "", outputs);
    return support::read_text(setting.directory / "eval_rows.jsonl");
  };
  CHECK(
      write(setting.task(tasks::Kind::regression, "a,0.5\n", {"LABEL_0"}), {.outputs = 1, .values = {2}}) ==
      R"({"task":"custom","kind":"regression","rows":1,"labels":[],"positive":1,"metrics":["pearson","spearman"],"given":1}
{"id":"0","text":"a","tokens":3,"label":0.5,"prediction":2.0}
)");
  CHECK_FALSE(std::filesystem::exists(setting.directory / "eval_report.tsv"));
  CHECK(
      write(setting.task(tasks::Kind::classification, "a,x\na b,x\n", {"x", "y"}),
            {.outputs = 2, .values = {0, 0, 0, 200}}) ==
      R"({"task":"custom","kind":"classification","rows":2,"labels":["x","y"],"positive":1,"metrics":["accuracy","f1"],"given":2}
{"id":"0","text":"a","tokens":3,"label":0,"prediction":0,"probabilities":[0.5,0.5]}
{"id":"1","text":"a b","tokens":4,"label":0,"prediction":1,"probabilities":[0.0,1.0]}
)");
  CHECK(support::read_text(setting.directory / "eval_report.tsv") ==
        "label\tprecision\trecall\tf1\tsupport\nx\t1.0000\t0.5000\t0.6667\t2\ny\t0.0000\t0.0000\t0.0000\t0\n"
        "macro avg\t0.5000\t0.2500\t0.3333\t2\nweighted avg\t1.0000\t0.5000\t0.6667\t2\n\n"
        "true \\ predicted\tx\ty\nx\t1\t1\ny\t0\t0\n");
  CHECK(
      write(setting.task(tasks::Kind::multi_label, "a,\"x,y\"\n", {"x", "y"}), {.outputs = 2, .values = {-200, 0}}) ==
      R"({"task":"custom","kind":"multi-label","rows":1,"labels":["x","y"],"positive":1,"metrics":["micro_f1","macro_f1","accuracy"],"given":1}
{"id":"0","text":"a","tokens":3,"label":[0,1],"prediction":[1],"probabilities":[0.0,0.5]}
)");
  CHECK(support::read_text(setting.directory / "eval_report.tsv") ==
        "label\tprecision\trecall\tf1\tsupport\nx\t0.0000\t0.0000\t0.0000\t1\ny\t1.0000\t1.0000\t1.0000\t1\n"
        "macro avg\t0.5000\t0.5000\t0.5000\t2\nweighted avg\t0.5000\t0.5000\t0.5000\t2\n");
}

TEST_CASE("the loss of several labels is the mean over rows and labels") {
  const Setting setting;
  const ClassificationTask task = setting.task(tasks::Kind::multi_label, "a,\"x,y\"\nb,z\n", {});
  const auto backend = open_cpu({.threads = 1});
  const Variable undecided(ops::full({2, 3}, 0, DType::f32, *backend));
  const std::int64_t numbers[] = {0, 1};
  CHECK(ops::item(task.loss(undecided, {}, numbers, 2).value()) == doctest::Approx(0.693147));  // of each: log 2
}

TEST_CASE("weights of classes and smoothed labels are for classes, and there is a weight for each") {
  const Setting setting;
  const auto refusal = [&](tasks::Kind kind, const std::string& rows, const ClassificationTask::Options& options) {
    return support::refusal(Failure::usage, [&] { setting.task(kind, rows, {}, options); });
  };
  const std::string classes = "a,x\nb,y\na b,y\n", scores = "a,1\nb,2\n";
  for (const ClassificationTask::Options& options :
       {ClassificationTask::Options{.balanced = true}, ClassificationTask::Options{.weights = {1, 3}},
        ClassificationTask::Options{.label_smoothing = 0.1}}) {
    CHECK(refusal(tasks::Kind::classification, classes, options) == "");
    CHECK(refusal(tasks::Kind::regression, scores, options).starts_with("--class-weights, --label-smoothing: "));
  }
  CHECK(refusal(tasks::Kind::regression, scores, {}) == "");
  CHECK(refusal(tasks::Kind::classification, classes, {.weights = {1, 2, 3}}).starts_with("--class-weights: "));

  const std::int64_t numbers[] = {0, 1, 2};  // of x, y and y
  const auto task = [&](const ClassificationTask::Options& options) {
    return setting.task(tasks::Kind::classification, classes, {}, options);
  };
  CHECK(task({}).divisor(numbers) == 3);
  CHECK(task({.weights = {1, 3}}).divisor(numbers) == 7);
  CHECK(task({.balanced = true}).divisor(numbers) == doctest::Approx(3));  // 1.5 + 0.75 + 0.75
  CHECK(task({}).remarks() == "");
  CHECK(task({.weights = {1, 3}}).remarks().find("x=1, y=3\n") != std::string::npos);
}

TEST_CASE("a loss that is to be learnt by heart falls to nothing though labels are smoothed otherwise") {
  const Setting setting;
  const auto backend = open_cpu({.threads = 1});
  const Variable sure(ops::from_host(std::vector<float>{30, 0}, {1, 2}, *backend));
  const std::int64_t numbers[] = {0};
  const auto loss = [&](bool by_heart) {
    const ClassificationTask task =
        setting.task(tasks::Kind::classification, "a,x\nb,y\n", {}, {.label_smoothing = 0.1, .by_heart = by_heart});
    return ops::item(task.loss(sure, {}, numbers, 1).value());
  };
  CHECK(loss(true) < 1e-6);
  CHECK(loss(false) > 1);  // a twentieth of the target is on the other class: 30 / 20
}

TEST_CASE("the loss of choices is the cross-entropy of the scores of each row, and so is its gradient") {
  const Setting setting;
  const std::string file = setting.directory / "choices.csv";
  support::write_text(file, "q,x,y,z,label\na,a,b,a b,z\nb,b,a,b b,x\n");
  const ClassificationTask task(
      tasks::read_task_data(tasks::custom_task({.columns = {.text = "q", .choices = "x,y,z"}}), {.train = file},
                            {.config = "", .problem_type = "single_label_classification", .labels = {"yes", "no"}},
                            setting.tokenizer, 8),
      bert::Config{.labels = {"yes", "no"}, .problem_type = "single_label_classification"}, setting.tokenizer, {});
  CHECK(task.sequences_of_example() == 3);
  CHECK(task.make_model()->outputs() == 1);
  const bert::Config config = task.directory().config;
  CHECK(config.architectures == std::vector<std::string>{"BertForMultipleChoice"});
  CHECK(config.problem_type.empty());
  CHECK(config.labels.empty());

  const auto backend = open_cpu({.threads = 1});
  // Row 1 comes first, whose right choice is x, then row 0, whose is z.
  const std::vector<double> scores = {0.5, -1, 2, 1, 0.25, -0.75};
  const Variable outputs(ops::from_host(scores, {6, 1}, *backend), /*requires_grad=*/true);
  const std::int64_t numbers[] = {1, 0};
  CHECK(task.divisor(numbers) == 2);
  const Variable loss = task.loss(outputs, {}, numbers, 2);
  double expected = 0;
  std::vector<double> slopes;
  for (std::size_t row = 0; row < 2; ++row) {
    const std::size_t right = row == 0 ? 0 : 2;
    double sum = 0;
    for (std::size_t i = 0; i < 3; ++i) sum += std::exp(scores[3 * row + i]);
    expected -= std::log(std::exp(scores[3 * row + right]) / sum) / 2;
    for (std::size_t i = 0; i < 3; ++i) slopes.push_back((std::exp(scores[3 * row + i]) / sum - (i == right)) / 2);
  }
  CHECK(ops::item(loss.value()) == doctest::Approx(expected).epsilon(1e-12));
  backward(loss);
  const std::vector<double> gradient = ops::to_host<double>(outputs.grad());
  for (std::size_t i = 0; i < slopes.size(); ++i) CHECK(gradient[i] == doctest::Approx(slopes[i]).epsilon(1e-12));
}
