#include "apps/finetune/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "apps/finetune/job.h"
#include "bert/directory/config_file.h"
#include "bert/directory/model_directory.h"
#include "bert/objectives/finetuning.h"
#include "bert/objectives/program_files.h"
#include "bert/report/report.h"
#include "bert/tasks/labels.h"
#include "distributed/exchange.h"
#include "distributed/replica_group.h"
#include "io/crc32c.h"
#include "io/error.h"
#include "io/json.h"
#include "io/say.h"
#include "io/signals.h"
#include "io/units.h"
#include "training/report/results.h"
#include "training/run/checkpoint.h"
#include "training/run/plan.h"
#include "training/run/run_config.h"
#include "training/run/run_training.h"

namespace bertrand::finetune {
namespace {

const std::string kProgram = "finetune";

/// A user who counts columns may have a table without a row of names.
bool names_columns_by_number(const Options& options) {
  const std::string& text = options.columns.text;
  return options.task == "custom" && options.columns.header && !text.empty() &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

/// A word about rows of --predict that get no prediction.
void warn_of_bad_rows(const objectives::FineTuningTask& task) {
  const std::vector<std::string> bad = task.bad_rows();
  if (!bad.empty())
    io::warn("{}; {} of predictions.tsv without a prediction", bad.front(), io::counted(bad.size(), "row"));
}

std::unique_ptr<objectives::FineTuningObjective> make_objective(const Job& job, const distributed::Replica& self) {
  const training::Settings& settings = job.options.settings;
  return std::make_unique<objectives::FineTuningObjective>(*job.task, *settings.micro_batch_size, self, settings.quiet,
                                                           io::SpillPlace{.directory = settings.spill_directory()});
}

constexpr const char* kKeptOutputs = "predictions.partial";

/// What decides the outputs for the file to predict, which is streamed.
std::string identity_of_outputs(const Job& job, const nn::ParameterSet& parameters) {
  const training::Settings& settings = job.options.settings;
  std::uint32_t weights = 0;
  for (const nn::ParameterSet::Segment& segment : parameters.segments()) {
    std::vector<std::byte> bytes(parameters.value(segment).bytes());
    parameters.backend().download(parameters.value(segment), bytes.data());
    weights = io::crc32c(bytes, weights);
  }
  const bert::DirectoryFiles model = job.task->directory();
  const training::InputFile& file = *job.streamed_prediction;
  return fmt::format(
      "weights {:08x}, config {:08x}, vocabulary {:08x}, {}, file {:08x} of {} bytes, "
      "--task {}, --precision {}, --max-seq-length {}, --max-query-length {}",
      weights, io::crc32c(bert::config_text(model.config)), io::crc32c(model.vocabulary),
      bert::tokenizer_text(model.tokenizer), file.crc32c, file.bytes, job.options.task, settings.precision_name(),
      *settings.max_seq_length, job.options.max_query_length);
}

/// What is left if the prediction is interrupted, and how to get the rest.
std::string hint_of_interruption(const Options& options) {
  if (options.train.empty() && options.evaluation.empty()) return "nothing was written; hint: run the command again";
  if (options.train.empty())
    return "the evaluation is saved; hint: run the command again without --eval, with another --output";
  return "the training is saved; hint: --resume makes the predictions";
}

/// --predict, by all replicas together; the first one writes. The outputs for a file that is streamed are kept as they
/// are computed, so that --resume goes on with them. `make_room` is called before anything is written.
void predict_file(const Job& job, const training::TrainedReplica& replica, const std::function<void()>& make_room) {
  using Earlier = objectives::KeptOutputs::Earlier;
  const bool first = replica.self.first();
  const auto& objective = static_cast<const objectives::FineTuningObjective&>(replica.objective);
  const training::Settings& settings = job.options.settings;
  // A run that trained on may have left outputs of the model before.
  const Earlier earlier = job.options.train.empty() ? Earlier::resume : Earlier::resume_known;
  const bool streamed = job.streamed_prediction.has_value();
  std::optional<objectives::KeptOutputs> kept;
  const auto outputs = [&] {
    try {
      if (first && streamed)
        kept.emplace(objectives::KeptOutputs::Where{.file = settings.output / kKeptOutputs,
                                                    .identity = identity_of_outputs(job, replica.parameters),
                                                    .width = objective.outputs(),
                                                    .before_writing = make_room},
                     settings.resume ? earlier : Earlier::ignore, replica.files);
      return objective.predict(objectives::File::prediction, kept ? &*kept : nullptr);
    } catch (const Error& error) {
      // predict() says what is kept of a file that is streamed.
      if (error.failure() != Failure::interrupted || streamed) throw;
      fail(Failure::interrupted, "interrupted while predicting: {}", hint_of_interruption(job.options));
    }
  }();
  if (!outputs || !first) return;
  make_room();
  io::say(fmt::format("{}\n", job.task->write_predictions(replica.files, settings.output, *outputs)));
  if (kept) kept->remove();
}

/// A word about a head of other labels whose shape fits.
void warn_of_other_labels(const Job& job) {
  const tasks::LabelSet labels(job.task->directory().config.labels), before(job.model_labels);
  if (tasks::renames_outputs(labels, before))
    io::warn(
        "{}: id2label: expected the data's labels {}, got {}: the rows of the old head begin as those of "
        "the new labels, in this order",
        job.options.model.string(), tasks::in_braces(labels.names()), tasks::in_braces(before.names()));
}

auto is_head_of(const Job& job) {
  return [&job](const std::string& parameter) { return parameter.starts_with(job.task->head()); };
}

void require_start(const Job& job, const nn::LoadReport& report) {
  if (job.options.strict) bert::require_exact(report, job.options.model);
  // A model that was trained for something else may also lack the pooler.
  nn::require(report, job.options.model, [is_head = is_head_of(job)](const std::string& parameter) {
    return is_head(parameter) || parameter.starts_with("bert.pooler.");
  });
}

void load_start(const Job& job, nn::ParameterSet& parameters) {
  const nn::LoadReport report = bert::load_weights(job.options.model, parameters, is_head_of(job));
  require_start(job, report);
  bert::require_finite(parameters, job.options.model);
  io::say(fmt::format("{}\n", report.text()));
  if (std::ranges::any_of(report.loaded, is_head_of(job))) warn_of_other_labels(job);
}

/// --predict after training: with the best model, which need not be the last.
void predict_with_result(const Job& job, const training::TrainedReplica& trained) {
  const distributed::Replica& self = trained.self;
  io::catch_stop_signals(io::OnStop::leave);  // the training is saved
  if (self.first()) bert::load_weights(job.options.settings.output, trained.parameters);
  self.collective().broadcast(trained.parameters.values(), 0);
  predict_file(job, trained, [] {});
}

/// --resume goes on with a prediction that was stopped, and with nothing else.
void refuse_finished(const training::Settings& settings) {
  for (const char* name : {"predictions.tsv", "msmarco_predictions.tsv"})
    if (settings.resume && std::filesystem::exists(settings.output / name) &&
        !std::filesystem::exists(settings.output / kKeptOutputs))
      fail(
          Failure::usage,
          "{}: --resume: expected a prediction that was stopped, got {}; hint: --overwrite removes it, or name another "
          "--output",
          settings.output.string(), name);
}

/// The weights of a model that is applied as it is.
void check_weights(const Job& job, const nn::Module& network) {
  const nn::LoadReport report = bert::compare_weights(job.options.model, network);
  if (const auto lacking = std::ranges::find_if(report.missing, is_head_of(job)); lacking != report.missing.end())
    fail(Failure::model,
         "{}: weights: expected a model that is fine-tuned for the task, got none for {}; hint: --train",
         job.options.model.string(), *lacking);
  if (job.options.strict) bert::require_exact(report, job.options.model);
  nn::require(report, job.options.model, [](const std::string&) { return false; });
  io::say(fmt::format("{}\n", report.text()));
  const tasks::LabelSet named(job.task->directory().config.labels), before(job.model_labels);
  if (before.placeholders() && named.names() != before.names())
    io::warn("{}: id2label: {} are taken for {}, in this order", job.options.model.string(),
             tasks::in_braces(before.names()), tasks::in_braces(named.names()));
}

/// The figures of a model that is applied as it is.
void say_results(const training::Results& results, bool json_lines) {
  if (!json_lines) return io::say(training::results_text(results));
  io::Json figures;
  for (const auto& [name, value] : results.metrics) figures[name] = value;
  io::say_event("evaluation", io::json_text(figures));
}

/// Without --train: the model as it is.
void apply(const Job& job, const training::RunReplica& replica) {
  const distributed::Replica& self = replica.self;
  const training::Settings& settings = job.options.settings;
  if (self.first()) refuse_finished(settings);
  const auto objective = make_objective(job, self);
  if (self.first()) check_weights(job, objective->model());
  nn::ParameterSet parameters(objective->model(), self.backend(),
                              {.dtype = settings.precision, .initialize = false, .gradients = false});
  if (self.first()) bert::load_weights(job.options.model, parameters);
  self.collective().broadcast(parameters.values(), 0);
  const std::time_t started = std::time(nullptr);
  bool has_room = false;
  const auto make_room = [&] {  // now that there is something to put in its place
    if (std::exchange(has_room, true)) return;
    replica.directory->clear();
    training::write_run_config(files_of(replica.directory),
                               {kProgram, settings, nullptr, replica.conditions, self, started});
  };
  if (self.first() && job.options.evaluates() && !settings.quiet)
    io::say(fmt::format("evaluating {}\n", evaluated_text(job)));
  training::Results results{.metrics = objective->evaluate(), .words = objective->figures_in_words()};
  std::erase_if(results.words, [](const auto& word) { return word.first == "best_model_by"; });  // there is but one
  if (self.first() && !results.metrics.empty()) {
    make_room();
    training::write_results(replica.directory->files(), settings.output, results);
    objective->write_evaluation(replica.directory->files(), settings.output);
    say_results(results, settings.json_lines);
    training::try_report(settings.output.string(),
                         [&] { report::write_report_of_run(replica.directory->files(), settings.output); });
  }
  predict_file(job, {*objective, parameters, self, files_of(replica.directory)}, make_room);
}

}  // namespace

void check(Options options) {
  io::catch_stop_signals(io::OnStop::leave);
  const training::Settings settings = options.settings;
  options.settings.plan_only = true;  // which claims no directory
  std::optional<Job> job;
  const auto read = [&](distributed::Collective*) {
    job.emplace(read_job(options));
    return identity_of(*job);
  };
  const training::TrainingRun run{
      .settings = options.settings, .program = kProgram, .files = options.files(), .read = read, .make_objective = {}};
  training::on_replicas(run, [&](const training::RunReplica& replica) {
    const auto objective = make_objective(*job, replica.self);
    if (!replica.self.first()) return;
    const training::Plan plan = training::make_plan(settings, *objective, replica.self);
    training::check_memory(settings, plan, *objective, replica.self);
  });
}

training::TrainingResult run(Options& options, std::string* said_plan) {
  io::catch_stop_signals(io::OnStop::leave);  // until there is something to save
  std::optional<Job> job;
  const auto read = [&](distributed::Collective* processes) {
    distributed::work_apart(processes, [&] { job.emplace(read_job(options)); });
    if (!processes || processes->rank() == 0) {
      std::fputs(job->task->warnings().c_str(), stderr);
      io::say(job->task->remarks());
      if (names_columns_by_number(options))
        io::tell("note: the first row of a table is taken for the names of its columns; --no-header: it is data");
      if (options.settings.validate_only) report_validity(*job);
      else warn_of_bad_rows(*job->task);
    }
    return identity_of(*job);
  };
  training::TrainingRun run{
      .settings = options.settings,
      .program = kProgram,
      .files = options.files(),
      .program_files = objectives::program_files(),
      .read = read,
      .make_objective = [&](const distributed::Replica& self) { return make_objective(*job, self); },
      .plan_text = [&] { return plan_text(*job); },
      .said_plan = said_plan,
      .check_start =
          [&](const nn::Module& network) {
            require_start(*job, bert::compare_weights(options.model, network, is_head_of(*job)));
          },
      .initialize = [&](nn::ParameterSet& parameters) { load_start(*job, parameters); },
      .report = [&](io::Files& files) { report::write_report_of_run(files, options.settings.output); }};
  if (options.train.empty()) {
    on_replicas(run, [&](const training::RunReplica& replica) { apply(*job, replica); });
    return {};
  }
  if (!options.prediction.empty()) {
    run.afterwards_name = "prediction";
    run.afterwards = [&](const training::TrainedReplica& trained) { predict_with_result(*job, trained); };
  }
  return run_training(run);
}

}  // namespace bertrand::finetune
