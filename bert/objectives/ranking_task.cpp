// The losses, the figures and the files of passage ranking.
#include "bert/objectives/ranking_task.h"

#include <fmt/format.h>

#include <cmath>

#include "bert/tasks/labels.h"
#include "bert/tasks/score_files.h"
#include "io/error.h"
#include "io/file_replacer.h"
#include "io/say.h"
#include "io/units.h"

namespace bertrand::objectives {
namespace {

/// Candidates part by part. Each replica reads all lines and encodes its share.
class CandidateStream : public ExampleStream {
 public:
  CandidateStream(const tasks::CandidateList& list, const text::Tokenizer& tokenizer,
                  const tasks::RankingLengths& lengths, std::int64_t part)
      : list_(list), reader_(list.file()), encoder_(tokenizer, lengths), part_(part) {}

  std::int64_t next_part() override {
    texts_.clear();
    while (std::ssize(texts_) < part_) {
      const auto candidate = reader_.next();
      if (!candidate) break;
      texts_.emplace_back(candidate->query, candidate->passage);
    }
    read_ += std::ssize(texts_);
    if (read_ > list_.size() || (texts_.empty() && read_ < list_.size()))
      fail(Failure::input, "{}: expected {} candidates as before, got {}", list_.file().string(), list_.size(), read_);
    return std::ssize(texts_);
  }

  tasks::EncodedDataset encode(const distributed::Share& share) override {
    tasks::EncodedDataset examples;
    for (std::int64_t i = share.first; i < share.end(); ++i) {
      const auto& [query, passage] = texts_[static_cast<std::size_t>(i)];
      encoder_.append(query, passage, examples);
    }
    return examples;
  }

