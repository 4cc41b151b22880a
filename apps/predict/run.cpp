// Lines are gathered as far as they come without waiting, computed in batches of like length, and answered in order.
#include "apps/predict/run.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <map>
#include <new>

#include "apps/predict/answers.h"
#include "bert/directory/model_directory.h"
#include "bert/objectives/program_files.h"
#include "bert/tasks/table_formats.h"
#include "bert/text/utf8.h"
#include "io/error.h"
#include "io/file_arguments.h"
#include "io/file_names.h"
#include "io/input_files.h"
#include "io/item_progress.h"
#include "io/line_source.h"
#include "io/say.h"
#include "io/signals.h"
#include "io/units.h"
#include "training/run/devices.h"

namespace bertrand::predict {
namespace {

namespace fs = std::filesystem;

/// How far is looked ahead for sequences of like length.
constexpr std::int64_t kBatchesAhead = 16;
constexpr std::size_t kLinesAhead = 4096;

/// Whether a line that begins a list of objects may end so. A text that begins with [{ does not.
bool is_json_end(char last) { return std::string_view(",[]{}").find(last) != std::string_view::npos; }

/// SQuAD's JSON on one line: it has no key that a request has.
bool is_squad(const io::Json& request) {
  return request.is_object() && request.contains("data") && request["data"].is_array() && !request.contains("text") &&
         !request.contains("question") && !request.contains("words") && !request.contains("tokens");
}

class Stream {
 public:
  Stream(const Options& options, const inference::Predictor& predictor, Answers& out)
      : options_(options), predictor_(predictor), out_(out), lines_(options.input, "text"), form_(options.form) {
    if (form_ != Form::detect) return;
    if (io::is_json_lines(options.input)) form_ = Form::jsonl;
    if (io::is_table(options.input))
      fail(Failure::usage,
           "--input: expected lines of text or JSON, got a table, {}; hint: finetune --model … --predict reads tables, "
           "--input-format text takes its lines as they are",
           options.input.string());
    if (io::is_word_lines(options.input))
      fail(Failure::usage,
           "--input: expected lines of text or JSON, got a word a line, {}; hint: finetune --model … --predict reads "
           "it, --input-format text takes its lines as they are",
           options.input.string());
  }

  void run() {
    while (!ended_) {
      gather();
      compute();
    }
    if (failure_) std::rethrow_exception(failure_);
  }

  void warn() const {
    if (invalid_.count > 0) io::warn("{}", invalid_.message(lines_.name()));
    if (cut_ > 0)
      io::warn("{}: texts that were longer than the model reads at once and lost their end: {}", lines_.name(), cut_);
    if (bad_ > 0) io::warn("{}: {}", lines_.name(), io::counted(bad_, "bad line"));
  }

 private:
  void gather();
  void take(std::string_view line);
  void add_answer();
  void report_bad_line(const Error& error, std::size_t place);
  io::Json read_text(std::string_view line, const std::string& where);
  void compute();
  void take_outputs(std::size_t query, std::span<const inference::Outputs> outputs);
  void write_ready();

  const Options& options_;
  const inference::Predictor& predictor_;
  Answers& out_;
  io::LineSource lines_;
  Form form_;
  bool ended_ = false;
  std::exception_ptr failure_;  // what ends the run as soon as all before it is written

  std::vector<std::string> answers_;   // of the lines gathered, one each; "" is one that is not there yet
  std::vector<std::int64_t> numbers_;  // of these lines
  std::size_t written_ = 0;            // of these
  std::vector<inference::Query> queries_;
  std::vector<io::Json> requests_;                    // of the queries, if answers begin with them
  std::int64_t tokens_ = 0;                           // of all queries
  std::vector<std::size_t> places_;                   // of each query among the answers
  std::map<std::size_t, std::exception_ptr> failed_;  // by the place of the query: its outputs are not finite

