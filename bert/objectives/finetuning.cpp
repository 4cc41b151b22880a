// The steps and the evaluation of fine-tuning.
#include "bert/objectives/finetuning.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "distributed/exchange.h"
#include "io/error.h"
#include "io/item_progress.h"
#include "io/little_endian.h"
#include "io/markdown.h"
#include "io/signals.h"

namespace bertrand::objectives {
namespace {

/// The tokens of example `number`, which is `each` sequences.
std::int64_t tokens_of(const tasks::EncodedDataset& sequences, std::int64_t number, std::int64_t each) {
  return sequences.begin((number + 1) * each) - sequences.begin(number * each);
}

/// The `count` longest examples, each of `each` sequences; at least one, or all if there are fewer; the longest first.
std::vector<std::int64_t> longest(const tasks::EncodedDataset& examples, std::int64_t count, std::int64_t each = 1) {
  std::vector<std::int64_t> numbers;  // a heap whose first is the shortest
  const auto longer = [&](std::int64_t a, std::int64_t b) {
    return tokens_of(examples, a, each) > tokens_of(examples, b, each);
  };
  for (std::int64_t i = 0; i < examples.size() / each; ++i) {
    if (std::ssize(numbers) == count && !longer(i, numbers.front())) continue;
    if (std::ssize(numbers) == count) std::ranges::pop_heap(numbers, longer), numbers.pop_back();
    numbers.push_back(i);
    std::ranges::push_heap(numbers, longer);
  }
  std::ranges::sort_heap(numbers, longer);
  examples.let_go();  // for memory alone
  return numbers;
}

/// `count` examples of the most tokens that the file may have.
tasks::EncodedDataset made_up(std::int64_t count, const StreamedFile& file) {
  tasks::EncodedDataset examples;
  for (std::int64_t i = 0; i < count; ++i) {
    examples.token_ids.append(std::vector<std::int32_t>(static_cast<std::size_t>(file.most_tokens)));
    examples.end_example(static_cast<std::int32_t>(file.most_tokens));
  }
  return examples;
}

/// Example i of the plan is the i-th longest of the training file.
class LargestFineTuning : public FineTuningObjective {
 public:
  LargestFineTuning(const FineTuningTask& task, std::int64_t count, const distributed::Replica& self)
      : FineTuningObjective(task, count, self, /*quiet=*/true),
        longest_(longest(*task.examples(File::train), count, task.sequences_of_example())) {}

  std::int64_t examples(std::int64_t) override { return std::ssize(longest_); }
  std::int64_t begin_step(const training::StepExamples& step, const distributed::Share& mine) override {
    training::StepExamples real = step;
    for (std::int64_t& number : real.numbers) number = longest_[static_cast<std::size_t>(number)];
    return FineTuningObjective::begin_step(real, mine);
  }
  std::int64_t tokens(std::int64_t epoch, std::int64_t example) const override {
    return FineTuningObjective::tokens(epoch, longest_[static_cast<std::size_t>(example)]);
  }
  training::Metrics evaluate() override {
    for (const File file : {File::evaluation, File::prediction}) {
      if (const tasks::EncodedDataset* examples = task_.examples(file))
        outputs_of(*examples, longest(*examples, prediction_batch_));
      if (const auto streamed = task_.streamed(file)) {
        const tasks::EncodedDataset examples = made_up(std::min(prediction_batch_, streamed->examples), *streamed);
        outputs_of(examples, longest(examples, examples.size()));
      }
    }
    return {};
  }