 private:
  const tasks::CandidateList& list_;
  tasks::CandidateReader reader_;
  tasks::RankingEncoder encoder_;
  const std::int64_t part_;
  std::vector<std::pair<std::string, std::string>> texts_;  // query and passage
  std::int64_t read_ = 0;
};

/// The classes of a passage, in the order of the outputs.
const std::vector<std::string> kClasses = {"not_relevant", "relevant"};

/// The config as it is to be written. A model that is used as it is keeps its names.
bert::Config config_of_task(bert::Config config, const std::string& file, bool training) {
  bert::require_pairs(config, file, "a query and a passage");
  const auto type = [](tasks::Kind kind) { return std::string(io::name_in(tasks::problem_types(), kind)); };
  const std::string one_output = type(tasks::Kind::multi_label);  // one label that holds or not
  const bool fits_one = config.problem_type.empty() || config.problem_type == one_output;
  const bool has_one = config.labels.size() == 1 && (fits_one || !training);
  const std::string expected = has_one ? one_output : type(tasks::Kind::classification);
  if (!training && !config.problem_type.empty() && config.problem_type != expected)
    fail(Failure::model,
         "{}: problem_type: expected {} for --task msmarco, got {}; hint: --train makes another model of it", file,
         expected, config.problem_type);
  if (!training && !config.labels.empty() && !has_one && config.labels.size() != 2)
    fail(Failure::model,
         "{}: id2label: expected 1 or 2 labels for --task msmarco, got {}; hint: --train makes another model of it",
         file, tasks::in_braces(config.labels));
  if (!training && config.labels.size() == 2 && config.labels[0] == kClasses[1])
    fail(Failure::model,
         "{}: id2label: expected the class of relevant passages second for --task msmarco, got {}; hint: --train makes "
         "another model of it",
         file, tasks::in_braces(config.labels));
  config.architectures = {"BertForSequenceClassification"};
  config.problem_type = expected;
  if (training || config.labels.empty() || tasks::LabelSet(config.labels).placeholders())
    config.labels = has_one ? std::vector{kClasses[1]} : kClasses;
  return config;
}

/// log p(relevant), or log p(not relevant), in double.
double log_probability(std::span<const float> outputs, bool relevant) {
  const double logit = outputs.size() == 1 ? outputs[0] : static_cast<double>(outputs[1]) - outputs[0];
  const double against = relevant ? -logit : logit;
  return against > 0 ? -against - std::log1p(std::exp(-against)) : -std::log1p(std::exp(against));
}

std::vector<double> scores_of(const tasks::Logits& outputs) {
  std::vector<double> scores;
  scores.reserve(outputs.rows());
  for (std::size_t i = 0; i < outputs.rows(); ++i) {
    outputs.let_go(i);  // for memory alone
    scores.push_back(log_probability(outputs.row(i), true));
  }
  return scores;
}

/// MSMARCO's form: query id, passage id, rank from 1.
void write_ranking(io::Files& files, const std::filesystem::path& file, const tasks::CandidateList& candidates,
                   const std::vector<double>& scores) {
  io::FileReplacer out(files, file);
  const auto ranked = candidates.ranked(scores);
  for (std::size_t query = 0; query < ranked.size(); ++query) {
    std::string text;
    for (std::size_t rank = 0; rank < ranked[query].size(); ++rank)
      text +=
          fmt::format("{}\t{}\t{}\n", candidates.queries()[query], candidates.passage(ranked[query][rank]), rank + 1);
    out.write(text);
  }
  out.publish();
}

void write_scores(io::Files& files, const std::filesystem::path& file, const tasks::CandidateList& candidates,
                  const std::vector<double>& scores) {
  io::FileReplacer out(files, file);
  out.write("query_id\tpassage_id\tscore\n");
  std::string text;
  for (std::int64_t i = 0; i < candidates.size(); ++i) {
    text += fmt::format("{}\t{}\t{}\n", candidates.queries()[static_cast<std::size_t>(candidates.query_of(i))],
                        candidates.passage(i), static_cast<float>(scores[static_cast<std::size_t>(i)]));
    if (text.size() < std::size_t{1} << 20 && i + 1 < candidates.size()) continue;
    out.write(text);
    text.clear();
  }
  out.publish();
}

}  // namespace

RankingTask::RankingTask(const Inputs& inputs, bert::Config config, const text::Tokenizer& tokenizer)
    : FineTuningTask(config_of_task(std::move(config), inputs.config_file.string(), !inputs.train.empty()), tokenizer),
      inputs_(inputs) {
  tasks::RankingEncoder encoder(tokenizer, inputs.lengths);
  std::vector<std::string>* const bad = inputs.keep_bad_rows ? &bad_rows_ : nullptr;
  if (!inputs.train.empty()) train_ = tasks::read_triples(inputs.train, encoder, inputs.spill, bad);
  if (!inputs.evaluation.empty()) evaluation_.emplace(inputs.evaluation, bad);
  if (!inputs.prediction.empty()) prediction_.emplace(inputs.prediction, bad);
  if (!inputs.qrels.empty()) qrels_ = tasks::read_qrels(inputs.qrels);
}

std::unique_ptr<bert::TaskModel> RankingTask::make_model() const {
  return std::make_unique<bert::ForSequenceClassification>(config_, std::ssize(config_.labels));
}

const tasks::EncodedDataset* RankingTask::examples(File file) const {
  return file == File::train && train_ ? &train_->encoded : nullptr;
}

std::optional<StreamedFile> RankingTask::streamed(File file) const {
  if (file == File::train || !candidates(file)) return std::nullopt;
  const tasks::CandidateList& list = *candidates(file);
  return StreamedFile{
      .examples = list.size(), .most_tokens = inputs_.lengths.sequence, .open = [this, &list](std::int64_t part) {
        return std::make_unique<CandidateStream>(list, tokenizer_, inputs_.lengths, part);
      }};
}

std::size_t RankingTask::other_bytes() const {
  std::size_t bytes = 0;
  for (const auto* list : {&evaluation_, &prediction_})
    if (*list) bytes += (*list)->bytes();
  return bytes;
}

Variable RankingTask::loss(const Variable& outputs, const bert::PackedBatch&, std::span<const std::int64_t> numbers,
                           double divisor) const {
  std::vector<std::int32_t> relevant;  // the first example of a triple
  for (const std::int64_t number : numbers) relevant.push_back(number % 2 == 0 ? 1 : 0);
  Backend& backend = outputs.value().backend();
  if (config_.labels.size() == 2)
    return softmax_cross_entropy(outputs, ops::from_host(relevant, {std::ssize(relevant)}, backend), divisor);
  const std::vector<float> wanted(relevant.begin(), relevant.end());
  const Tensor target = ops::cast(ops::from_host(wanted, outputs.shape(), backend), outputs.value().dtype());
  return binary_cross_entropy_with_logits(outputs, target, divisor);
}

training::Metrics RankingTask::evaluate(const tasks::Logits& outputs) const {
  const tasks::CandidateList& list = *evaluation_;
  double loss = 0;
  for (std::int64_t i = 0; i < list.size(); ++i) {
    outputs.let_go(static_cast<std::size_t>(i));  // for memory alone
    const auto found = qrels_.find(list.queries()[static_cast<std::size_t>(list.query_of(i))]);
    const bool relevant = found != qrels_.end() && found->second.contains(list.passage(i));
    loss -= log_probability(outputs.row(static_cast<std::size_t>(i)), relevant);
  }
  tasks::RankingCounter counter(qrels_);
  const auto ranked = list.ranked(scores_of(outputs));
  for (std::size_t query = 0; query < ranked.size(); ++query) {
    std::vector<std::string> passages;
    for (const std::int64_t line : ranked[query]) passages.emplace_back(list.passage(line));
    counter.add(list.queries()[query], passages);
  }
  training::Metrics metrics = {{"eval_loss", loss / static_cast<double>(list.size())}};
  for (const auto& [name, value] : counter.means()) metrics.push_back({"eval_" + name, value});
  return metrics;
}

void RankingTask::write_evaluation(io::Files& files, const std::filesystem::path& directory,
                                   const tasks::Logits& outputs) const {
  write_ranking(files, directory / "eval_msmarco_predictions.tsv", *evaluation_, scores_of(outputs));
}

std::string RankingTask::write_predictions(io::Files& files, const std::filesystem::path& directory,
                                           const tasks::Logits& outputs) const {
  const std::vector<double> scores = scores_of(outputs);
  const std::filesystem::path file = directory / "msmarco_predictions.tsv";
  write_scores(files, directory / "predictions.tsv", *prediction_, scores);
  write_ranking(files, file, *prediction_, scores);
  return fmt::format("{}: {} of {} ranked", file.string(), io::counted(prediction_->size(), "passage"),
                     io::counted(prediction_->queries().size(), "query"));
}

std::string RankingTask::warnings() const {
  std::string text;
  const auto add_invalid = [&](const std::filesystem::path& file, const text::InvalidBytes& invalid) {
    if (invalid.count > 0) text += io::warning("{}", invalid.message(file.string()));
  };
  if (train_) add_invalid(inputs_.train, train_->invalid);
  for (const auto* list : {&evaluation_, &prediction_}) {
    if (!*list) continue;
    add_invalid((*list)->file(), (*list)->invalid());
    if (const std::string warning = (*list)->repeated().warning(); !warning.empty())
      text += io::warning("{}: {}", (*list)->file().string(), warning);
  }
  if (!evaluation_) return text;
  tasks::RankingCounter counter(qrels_);
  for (const std::string& query : evaluation_->queries()) counter.add(query, {});
  for (const std::string& warning : counter.warnings()) text += io::warning("{}: {}", inputs_.qrels.string(), warning);
  return text;
}

}  // namespace bertrand::objectives
