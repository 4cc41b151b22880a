#include "apps/pretrain/run.h"

#include <fmt/format.h>

#include <optional>

#include "apps/pretrain/source.h"
#include "bert/data/mapped_corpus.h"
#include "bert/data/pretraining_records.h"
#include "bert/data/pretraining_text.h"
#include "bert/data/pretraining_text_corpus.h"
#include "bert/data/pretraining_text_masks.h"
#include "bert/directory/config_file.h"
#include "bert/directory/model_directory.h"
#include "bert/objectives/pretraining.h"
#include "bert/objectives/program_files.h"
#include "bert/report/report.h"
#include "distributed/agreement.h"
#include "distributed/exchange.h"
#include "distributed/processes.h"
#include "io/byte_progress.h"
#include "io/crc32c.h"
#include "io/file_arguments.h"
#include "io/say.h"
#include "io/signals.h"
#include "io/units.h"
#include "tensor/backends.h"
#include "training/run/checkpoint.h"
#include "training/run/run_training.h"

namespace bertrand::pretrain {

namespace {

int threads_of(const Options& options) { return options.settings.threads.value_or(available_cores()); }

data::InputCheck check_of(const Options& options) {
  return options.settings.validate_only ? data::InputCheck::all : options.check_inputs;
}

/// A record that an index counts cannot be left out later: the number of examples decides their order, in all
/// processes and at --resume. And a sample may not see that one is damaged. So to skip, every file is read through at
/// every start, unless it is said that indexes are to be believed.
data::InputCheck check_of_records(const Options& options) {
  const data::InputCheck check = check_of(options);
  const bool must_see = options.on_corrupt == io::OnCorrupt::skip && check == data::InputCheck::index;
  return must_see ? data::InputCheck::all : check;
}

/// Each of several processes reads all of the files of its share, and keeps their indexes, which the others believe.
std::unique_ptr<data::PretrainingRecords> read_records(const std::vector<std::filesystem::path>& files,
                                                       const Source& source, const Options& options,
                                                       distributed::Collective* processes) {
  data::PretrainingRecordsOptions reading{
      .vocab_size = source.config.vocab_size,
      .max_positions = source.config.max_position_embeddings,
      .on_corrupt = options.settings.validate_only ? io::OnCorrupt::skip : options.on_corrupt,
      .threads = threads_of(options),
      .check = check_of_records(options),
      .keep_index = !options.settings.is_rehearsal(),
      .run_directory = options.settings.output,
      .spill = {.directory = options.settings.spill_directory()}};
  if (processes && reading.keep_index) {
    const distributed::Share mine = distributed::share_of(std::ssize(files), processes->rank(), processes->size());
    const std::vector share(files.begin() + mine.first, files.begin() + mine.end());
    distributed::work_apart(processes, [&] { data::PretrainingRecords::make_indexes(share, reading); });
    if (reading.check == data::InputCheck::all) reading.check = data::InputCheck::index;
  }
  std::unique_ptr<data::PretrainingRecords> records;
  distributed::work_apart(processes, [&] { records = std::make_unique<data::PretrainingRecords>(files, reading); });
  if (!records->not_kept().empty())
    distributed::warn(records->not_kept() + "; without an index the records are read through at every start");
  for (const std::string& warning : records->warnings()) distributed::warn(warning);
  if (records->skipped() > 0 && options.settings.validate_only && options.on_corrupt == io::OnCorrupt::stop)
    fail(Failure::input, "data: expected records as they should be, got {}",
         io::counted(records->skipped(), "bad place"));
  return records;
}

std::shared_ptr<const data::CorpusView> open_corpus(const std::vector<std::filesystem::path>& directories,
                                                    const Source& source, const Options& options,
                                                    distributed::Collective* processes) {
  data::CorpusCheck check{.extent = check_of(options), .threads = threads_of(options)};
  if (processes) {
    check.process = processes->rank();
    check.processes = processes->size();
  }
  std::shared_ptr<const data::MappedCorpus> corpus;
  distributed::work_apart(processes,
                          [&] { corpus = std::make_shared<data::MappedCorpus>(directories, source.tokenizer, check); });
  for (const std::string& warning : corpus->warnings()) distributed::warn(warning);
  return corpus;
}

/// A process that is alone shows how far it is.
std::shared_ptr<const data::CorpusView> read_text(const std::vector<std::filesystem::path>& files, const Source& source,
                                                  const Options& options, distributed::Collective* processes) {
  io::ByteProgress progress("reading text", io::check_files(files, {}), stderr, options.settings.quiet || processes);
  std::shared_ptr<const data::HeldCorpus> corpus;
  distributed::work_apart(processes, [&] {
    corpus = std::make_shared<data::HeldCorpus>(
        data::read_corpus(files, source.tokenizer,
                          {.threads = threads_of(options),
                           .least_documents = options.no_next_sentence ? 1U : 2U,
                           .progress = [&](std::size_t bytes) { progress.add(bytes); }}),
        source.tokenizer.vocabulary().size());
  });
  if (progress.shown()) progress.finish();
  for (const std::string& warning : corpus->warnings()) distributed::warn(warning);
  return corpus;
}

/// Text of which pairs are drawn as no one may have meant them.
void warn_of_pairs(const data::CorpusView& corpus, const std::string& file, int length) {
  if (const std::string doubt = data::doubt_about_sentences(corpus.documents(), corpus.sentences()); !doubt.empty())
    distributed::warn(fmt::format("{}: {}", file, doubt));
  if (corpus.tokens() > corpus.sentences() * static_cast<std::uint64_t>(length) / 2)
    distributed::warn(
        fmt::format("{}: a line has {} tokens on average, more than half of --max-seq-length {}: most next sentences "
                    "are random, and what a line has beyond an example is left out; hint: prepare sentences makes a "
                    "sentence a line",
                    file, corpus.tokens() / corpus.sentences(), length));
}

/// What is drawn from text as no one may have meant it.
void warn_of_text(const data::CorpusView& corpus, const std::string& file, const Options& options) {
  const int length = *options.settings.max_seq_length;
  if (!options.no_next_sentence) warn_of_pairs(corpus, file, length);
  if (const std::string doubt = data::doubt_about_predictions(length, options.masking); !doubt.empty())
    distributed::warn(doubt);
}

std::unique_ptr<data::PretrainingExamples> draw_examples(std::shared_ptr<const data::CorpusView> corpus,
                                                         const std::string& file, const Source& source,
                                                         const Options& options, std::uint64_t seed) {
  const training::Settings& settings = options.settings;
  warn_of_text(*corpus, file, options);
  return std::make_unique<data::PretrainingText>(
      std::move(corpus), source.tokenizer.vocabulary(),
      data::PretrainingTextOptions{.pairs = {.max_seq_length = *settings.max_seq_length,
                                             .short_seq_prob = options.short_seq_prob,
                                             .next_sentence = !options.no_next_sentence},
                                   .masking = options.masking,
                                   .seed = seed,
                                   .threads = threads_of(options)});
}

/// One of the two inputs: its examples, and what it is known by.
struct Input {
  std::unique_ptr<data::PretrainingExamples> examples;  // null without files
  std::vector<training::RunIdentity::File> identity;
};

/// Ids of another vocabulary would be learnt as words of this one.
void require_own_ids(data::PretrainingRecords& records, const std::string& file, const Source& source,
                     const Options& options) {
  const std::int32_t expected = source.tokenizer.vocabulary().cls_id();
  if (const std::int32_t first = records.example(0, 0).token_ids.front(); first != expected)
    fail(Failure::input, "{}: record 1: input_ids: expected to begin with {}, [CLS] of {}, got {}; hint: {}", file,
         expected, (options.vocabulary.empty() ? options.init : options.vocabulary).string(), first,
         "were the records made with another vocabulary?");
}

/// Records are read as they were made, whatever is said about text.
void warn_of_records(const data::PretrainingRecords& records, const std::string& file, const Options& options) {
  const std::vector<std::string>& command = options.settings.command;
  std::vector<std::string> given;
  for (const char* flag : {"--masked-lm-prob", "--max-predictions-per-seq", "--short-seq-prob", "--whole-word-mask"})
    if (training::is_given(flag, command)) given.emplace_back(flag);
  if (training::is_given("--max-seq-length", command) && *options.settings.max_seq_length < records.longest())
    given.push_back(fmt::format("--max-seq-length {}", *options.settings.max_seq_length));
  if (!given.empty())
    distributed::warn(fmt::format("{}: records of up to {} tokens are read as they were made; for text alone: {}", file,
                                  records.longest(), fmt::join(given, ", ")));
  if (records.most_masked() == 0)
    distributed::warn(
        fmt::format("{}: no record has a masked token, so the model learns no words; hint: prepare records with "
                    "--max-predictions-per-seq above 0",
                    file));
}

/// Examples of text are drawn by `seed`.
Input read_input(const std::vector<std::filesystem::path>& files, std::uint64_t seed, const Source& source,
                 const Options& options, distributed::Collective* processes) {
  Input input{.examples = nullptr, .identity = {files.begin(), files.end()}};
  if (files.empty()) return input;
  const InputKind kind = kind_of(files);
  if (kind == InputKind::text) {
    input.examples =
        draw_examples(read_text(files, source, options, processes), files.front().string(), source, options, seed);
  } else if (kind == InputKind::corpus) {  // its manifest holds the checksums of its files
    input.examples =
        draw_examples(open_corpus(files, source, options, processes), files.front().string(), source, options, seed);
    for (std::size_t i = 0; i < files.size(); ++i) input.identity[i] = files[i] / data::kCorpusManifest;
  } else {
    auto records = read_records(files, source, options, processes);
    require_own_ids(*records, files.front().string(), source, options);
    warn_of_records(*records, files.front().string(), options);
    for (std::size_t i = 0; i < files.size(); ++i)
      if (const auto crc32c = records->crc32c_of_file(i))
        input.identity[i] = training::InputFile{
            .path = files[i].string(), .bytes = std::filesystem::file_size(files[i]), .crc32c = *crc32c};
    input.examples = std::move(records);
  }
  return input;
}

bool is_of_next_sentences(const std::string& parameter) {
  return parameter.starts_with("cls.seq_relationship.") || parameter.starts_with("bert.pooler.");
}

/// Heads that a model trained for something else lacks.
bool is_head(const std::string& parameter) { return parameter.starts_with("cls.") || is_of_next_sentences(parameter); }

void require_start(const Options& options, nn::LoadReport& report) {
  if (options.keep_moments) std::erase_if(report.unused, bert::is_moment);
  if (options.strict) {
    nn::LoadReport wanted = report;  // without what the run computes nothing of, which a BertForMaskedLM lacks
    if (options.no_next_sentence) std::erase_if(wanted.missing, is_of_next_sentences);
    bert::require_exact(wanted, options.init);
  }
  nn::require(report, options.init, is_head);
}

void check_start(const Options& options, const nn::Module& network) {
  if (options.init.empty()) return;
  nn::LoadReport report = bert::compare_weights(options.init, network);
  require_start(options, report);
}

void load_start(const Options& options, nn::ParameterSet& parameters) {
  if (options.init.empty()) return;
  nn::LoadReport report = bert::load_weights(options.init, parameters);
  require_start(options, report);
  bert::require_finite(parameters, options.init);
  io::say(fmt::format("{}\n", report.text()));
}

/// Those of a TensorFlow checkpoint, or of a run or checkpoint of this program.
training::LoadMoments load_moments(const std::filesystem::path& init) {
  return [init](const nn::Moments& moments) {
    if (!bert::is_checkpoint(init)) return training::load_moments(init, moments);
    bert::load_moments(init, moments);
    return bert::weights_file(init).string();
  };
}

/// Every file and directory that the run reads.
std::vector<std::filesystem::path> files_of(const Options& options) {
  std::vector<std::filesystem::path> files = {options.init, options.config, options.vocabulary};
  files.insert(files.end(), options.inputs.begin(), options.inputs.end());
  files.insert(files.end(), options.evaluation_inputs.begin(), options.evaluation_inputs.end());
  return files;
}

/// Everything of a run that is on the host.
struct Job {
  Source source;
  Input training, held_out;
};

training::RunIdentity identity_of(Options& options, const Job& job) {
  training::FlagTable table;
  add_own_flags(table, options);
  training::RunIdentity identity{.settings = table.values(training::Role::decisive), .inputs = {}, .other_files = {}};
  for (const Input* input : {&job.training, &job.held_out})
    identity.inputs.insert(identity.inputs.end(), input->identity.begin(), input->identity.end());
  identity.settings.emplace_back("--eval-input", fmt::format("{} files", options.evaluation_inputs.size()));
  identity.settings.emplace_back(
      "--config", fmt::format("crc32c {:08x}", io::crc32c(bert::config_text(bert::without_origin(job.source.config)))));
  identity.settings.emplace_back("--vocab-file",
                                 fmt::format("crc32c {:08x}", io::crc32c(job.source.tokenizer.vocabulary().text())));
  identity.settings.emplace_back("the tokenizer", bert::tokenizer_text(job.source.tokenizer.options()));
  return identity;
}

/// What a message about the model's configuration begins with.
std::string config_name(const Options& options) {
  return options.init.empty() ? options.config : bert::config_file(options.init).string();
}

/// Records have their length. Text gets the one that the model can take.
void settle_length(Options& options, const bert::Config& config) {
  constexpr int kShortest = 5;  // a word of each text, [CLS] and two [SEP]
  for (const auto& files : {options.inputs, options.evaluation_inputs}) {
    if (files.empty() || kind_of(files) == InputKind::records) continue;
    if (config.max_position_embeddings < kShortest)
      fail(Failure::model, "{}: max_position_embeddings: expected at least {} to train on text, got {}",
           config_name(options), kShortest, config.max_position_embeddings);
    options.settings.max_seq_length = options.settings.sequence_length(config.max_position_embeddings);
  }
}

/// Processes read inputs of one kind in the same way together.
void agree_on_kinds(const Options& options, distributed::Collective& processes) {
  distributed::Facts facts;
  for (const auto& [flag, files] :
       {std::pair("--input", &options.inputs), std::pair("--eval-input", &options.evaluation_inputs)})
    facts.emplace_back(flag, fmt::format("{} {}", files->size(),
                                         kind_of(*files) == InputKind::text      ? "files of text"
                                         : kind_of(*files) == InputKind::records ? "TFRecord files"
                                                                                 : "corpora"));
  distributed::require_agreement(processes, *open_cpu({.threads = 1}), facts);
}

Job read_job(Options& options, distributed::Collective* processes) {
  if (processes) agree_on_kinds(options, *processes);
  Source source = source_of(options);
  const auto are_records = [](const auto& files) { return !files.empty() && kind_of(files) == InputKind::records; };
  const bool has_records = are_records(options.inputs) || are_records(options.evaluation_inputs);
  if (source.config.type_vocab_size < 2 && (has_records || !options.no_next_sentence))
    fail(Failure::model, "{}: type_vocab_size: expected at least 2, one for each sentence, got {}{}",
         config_name(options), source.config.type_vocab_size,
         has_records ? "" : "; hint: --no-next-sentence needs one");
  source.config.architectures = {"BertForPreTraining"};
  settle_length(options, source.config);
  // Runs of all seeds are judged on the same examples.
  const std::uint64_t held_out_seed = training::Settings().seed;
  Input training = read_input(options.inputs, options.settings.seed, source, options, processes);
  Input held_out = read_input(options.evaluation_inputs, held_out_seed, source, options, processes);
  return {std::move(source), std::move(training), std::move(held_out)};
}

/// --validate-only: what the inputs have.
void report_validity(const Job& job) {
  io::say(fmt::format("--input: {} in the first epoch, of at most {} tokens\n",
                      io::counted(job.training.examples->examples(0), "example"), job.training.examples->longest()));
  if (job.held_out.examples)
    io::say(fmt::format("--eval-input: {}, of at most {} tokens\n",
                        io::counted(job.held_out.examples->examples(0), "example"), job.held_out.examples->longest()));
}

}  // namespace

void run(Options& options) {
  io::catch_stop_signals(io::OnStop::leave);  // until there is something to save
  std::optional<Job> job;
  training::run_training(
      {.settings = options.settings,
       .program = "pretrain",
       .files = files_of(options),
       .program_files = objectives::program_files(),
       .read =
           [&](distributed::Collective* processes) {
             job = read_job(options, processes);
             if (options.settings.validate_only && (!processes || processes->rank() == 0)) report_validity(*job);
             return identity_of(options, *job);
           },
       .make_objective =
           [&](const distributed::Replica& self) {
             return std::make_unique<objectives::PretrainingObjective>(
                 job->source.config,
                 objectives::PretrainingObjective::Inputs{.training = *job->training.examples,
                                                          .evaluation = job->held_out.examples.get(),
                                                          .evaluation_batch = *options.settings.micro_batch_size,
                                                          .vocabulary = job->source.tokenizer.vocabulary().text(),
                                                          .tokenizer = job->source.tokenizer.options(),
                                                          .next_sentence = !options.no_next_sentence},
                 self);
           },
       .plan_text = [&] { return recipe_text(options, job->training.examples->longest()); },
       .check_start = [&](const nn::Module& network) { check_start(options, network); },
       .initialize = [&](nn::ParameterSet& parameters) { load_start(options, parameters); },
       .moments = options.keep_moments ? load_moments(options.init) : training::LoadMoments(),
       .report = [&](io::Files& files) { report::write_report_of_run(files, options.settings.output); }});
}

}  // namespace bertrand::pretrain
