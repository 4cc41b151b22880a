#include "apps/finetune/job.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "apps/finetune/make_task.h"
#include "apps/finetune/task_flags.h"
#include "bert/directory/config_file.h"
#include "bert/directory/model_directory.h"
#include "bert/inference/open.h"
#include "bert/tasks/attempt.h"
#include "bert/tasks/labels.h"
#include "bert/tasks/task.h"
#include "distributed/processes.h"
#include "io/crc32c.h"
#include "io/error.h"
#include "io/json.h"
#include "io/say.h"
#include "io/units.h"
#include "training/run/checkpoint.h"
#include "training/run/run_config.h"
#include "training/run/run_files.h"

namespace bertrand::finetune {
namespace {

/// --max-seq-length of the run that made a model, if its directory says so.
std::optional<std::int64_t> trained_length(const std::filesystem::path& model) {
  const std::filesystem::path record = model / training::kRunConfig;
  if (!training::is_own_run_config(record)) return {};
  const io::Json settings = io::read_json(record)["settings"];
  const auto length = settings.find("max-seq-length");
  if (length == settings.end() || !length->is_number_integer() || length->get<std::int64_t>() < 5) return {};
  return length->get<std::int64_t>();
}

/// Throws Error(Failure::input) after a line for each of the first bad rows.
[[noreturn]] void refuse(const std::vector<std::string>& bad) {
  constexpr std::size_t kShown = 20;
  if (distributed::launched().rank == 0)
    for (std::size_t i = 0; i < std::min(bad.size(), kShown); ++i) io::tell("{}", bad[i]);
  fail(Failure::input, "data: expected rows as they should be, got {}{}", io::counted(bad.size(), "bad one"),
       bad.size() > kShown ? fmt::format(", the first {} of them above", kShown) : "");
}

/// "1 example", or with choices "1 example with 4 choices each".
std::string examples_text(const objectives::FineTuningTask& task, std::int64_t sequences) {
  const std::int64_t each = task.sequences_of_example();
  const std::string text = io::counted(sequences / each, "example");
  return each == 1 ? text : fmt::format("{} with {} choices each", text, each);
}

}  // namespace

Job read_job(Options& options) {
  bert::TokenizerFlags words{.vocab_file = options.vocab_file, .cased = options.cased};
  if (options.settings.resume && !options.train.empty())
    if (const std::filesystem::path own = training::checkpoint_in_place_of(
            {bert::config_file(options.model), options.vocab_file}, options.settings.output);
        !own.empty()) {
      options.model = own;
      words = {};
    }
  const bert::Config config = bert::read_config(options.model);
  bert::require_room_for_text(config, options.model);
  if (options.train.empty() && options.task == "custom" && !training::is_given("--kind", options.settings.command))
    if (config.labels.size() == 1 || io::find_choice(tasks::problem_types(), config.problem_type))
      options.kind =
          io::name_in(tasks::kinds(), inference::kind_of_classifier(config, config.labels.size(), options.model));
  bert::weights_file(options.model);  // weights of a form that is not read are refused before any data is
  const std::optional<std::int64_t> trained = options.train.empty() ? trained_length(options.model) : std::nullopt;
  options.settings.max_seq_length =
      options.settings.sequence_length(config.max_position_embeddings, trained.value_or(options.usual_length()));
  if (options.train.empty())
    if (const std::string taken = take_flags_of_model(options);
        !taken.empty() && !options.settings.quiet && distributed::launched().rank == 0)
      io::say(fmt::format("of {}: {}\n", (options.model / training::kRunConfig).string(), io::one_line(taken)));
  auto tokenizer = std::make_unique<const text::Tokenizer>(bert::read_tokenizer(options.model, words, config));
  std::unique_ptr<objectives::FineTuningTask> task;
  try {
    task = make_task(options, config, *tokenizer);
  } catch (const tasks::OnlyBadRows& error) {
    if (!options.settings.validate_only || error.rows().size() == 1) throw;
    refuse(error.rows());
  }
  task->decide_by(options.metric_for_best_model);
  Job job{options, config.labels, std::move(tokenizer), std::move(task)};
  if (job.task->streamed(objectives::File::prediction) && !options.settings.is_rehearsal())
    job.streamed_prediction = training::InputFile::of(options.prediction);
  return job;
}

void report_validity(const Job& job) {
  const Options& options = job.options;
  const auto describe = [&](const std::filesystem::path& path, objectives::File file) {
    const tasks::EncodedDataset* const examples = job.task->examples(file);
    if (!examples) return;
    std::int64_t least = examples->tokens(0), most = least;
    for (std::int64_t i = 1; i < examples->size(); ++i) {
      least = std::min(least, examples->tokens(i));
      most = std::max(most, examples->tokens(i));
    }
    io::say(fmt::format("{}: {} of {}{}\n", path.string(), examples_text(*job.task, examples->size()),
                        least < most ? fmt::format("{} to ", least) : "", io::counted(most, "token")));
  };
  describe(options.train, objectives::File::train);
  describe(options.eval_split > 0 ? options.train : options.evaluation, objectives::File::evaluation);
  describe(options.prediction, objectives::File::prediction);
  const bert::Config config = job.task->directory().config;
  const std::vector<std::string>& labels = config.labels;
  if (!labels.empty() && config.problem_type != io::name_in(tasks::problem_types(), tasks::Kind::regression))
    io::say(fmt::format("labels: {}, {}\n", labels.size(), io::one_line(tasks::in_braces(labels))));
  if (const std::string columns = job.task->columns(); !columns.empty()) io::say(fmt::format("columns: {}\n", columns));
  if (const std::string counts = job.task->rows_of_classes(); !counts.empty())
    io::say(fmt::format("{}: rows of labels: {}\n", options.train.string(), counts));
  if (const std::vector<std::string> bad = job.task->bad_rows(); !bad.empty()) refuse(bad);
}

training::RunIdentity identity_of(const Job& job) {
  Options options = job.options;
  training::FlagTable table;
  add_own_flags(table, options);
  training::RunIdentity identity{.settings = table.values(training::Role::decisive), .inputs = {}, .other_files = {}};
  for (const auto& file : {options.train, options.evaluation, options.qrels})
    if (!file.empty()) identity.inputs.push_back(file);
  if (job.streamed_prediction) identity.other_files.emplace_back(*job.streamed_prediction);
  else if (!options.prediction.empty()) identity.other_files.emplace_back(options.prediction);
  const auto given = [](const std::filesystem::path& file) { return file.empty() ? "not given" : "given"; };
  identity.settings.emplace_back("--eval", given(options.evaluation));
  const bert::DirectoryFiles files = job.task->directory();
  const auto checksum = [](const std::string& text) { return fmt::format("crc32c {:08x}", io::crc32c(text)); };
  identity.settings.emplace_back("--model", checksum(bert::config_text(bert::without_origin(files.config))));
  identity.settings.emplace_back("--vocab-file", checksum(files.vocabulary));
  identity.settings.emplace_back("the tokenizer", bert::tokenizer_text(files.tokenizer));
  return identity;
}

std::string evaluated_text(const Job& job) {
  const Options& options = job.options;
  const auto count_of = [&](objectives::File file) {
    if (const tasks::EncodedDataset* examples = job.task->examples(file))
      return examples->size() / job.task->sequences_of_example();
    return job.task->streamed(file)->examples;
  };
  const std::int64_t evaluated = count_of(objectives::File::evaluation);
  const std::string from =
      options.eval_split > 0
          ? fmt::format("of the {} of {}, held out by {} {}", evaluated + count_of(objectives::File::train),
                        options.train.string(), options.eval_split_seed ? "--eval-split-seed" : "--seed",
                        options.split_seed())
          : "of " + options.evaluation.string();
  return fmt::format("{} {}", io::counted(evaluated, "example"), from);
}

std::string plan_text(const Job& job) {
  if (job.options.settings.overfit_batch) return "";
  std::string text;
  if (const std::string columns = job.task->columns(); !columns.empty())
    text += fmt::format("  columns     {}\n", columns);
  if (const std::string counts = job.task->rows_of_classes(); !counts.empty())
    text += fmt::format("  labels      {}\n", counts);
  if (job.options.evaluates())
    text += fmt::format("  evaluation  {}\n  best model  by {}\n", evaluated_text(job),
                        tasks::deciding(job.task->judged_by()));
  return text;
}

}  // namespace bertrand::finetune
