#include "apps/finetune/make_task.h"

#include <algorithm>

#include "bert/directory/config_file.h"
#include "bert/objectives/classification_task.h"
#include "bert/objectives/ranking_task.h"
#include "bert/objectives/span_task.h"
#include "bert/objectives/token_task.h"
#include "io/error.h"
#include "io/json.h"
#include "tensor/backends.h"
#include "training/run/run_config.h"
#include "training/run/run_files.h"

namespace bertrand::finetune {
namespace {

objectives::SpanTask::Options span_options(const Options& options, int max_length) {
  const bool version_2 = options.task == "squad2";
  objectives::SpanTask::Options spans;
  spans.windows = {.max_seq_length = max_length,
                   .doc_stride = options.doc_stride.value_or(spans.windows.doc_stride),
                   .max_query_length = options.max_query_length,
                   .version_2 = version_2,
                   .threads = options.settings.threads.value_or(available_cores())};
  spans.answers = {.n_best_size = options.n_best_size,
                   .max_answer_length = options.max_answer_length,
                   .version_2 = version_2,
                   .null_score_diff_threshold = options.null_score_diff_threshold};
  spans.config_file = bert::config_file(options.model);
  return spans;
}

/// --text-pair-column of the run that made a model that is used as it is, if its directory says so.
std::string pair_column_of_model(const Options& options) {
  const std::filesystem::path record = options.model / training::kRunConfig;
  if (!options.train.empty() || options.task != "custom" || !training::is_own_run_config(record)) return "";
  const io::Json settings = io::read_json(record)["settings"];
  const auto column = settings.find("text-pair-column");
  return column != settings.end() && column->is_string() ? column->get<std::string>() : "";
}

constexpr const char* kMultipleChoice = "BertForMultipleChoice";

const char* architecture_of(const Options& options) {
  if (options.finds_spans()) return "BertForQuestionAnswering";
  if (options.token_options()) return "BertForTokenClassification";
  return !options.ranks() && options.make_task().has_choices() ? kMultipleChoice : "BertForSequenceClassification";
}

/// A model that is used as it is must be one for the task, if its config.json says what it is for.
void check_architecture(const Options& options, const bert::Config& config) {
  const char* const expected = architecture_of(options);
  const std::vector<std::string>& known = config.architectures;
  if (!options.train.empty() || known.empty() || std::ranges::count(known, expected) > 0) return;
  const bool lacks_columns = options.task == "custom" && std::ranges::count(known, kMultipleChoice) > 0;
  fail(Failure::model, "{}: architectures: expected {} for --task {}, got {}; hint: {}",
       bert::config_file(options.model).string(), expected, options.task, fmt::join(known, ", "),
       lacks_columns ? "--choice-columns has the texts to choose from" : "--train makes one of it");
}

}  // namespace

std::unique_ptr<objectives::FineTuningTask> make_task(const Options& options, const bert::Config& config,
                                                      const text::Tokenizer& tokenizer) {
  check_architecture(options, config);
  const int max_length = static_cast<int>(*options.settings.max_seq_length);
  const io::SpillPlace spill{.directory = options.settings.spill_directory()};
  if (options.ranks())
    return std::make_unique<objectives::RankingTask>(
        objectives::RankingTask::Inputs{.train = options.train,
                                        .evaluation = options.evaluation,
                                        .prediction = options.prediction,
                                        .qrels = options.qrels,
                                        .lengths = {.sequence = max_length, .query = options.max_query_length},
                                        .spill = spill,
                                        .keep_bad_rows = options.settings.validate_only,
                                        .config_file = bert::config_file(options.model)},
        config, tokenizer);
  constexpr auto keep = tasks::OnBadRow::keep;
  const tasks::TaskFiles files{.train = options.train,
                               .evaluation = options.evaluation,
                               .prediction = options.prediction,
                               .held_out = {.share = options.eval_split, .seed = options.split_seed()},
                               .on_bad = options.settings.validate_only ? keep : tasks::OnBadRow::fail,
                               .on_bad_prediction = options.settings.validate_only ? keep : options.on_bad_row,
                               .spill = spill};
  if (options.finds_spans())
    return std::make_unique<objectives::SpanTask>(files, span_options(options, max_length), config, tokenizer);
  const tasks::ModelOutputs model{.config = bert::config_file(options.model),
                                  .problem_type = config.problem_type,
                                  .labels = config.labels,
                                  .token_types = config.type_vocab_size,
                                  .pair_column = pair_column_of_model(options)};
  if (auto words = options.token_options()) {
    words->windows.max_length = max_length;
    return std::make_unique<objectives::TokenTask>(tasks::read_token_data(*words, files, model, tokenizer), config,
                                                   tokenizer);
  }
  return std::make_unique<objectives::ClassificationTask>(
      tasks::read_task_data(options.make_task(), files, model, tokenizer, max_length), config, tokenizer,
      objectives::ClassificationTask::Options{.balanced = options.class_weights == "balanced",
                                              .weights = options.class_weight_numbers(),
                                              .label_smoothing = options.label_smoothing,
                                              .by_heart = options.settings.overfit_batch});
}

}  // namespace bertrand::finetune