  text::InvalidBytes invalid_;
  std::uint64_t answered_ = 0, cut_ = 0, bad_ = 0;
  io::ItemProgress progress_{"predicting", 0};
  // Answers that go to the terminal show by themselves how far they are.
  const bool shows_progress_ =
      ::isatty(STDERR_FILENO) == 1 && (!options_.output.empty() || ::isatty(STDOUT_FILENO) == 0);
};

/// At least one line, unless the input ends; then as many as there are without waiting.
void Stream::gather() {
  try {
    while (tokens_ < kBatchesAhead * options_.max_batch_tokens && answers_.size() < kLinesAhead &&
           (answers_.empty() || lines_.is_ready())) {
      std::string_view line;
      if (!lines_.next_raw(line)) {
        ended_ = true;
        return;
      }
      take(line);
    }
  } catch (const Error& error) {
    if (options_.report_bad_lines && lines_.skip_long_line()) {
      add_answer();
      return report_bad_line(error, answers_.size() - 1);
    }
    failure_ = std::current_exception();
    ended_ = true;
  }
}

void Stream::add_answer() {
  answers_.emplace_back();
  numbers_.push_back(lines_.number());
}

void Stream::report_bad_line(const Error& error, std::size_t place) {
  ++bad_;
  answers_[place] = io::json_text({{"error", error.what()}, {"line", numbers_[place]}}) + "\n";
}

void Stream::take(std::string_view line) {
  const std::string_view stripped = form_ == Form::text ? line : text::strip(line);
  const bool is_blank = form_ != Form::text && stripped.empty();
  const bool begins_list = stripped == "[" || (stripped.starts_with("[{") && is_json_end(stripped.back()));
  const bool may_be_list = form_ == Form::detect ? begins_list : form_ == Form::jsonl && lines_.number() == 1;
  if (may_be_list) tasks::refuse_list_of_rows(stripped, lines_.name());
  // Until then blank lines are lines of text, so that whoever sends a line and waits has an answer.
  if (form_ == Form::detect && !is_blank) form_ = stripped.starts_with('{') ? Form::jsonl : Form::text;
  if (form_ == Form::jsonl && is_blank) return;  // as prepare does
  const std::string where = lines_.where();
  const std::size_t place = answers_.size();
  add_answer();
  try {
    const auto long_number = options_.with_text ? io::LongNumber::refuse : io::LongNumber::round;
    const io::Json request =
        form_ == Form::jsonl ? io::parse_json(line, {where, Failure::input, long_number}) : read_text(line, where);
    if (is_squad(request))
      fail(Failure::input,
           "{}: expected a question and its context in each line, got SQuAD's JSON; hint: finetune --task squad "
           "--model … --predict reads it",
           where);
    queries_.push_back(predictor_.encode(request, where));
    if (options_.with_text) requests_.push_back(request);
    cut_ += queries_.back().cut;
    for (const bert::Sequence& sequence : queries_.back().sequences) tokens_ += std::ssize(sequence.token_ids);
    places_.push_back(place);
  } catch (const Error& error) {
    if (error.failure() != Failure::input) throw;
    if (!options_.report_bad_lines) fail_with_hint(error, "--on-bad-line report goes on after it");
    report_bad_line(error, place);
  }
}

io::Json Stream::read_text(std::string_view line, const std::string& where) {
  const auto number = static_cast<std::uint64_t>(lines_.number());
  io::refuse_nul(line, lines_.name(), number - 1);
  std::string valid;
  const text::DroppedBytes dropped = text::drop_invalid_utf8(line, valid);
  invalid_.add(dropped, number);
  return predictor_.request(dropped.count > 0 ? valid : line, where);
}

void Stream::compute() {
  const auto take = [&](std::size_t query, std::span<const inference::Outputs> outputs) {
    take_outputs(query, outputs);
    write_ready();
  };
  const auto leave_if_requested = [&] {
    if (io::leave_requested())
      fail(Failure::interrupted, "{}: interrupted after {}", lines_.name(), io::counted(answered_, "answer"));
  };
  inference::run_all(predictor_, queries_, options_.max_batch_tokens, take, leave_if_requested);
  write_ready();
  if (!failed_.empty()) std::rethrow_exception(failed_.begin()->second);
  answers_.clear();
  numbers_.clear();
  queries_.clear();
  requests_.clear();
  places_.clear();
  written_ = 0;
  tokens_ = 0;
}

/// The members of a row, then those of its answer. The words of a row are in the answer's words.
io::Json joined(io::Json row, const io::Json& answer, const std::string& where) {
  for (const auto& [key, value] : answer.items())
    if (key != "words" && row.contains(key))
      fail(Failure::input,
           "{}: {}: expected with --with-text a name that the answer does not have, got it; hint: rename it", where,
           key);
  row.update(answer);
  return row;
}

/// A query without finite outputs ends the run when all lines before it are answered.
void Stream::take_outputs(std::size_t query, std::span<const inference::Outputs> outputs) {
  try {
    io::Json answer = inference::answer(queries_[query], outputs);
    if (options_.with_text) answer = joined(std::move(requests_[query]), answer, queries_[query].where);
    answers_[places_[query]] = io::json_text(answer) + "\n";
  } catch (const Error& error) {
    if (error.failure() == Failure::input && options_.report_bad_lines) return report_bad_line(error, places_[query]);
    if (error.failure() != Failure::input && error.failure() != Failure::numerics) throw;
    failed_[places_[query]] = std::current_exception();
  }
}

void Stream::write_ready() {
  std::string lines;
  for (; written_ < answers_.size() && !answers_[written_].empty(); ++written_, ++answered_)
    lines += answers_[written_];
  if (!lines.empty()) out_.write(lines);
  if (shows_progress_) progress_.update(static_cast<std::int64_t>(answered_));
}

inference::Options complete(const Options& options) {
  inference::Options complete = options.inference;
  complete.overlap = options.doc_stride;
  complete.windows.doc_stride = options.doc_stride.value_or(complete.windows.doc_stride);
  complete.answers.version_2 = options.null_threshold.has_value();
  complete.answers.null_score_diff_threshold = options.null_threshold.value_or(0);
  return complete;
}

void check_files(const Options& options) {
  std::vector<fs::path> inputs;
  if (!options.tokenizer.vocab_file.empty()) inputs.push_back(options.tokenizer.vocab_file);
  if (!options.input.empty()) inputs.push_back(options.input);
  io::check_files(inputs, {});
  // Whether the model's own can be read is said by what reads them.
  std::ranges::copy(bert::model_files(options.model), std::back_inserter(inputs));
  if (!options.output.empty()) io::check_output("output", options.output, inputs);
  training::refuse_file_of_run("output", options.output, objectives::program_files());
}

}  // namespace

void run(const Options& given) {
  Options options = given;
  if (options.input == "-") options.input.clear();
  if (options.output == "-") options.output.clear();
  const bert::Config config = bert::read_config(options.model);
  const inference::Head head = options.head ? *options.head : inference::head_of(config, options.model);
  cli::refuse_flags_of_others(options.own_flags, {head});
  check_files(options);
  if (training::replicas_of_process(options.machine) != 1)
    fail(Failure::usage, "--device: expected one device, got {}", options.machine.device);
  io::catch_stop_signals(io::OnStop::leave);
  std::signal(SIGPIPE, SIG_DFL);  // a reader that closed the pipe wants no more answers
  training::open_replicas(options.machine, nullptr).run([&](const distributed::Replica& self) {
    const auto predictor = inference::open({.directory = options.model,
                                            .tokenizer = options.tokenizer,
                                            .backend = self.backend(),
                                            .dtype = options.machine.precision,
                                            .strict = options.strict},
                                           head, complete(options));
    Answers out(options.output);
    Stream stream(options, *predictor, out);
    try {
      stream.run();
    } catch (const Error& error) {
      if (error.failure() != Failure::io) out.publish_some();
      throw;
    } catch (const std::bad_alloc&) {
      out.publish_some();
      throw;
    }
    out.publish();
    stream.warn();
  });
}

}  // namespace bertrand::predict
