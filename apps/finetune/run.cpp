#include "apps/finetune/run.h"

#include <fmt/core.h>

#include "apps/cli/file_arguments.h"
#include "apps/finetune/options.h"
#include "bert/directory/model_source.h"
#include "bert/objectives/classification.h"
#include "bert/tasks/predictions.h"
#include "distributed/processes.h"
#include "distributed/replica_group.h"
#include "io/crc32c.h"
#include "io/error.h"
#include "io/signals.h"
#include "training/report/results.h"
#include "training/run/trainer.h"

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

Job read_job(const Options& options) {
  bert::Config config = bert::read_config(options.model);
  if (options.settings.max_seq_length > config.max_position_embeddings)
    fail(Failure::usage, "--max-seq-length: expected at most {}, the model's positions, got {}",
         config.max_position_embeddings, options.settings.max_seq_length);
  text::Tokenizer tokenizer =
      bert::read_tokenizer(options.model, {.vocab_file = options.vocab_file, .cased = options.cased}, config);
  tasks::TaskData data =
      tasks::read_task_data(options.make_task(), {options.train, options.evaluation, options.prediction},
                            {.directory = options.model, .problem_type = config.problem_type, .labels = config.labels},
                            tokenizer, static_cast<int>(options.settings.max_seq_length));
  check_model(config, options, data);
  config.architectures = {"BertForSequenceClassification"};
  config.problem_type = tasks::problem_type(data.task.kind);
  config.labels = data.labels.names();
  // transformers counts the outputs by the names, so a single score needs one too.
  if (data.task.kind == tasks::Kind::regression) config.labels = {"LABEL_0"};
  return {options, std::move(config), std::move(tokenizer), std::move(data)};
}

tasks::Logits predict_file(const Job& job, const objectives::ClassificationObjective& objective,
                           const distributed::Replica& self) {
  return job.data.prediction ? objectives::predict(objective.classifier(), job.data.prediction->encoded, self)
                             : tasks::Logits{};
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
  const Options& options = job.options;
  training::RunIdentity identity{.settings = options.decisive(), .inputs = {}, .other_files = {}};
  for (const auto& file : {options.train, options.evaluation})
    if (!file.empty()) identity.inputs.push_back(file);
  if (!options.prediction.empty()) identity.other_files.push_back(options.prediction);
  const auto given = [](const std::filesystem::path& file) { return file.empty() ? "not given" : "given"; };
  identity.settings.emplace_back("--eval", given(options.evaluation));
  const auto checksum = [](const std::string& text) { return fmt::format("crc32c {:08x}", io::crc32c(text)); };
  identity.settings.emplace_back("--model", checksum(job.config.text()));
  identity.settings.emplace_back("--vocab-file", checksum(job.tokenizer.vocabulary().text()));
  return identity;
}

bool is_classifier(const std::string& parameter) { return parameter.starts_with("classifier."); }

/// What a model that was trained for something else lacks.
bool is_head(const std::string& parameter) { return is_classifier(parameter) || parameter.starts_with("bert.pooler."); }

void train(const Job& job, objectives::ClassificationObjective& objective, const distributed::Replica& self,
           training::RunDirectory* directory, const training::Conditions& conditions) {
  const Options& options = job.options;
  training::Trainer trainer({options.settings, objective, self, directory, "finetune", conditions});
  if (!trainer.announce()) return;
  trainer.begin([&](nn::ParameterSet& parameters) {
    const nn::LoadReport report = bert::load_weights(options.model, parameters, is_classifier);
    nn::require(report, options.model, is_head);
    fmt::print("{}\n", report.text());
  });
  trainer.run();
  if (!job.data.prediction) return;
  trainer.afterwards("prediction", [&] {
    if (self.first())
      bert::load_weights(options.settings.output, trainer.parameters());  // the best model, which need not be the last
    self.collective().broadcast(trainer.parameters().values(), 0);
    const tasks::Logits logits = predict_file(job, objective, self);
    if (self.first()) write_predictions(job, logits);
  });
}

/// Without --train: the model as it is.
void apply(const Job& job, objectives::ClassificationObjective& objective, const distributed::Replica& self,
           training::RunDirectory* directory) {
  const training::Settings& settings = job.options.settings;
  nn::ParameterSet parameters(objective.model(), self.backend(), {.dtype = settings.precision, .initialize = false});
  if (self.first()) {
    const nn::LoadReport report = bert::load_weights(job.options.model, parameters);
    nn::require(report, job.options.model, [](const std::string&) { return false; });
    fmt::print("{}\n", report.text());
  }
  self.collective().broadcast(parameters.values(), 0);
  std::map<std::string, double> results;
  if (job.data.evaluation)
    for (const training::Metric& metric : objective.evaluate()) results[metric.name] = metric.value;
  const tasks::Logits logits = predict_file(job, objective, self);
  if (!self.first()) return;
  directory->clear();  // now that there is something to put in its place
  if (job.data.evaluation) {
    training::write_results(io::Files::system(), settings.output, results);
    fmt::print("{}", training::results_text(results));
  }
  write_predictions(job, logits);
}

void run_with(const Options& options, distributed::Collective* processes) {
  const bool first = !processes || processes->rank() == 0;
  const std::vector<std::filesystem::path> files = {options.model, options.vocab_file, options.train,
                                                    options.evaluation, options.prediction};
  cli::check_run_inputs(files);
  const auto directory = first ? training::claim_output(options.settings, files) : nullptr;
  if (first) cli::check_profile(options.settings.profile, files);
  const Job job = read_job(options);
  if (first) fmt::print(stderr, "{}", job.data.warnings());
  if (first) fmt::print("{}", job.data.remarks());
  distributed::ReplicaGroup group = training::open_replicas(options.settings, processes);
  const training::Conditions conditions = training::agree_on_run(processes, options.settings, identity_of(job));
  group.run([&](const distributed::Replica& self) {
    objectives::ClassificationObjective objective({job.data, job.config, job.tokenizer}, self);
    if (job.data.train) train(job, objective, self, directory.get(), conditions);
    else apply(job, objective, self, directory.get());
  });
}

}  // namespace

void run(const Options& options) {
  if (!options.train.empty()) io::catch_stop_signals();
  distributed::with_processes({.timeout = options.settings.collective_timeout},
                              [&](distributed::Collective* processes) { run_with(options, processes); });
}

}  // namespace bertrand::finetune
