// prepare records: text to TFRecords for pre-training.
#include "apps/prepare/records.h"

#include "apps/prepare/output.h"
#include "bert/data/google_records.h"
#include "bert/data/pretraining_text_corpus.h"
#include "bert/data/pretraining_text_masks.h"
#include "bert/text/tokenizer.h"
#include "io/byte_progress.h"
#include "io/error.h"
#include "io/file_arguments.h"
#include "io/file_replacer.h"
#include "io/say.h"
#include "io/signals.h"
#include "io/units.h"

namespace bertrand::prepare {
namespace {

data::Corpus read_inputs(const RecordsOptions& options, const text::Tokenizer& tokenizer, double input_bytes) {
  io::ByteProgress progress("tokenising", input_bytes);
  data::Corpus corpus = data::read_corpus(
      options.inputs, tokenizer,
      {.threads = options.threads, .as_google = true, .progress = [&](std::size_t bytes) { progress.add(bytes); }});
  progress.finish();
  for (const std::string& warning : corpus.warnings) io::warn("{}", warning);
  if (corpus.documents.count() == 1) {
    io::warn("{}: documents: expected at least 2, got 1: every random next sentence comes from the same {}",
             options.inputs.front().string(), "document, as with Google's script; hint: a blank line ends a document");
  }
  const std::string doubt =
      data::doubt_about_sentences(corpus.documents.count(), corpus.documents.sentences.size() - 1);
  if (!doubt.empty()) io::warn("{}: {}", options.inputs.front().string(), doubt);
  return corpus;
}

}  // namespace

void write_records(const RecordsOptions& options) {
  io::catch_stop_signals(io::OnStop::leave);
  const double input_bytes = io::check_files(options.inputs, options.outputs);
  const text::Tokenizer tokenizer = load_tokenizer(options.tokenizer);
  io::check_files(options.tokenizer.files(), options.outputs);  // these are read too, so they are no output either
  for (const std::filesystem::path& output : options.outputs) {
    if (!io::is_replaceable(output))
      fail(Failure::usage, "--output: expected a file of its own, got the link, pipe or device {}", output.string());
    check_output(output, options.overwrite);
  }
  const data::GoogleOptions& google = options.google;
  const std::string doubt = data::doubt_about_predictions(
      google.max_seq_length, {.probability = google.masked_lm_prob, .max_predictions = google.max_predictions});
  if (!doubt.empty()) io::warn("{}", doubt);
  const data::Corpus corpus = read_inputs(options, tokenizer, input_bytes);

  const double work = input_bytes * static_cast<double>(google.dupe_factor);
  io::ByteProgress progress("writing records", work);
  const data::RecordFiles output{.files = options.outputs, .threads = options.threads, .progress = [&](double share) {
                                   progress.update(share * work);
                                 }};
  const data::RecordCounts counts = data::write_google_records(corpus, tokenizer.vocabulary(), google, output);
  progress.finish();
  io::tell("wrote {} in {}: {}, {} masked, {} with a random next sentence, {} bytes",
           io::counted(counts.records, "record"), io::counted(options.outputs.size(), "file"),
           io::counted(counts.tokens, "token"), counts.masked, counts.random_next, counts.bytes);
}

}  // namespace bertrand::prepare