 private:
  const std::vector<std::int64_t> longest_;
};

/// The sequences of examples, `each` for each. Their numbers key their random draws.
bert::PackedBatch pack_examples(const tasks::EncodedDataset& examples, std::span<const std::int64_t> numbers,
                                Backend& backend, std::int64_t each = 1) {
  std::vector<bert::Sequence> sequences;
  for (const std::int64_t number : numbers)
    for (std::int64_t i = number * each; i < (number + 1) * each; ++i)
      sequences.push_back(bert::sequence_of(examples.ids(i), examples.first_length(i), static_cast<std::uint64_t>(i)));
  examples.let_go();  // for memory alone
  return bert::pack(sequences, backend);
}

/// Metrics as bytes, for other replicas: a name, its end, the value.
std::string bytes_of(const training::Metrics& metrics) {
  std::string bytes;
  for (const auto& [name, value] : metrics) {
    bytes.append(name.c_str(), name.size() + 1);
    io::append_fixed(bytes, value);
  }
  return bytes;
}

training::Metrics metrics_of(std::string_view bytes) {
  training::Metrics metrics;
  while (!bytes.empty()) {
    std::string name(bytes.substr(0, bytes.find('\0')));
    bytes.remove_prefix(name.size() + 1);
    metrics.push_back({std::move(name), io::load_fixed<double>(bytes.data())});
    bytes.remove_prefix(sizeof(double));
  }
  return metrics;
}

}  // namespace

FineTuningObjective::FineTuningObjective(const FineTuningTask& task, std::int64_t prediction_batch,
                                         const distributed::Replica& self, bool quiet, io::SpillPlace spill)
    : task_(task),
      prediction_batch_(prediction_batch),
      self_(self),
      quiet_(quiet),
      spill_(std::move(spill)),
      model_(task.make_model()) {}

std::int64_t FineTuningObjective::examples(std::int64_t) { return training().size() / task_.sequences_of_example(); }

std::int64_t FineTuningObjective::tokens(std::int64_t, std::int64_t example) const {
  return tokens_of(training(), example, task_.sequences_of_example());
}

std::int64_t FineTuningObjective::begin_step(const training::StepExamples& step, const distributed::Share&) {
  numbers_ = step.numbers;
  divisor_ = task_.divisor(numbers_);
  std::int64_t sum = 0;
  for (const std::int64_t number : numbers_) sum += tokens_of(training(), number, task_.sequences_of_example());
  return sum;
}

std::vector<training::LossPart> FineTuningObjective::loss(std::int64_t first, std::int64_t count, std::uint64_t key) {
  const auto numbers = std::span(numbers_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  const bert::PackedBatch batch = pack_examples(training(), numbers, self_.backend(), task_.sequences_of_example());
  return {{"loss", task_.loss((*model_)(batch, batch.randomness(key)), batch, numbers, divisor_)}};
}

Tensor FineTuningObjective::outputs_of(const tasks::EncodedDataset& examples,
                                       std::span<const std::int64_t> numbers) const {
  const NoGrad no_grad;
  return (*model_)(pack_examples(examples, numbers, self_.backend()), {}).value();
}

std::int64_t FineTuningObjective::first_row(const tasks::EncodedDataset& examples, std::int64_t number) const {
  return model_->rows() == bert::TaskModel::Rows::sequences ? number : examples.begin(number);
}

void FineTuningObjective::compute(const tasks::EncodedDataset& examples, const Range& range,
                                  std::span<float> rows) const {
  const std::int64_t row = first_row(examples, range.first);
  const auto begin_of = [&](std::int64_t number) { return (first_row(examples, number) - row) * model_->outputs(); };
  for (std::int64_t first = range.first; first < range.end && !io::stop_requested(); first += prediction_batch_) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(std::min(prediction_batch_, range.end - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    const std::vector<float> values = ops::to_host<float>(outputs_of(examples, numbers));
    const auto bad = std::ranges::find_if_not(values, [](float x) { return std::isfinite(x); });
    if (bad != values.end()) {
      const std::int64_t at = begin_of(first) + (bad - values.begin());
      while (begin_of(first + 1) <= at) ++first;
      fail(Failure::numerics, "example {}: {}: expected finite outputs, got {}; hint: are the weights finite?",
           (range.number + first - range.first) / task_.sequences_of_example(),
           task_.head().substr(0, task_.head().find('.')), *bad);
    }
    std::ranges::copy(values, rows.begin() + begin_of(first));
  }
}

std::int64_t FineTuningObjective::examples_of_part() const {
  constexpr std::int64_t kBatches = 16;  // of each replica
  return kBatches * prediction_batch_ * self_.size();
}

tasks::Logits FineTuningObjective::predict_held(const tasks::EncodedDataset& examples, bool shows_progress) const {
  tasks::Logits logits{.outputs = outputs()};
  io::ItemProgress progress("predicting", examples.size() / task_.sequences_of_example());
  std::vector<float> rows;
  for (std::int64_t first = 0, count = 0; first < examples.size(); first += count) {
    count = std::min(examples_of_part(), examples.size() - first);
    const std::int64_t row = first_row(examples, first);
    const auto begin_of = [&](std::int64_t i) { return (first_row(examples, first + i) - row) * model_->outputs(); };
    const distributed::Share mine = distributed::share_of(count, self_.rank(), self_.size());
    rows.resize(static_cast<std::size_t>(begin_of(count)));
    compute(examples, {first + mine.first, first + mine.end(), first + mine.first},
            std::span(rows).subspan(static_cast<std::size_t>(begin_of(mine.first))));
    if (distributed::any(self_, io::stop_requested()))
      fail(Failure::interrupted, "interrupted while predicting: nothing was written; hint: run the command again");
    distributed::gather<float>(self_, rows, count, begin_of);
    if (!self_.first()) continue;
    logits.values.append(rows);
    logits.values.spill_if_due(spill_);
    if (shows_progress && !quiet_) progress.update((first + count) / task_.sequences_of_example());
  }
  logits.values.finish(spill_);
  return logits;
}

tasks::Logits FineTuningObjective::predict_streamed(const StreamedFile& file, KeptOutputs* kept) const {
  check(model_->rows() == bert::TaskModel::Rows::sequences, "streamed examples: expected one row of outputs each");
  const std::unique_ptr<ExampleStream> stream = file.open(examples_of_part());
  const std::int64_t resumed = distributed::broadcast_value(self_, kept ? kept->rows() : -1);  // -1: nothing is kept
  tasks::Logits logits{.outputs = outputs()};
  io::ItemProgress progress("predicting", file.examples);
  std::vector<float> rows;
  std::int64_t row = 0;
  bool begun = false;
  const auto begin = [&] {
    begun = true;
    if (!kept) return;
    kept->truncate(row);
    logits.values.append(kept->values());
    logits.values.spill_if_due(spill_);
  };
  for (std::int64_t part; (part = stream->next_part()) > 0; row += part) {
    if (row + part <= resumed) continue;
    if (!begun) {
      begin();
      progress.begin(row);
    }
    rows.resize(static_cast<std::size_t>(part) * outputs());
    const distributed::Share mine = distributed::share_of(part, self_.rank(), self_.size());
    const tasks::EncodedDataset examples = stream->encode(mine);
    compute(examples, {0, mine.count, row + mine.first},
            std::span(rows).subspan(static_cast<std::size_t>(mine.first) * outputs()));
    if (distributed::any(self_, io::stop_requested()))
      fail(Failure::interrupted, "interrupted after {} of {} predictions{}", row, file.examples,
           resumed >= 0 ? ": they are kept; hint: --resume goes on" : "");
    distributed::gather<float>(self_, rows, part);
    if (kept) kept->append(rows);
    if (!self_.first()) continue;
    logits.values.append(rows);
    logits.values.spill_if_due(spill_);
    if (!quiet_) progress.update(row + part);
  }
  if (!begun) begin();  // all was kept
  logits.values.finish(spill_);
  return logits;
}

std::optional<tasks::Logits> FineTuningObjective::predict(File file, KeptOutputs* kept) const {
  if (const tasks::EncodedDataset* examples = task_.examples(file))
    return predict_held(*examples, file == File::prediction);
  if (const auto streamed = task_.streamed(file)) return predict_streamed(*streamed, kept);
  return std::nullopt;
}

training::Metrics FineTuningObjective::evaluate() {
  evaluated_ = {};  // before the next ones need memory
  std::optional<tasks::Logits> outputs = predict(File::evaluation);
  if (!outputs) return {};
  if (!self_.first()) return metrics_of(distributed::broadcast(self_, ""));
  evaluated_ = *std::move(outputs);
  const training::Metrics metrics = task_.evaluate(evaluated_);
  distributed::broadcast(self_, bytes_of(metrics));
  return metrics;
}

std::optional<double> FineTuningObjective::score(const training::Metrics& evaluation) const {
  if (evaluation.empty()) return std::nullopt;
  return task_.score(evaluation);
}

std::vector<std::pair<std::string, std::string>> FineTuningObjective::figures_in_words() const {
  const std::vector<tasks::Figure> figures = task_.judged_by();
  std::vector<std::pair<std::string, std::string>> words = {{"best_model_by", tasks::deciding(figures)}};
  for (const tasks::Figure& figure : figures) words.emplace_back("eval_" + figure.name, figure.meaning);
  return words;
}

void FineTuningObjective::write_evaluation(io::Files& files, const std::filesystem::path& directory) const {
  task_.write_evaluation(files, directory, evaluated_);
}

std::optional<training::Samples> FineTuningObjective::samples() const {
  constexpr std::size_t kSamples = 10;
  const std::vector<FineTuningTask::Sample> rows = task_.samples(evaluated_, kSamples);
  if (rows.empty()) return {};
  std::string table = "| text | is | taken for |\n|---|---|---|\n";
  for (const auto& [text, truth, prediction] : rows)
    table += fmt::format("| {} | {} | {} |\n", io::markdown_cell(text), io::markdown_cell(truth),
                         io::markdown_cell(prediction));
  return training::Samples{.json = "", .markdown = std::move(table)};
}

std::unique_ptr<training::Objective> FineTuningObjective::largest(const distributed::Replica& self,
                                                                  std::int64_t count) const {
  return std::make_unique<LargestFineTuning>(task_, count, self);
}

/// The outputs, and as much again for figures and files that are made of them; and twice the outputs of a part, as they
/// are gathered and before they go to the disk.
std::size_t FineTuningObjective::bytes_of_outputs() const {
  const auto held = [&](std::size_t bytes) {
    return spill_.directory.empty() ? bytes : std::min(bytes, spill_.held_bytes);
  };
  const auto width = static_cast<std::size_t>(model_->outputs());
  std::size_t bytes = 0, part = 0;
  const auto add = [&](std::int64_t count, std::int64_t longest) {
    const auto rows = static_cast<std::size_t>(count);
    const std::size_t figures = rows * sizeof(double);
    bytes += held(rows * width * sizeof(float));
    bytes += model_->rows() == bert::TaskModel::Rows::sequences ? figures : held(figures);
    const auto most = static_cast<std::size_t>(std::min(count, examples_of_part() * longest));
    part = std::max(part, most * width * sizeof(float));
  };
  for (const File file : {File::evaluation, File::prediction}) {
    if (const tasks::EncodedDataset* examples = task_.examples(file)) {
      std::int64_t longest = 1;
      for (std::int64_t i = 0; i < examples->size(); ++i)
        longest = std::max(longest, first_row(*examples, i + 1) - first_row(*examples, i));
      add(first_row(*examples, examples->size()), longest);
    }
    if (const auto streamed = task_.streamed(file)) add(streamed->examples, 1);
  }
  return 2 * (bytes + part);
}

std::size_t FineTuningObjective::data_bytes() const {
  std::size_t bytes = task_.other_bytes();
  for (const File file : {File::train, File::evaluation, File::prediction})
    if (const tasks::EncodedDataset* examples = task_.examples(file)) bytes += examples->bytes();
  return bytes;
}

}  // namespace bertrand::objectives
