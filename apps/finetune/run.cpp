#include "apps/finetune/run.h"

#include <fmt/core.h>

#include <optional>

#include "apps/finetune/options.h"
#include "bert/directory/config_file.h"
#include "bert/directory/model_source.h"
#include "bert/objectives/classification.h"
#include "bert/tasks/predictions.h"
#include "distributed/replica_group.h"
#include "io/crc32c.h"
#include "io/error.h"
#include "io/signals.h"
#include "training/report/results.h"
#include "training/run/run_training.h"

namespace bertrand::finetune {
namespace {

/// Everything of a run that is on the host.
struct Job {
  const Options& options;
  bert::Config config;  ///< as it is to be written
  text::Tokenizer tokenizer;
  tasks::TaskData data;
};

void check_model(const bert::Config& config, const Options& options, const tasks::TaskData& data) {
  const auto has_pairs = [](const std::optional<tasks::Split>& split) {
    return split && split->dataset.examples.front().text_b.has_value();
  };
  if (config.type_vocab_size < 2 && (has_pairs(data.train) || has_pairs(data.evaluation) || has_pairs(data.prediction)))
    fail(Failure::model, "{}: type_vocab_size: expected 2 for pairs of texts, got {}", options.model.string(),
         config.type_vocab_size);
}

/// Fills in --max-seq-length if it was not given.
Job read_job(Options& options) {
  bert::Config config = bert::read_config(options.model);
  options.settings.max_seq_length = options.settings.sequence_length(config.max_position_embeddings);
  text::Tokenizer tokenizer =
      bert::read_tokenizer(options.model, {.vocab_file = options.vocab_file, .cased = options.cased}, config);
  tasks::TaskData data =
      tasks::read_task_data(options.make_task(), {options.train, options.evaluation, options.prediction},
                            {.directory = options.model, .problem_type = config.problem_type, .labels = config.labels},
                            tokenizer, static_cast<int>(*options.settings.max_seq_length));
  check_model(config, options, data);
  config.architectures = {"BertForSequenceClassification"};
  config.problem_type = tasks::problem_type(data.task.kind);
  config.labels = data.labels.names();
  // transformers counts the outputs by the names, so a single score needs one too.
  if (data.task.kind == tasks::Kind::regression) config.labels = {"LABEL_0"};
  return {options, std::move(config), std::move(tokenizer), std::move(data)};
}

tasks::Logits predict_file(const Job& job, const objectives::ClassificationObjective& objective) {
  return job.data.prediction ? objective.predict(job.data.prediction->encoded) : tasks::Logits{};
}

void write_predictions(const Job& job, const tasks::Logits& logits) {
  if (!job.data.prediction) return;
  const tasks::Split& split = *job.data.prediction;
  const std::filesystem::path file = job.options.settings.output / "predictions.tsv";
  io::replace_file(io::Files::system(), file,
                   tasks::predictions_tsv(job.data.task, job.data.labels, split.dataset, logits));
  fmt::print("{}: {} predictions\n", file.string(), split.encoded.size());
}

/// What a run must still be given to be resumed, and what all its processes must have.
training::RunIdentity identity_of(const Job& job) {
  Options options = job.options;
  training::FlagTable table;
  add_own_flags(table, options);
  training::RunIdentity identity{.settings = table.decisive(), .inputs = {}, .other_files = {}};
  for (const auto& file : {options.train, options.evaluation})
    if (!file.empty()) identity.inputs.push_back(file);
  if (!options.prediction.empty()) identity.other_files.push_back(options.prediction);
  const auto given = [](const std::filesystem::path& file) { return file.empty() ? "not given" : "given"; };
  identity.settings.emplace_back("--eval", given(options.evaluation));
  const auto checksum = [](const std::string& text) { return fmt::format("crc32c {:08x}", io::crc32c(text)); };
  identity.settings.emplace_back("--model", checksum(bert::config_text(job.config)));
  identity.settings.emplace_back("--vocab-file", checksum(job.tokenizer.vocabulary().text()));
  return identity;
}

bool is_classifier(const std::string& parameter) { return parameter.starts_with("classifier."); }

/// What a model that was trained for something else lacks.
bool is_head(const std::string& parameter) { return is_classifier(parameter) || parameter.starts_with("bert.pooler."); }

void load_start(const Options& options, nn::ParameterSet& parameters) {
  const nn::LoadReport report = bert::load_weights(options.model, parameters, is_classifier);
  nn::require(report, options.model, is_head);
  fmt::print("{}\n", report.text());
}

/// --predict after training: with the best model, which need not be the last.
void predict_with_result(const Job& job, const training::TrainedReplica& trained) {
  const distributed::Replica& self = trained.self;
  io::catch_stop_signals(io::OnStop::leave);  // the training is saved
  if (self.first()) bert::load_weights(job.options.settings.output, trained.parameters);
  self.collective().broadcast(trained.parameters.values(), 0);
  const auto& objective = static_cast<objectives::ClassificationObjective&>(trained.objective);
  const tasks::Logits logits = predict_file(job, objective);
  if (self.first()) write_predictions(job, logits);
}

/// Without --train: the model as it is.
void apply(const Job& job, const training::RunReplica& replica) {
  const distributed::Replica& self = replica.self;
  objectives::ClassificationObjective objective(
      {job.data, job.config, job.tokenizer, *job.options.settings.micro_batch_size}, self);
  const training::Settings& settings = job.options.settings;
  nn::ParameterSet parameters(objective.model(), self.backend(),
                              {.dtype = settings.precision, .initialize = false, .gradients = false});
  if (self.first()) {
    const nn::LoadReport report = bert::load_weights(job.options.model, parameters);
    nn::require(report, job.options.model, [](const std::string&) { return false; });
    fmt::print("{}\n", report.text());
  }
  self.collective().broadcast(parameters.values(), 0);
  training::Results results;
  if (job.data.evaluation)
    for (const training::Metric& metric : objective.evaluate()) results.metrics[metric.name] = metric.value;
  const tasks::Logits logits = predict_file(job, objective);
  if (!self.first()) return;
  replica.directory->clear();  // now that there is something to put in its place
  if (job.data.evaluation) {
    training::write_results(io::Files::system(), settings.output, results);
    fmt::print("{}", training::results_text(results));
  }
  write_predictions(job, logits);
}

}  // namespace

void run(Options& options) {
  io::catch_stop_signals(options.train.empty() ? io::OnStop::leave : io::OnStop::save);
  std::optional<Job> job;
  const auto read = [&](distributed::Collective* processes) {
    job.emplace(read_job(options));
    if (!processes || processes->rank() == 0) {
      fmt::print(stderr, "{}", job->data.warnings());
      fmt::print("{}", job->data.remarks());
    }
    return identity_of(*job);
  };
  training::TrainingRun run{
      .settings = options.settings,
      .program = "finetune",
      .files = {options.model, options.vocab_file, options.train, options.evaluation, options.prediction},
      .read = read,
      .make_objective =
          [&](const distributed::Replica& self) {
            return std::make_unique<objectives::ClassificationObjective>(
                objectives::ClassificationObjective::Inputs{job->data, job->config, job->tokenizer,
                                                            *options.settings.micro_batch_size},
                self);
          },
      .initialize = [&](nn::ParameterSet& parameters) { load_start(options, parameters); }};
  if (options.train.empty())
    return on_replicas(run, [&](const training::RunReplica& replica) { apply(*job, replica); });
  if (!options.prediction.empty()) {
    run.afterwards_name = "prediction";
    run.afterwards = [&](const training::TrainedReplica& trained) { predict_with_result(*job, trained); };
  }
  run_training(run);
}

}  // namespace bertrand::finetune
