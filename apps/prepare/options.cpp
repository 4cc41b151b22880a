// prepare's commands and their flags.
#include "apps/prepare/options.h"

#include <limits>
#include <memory>

#include "apps/cli/flags.h"
#include "apps/prepare/corpus.h"
#include "apps/prepare/dump.h"
#include "apps/prepare/records.h"
#include "apps/prepare/sentences.h"
#include "apps/prepare/squad.h"
#include "apps/prepare/tokens.h"
#include "apps/prepare/vocab.h"
#include "tensor/backends.h"

namespace bertrand::prepare {
namespace {

using cli::choice_flag;
using cli::number_flag;
using cli::Range;
using io::Choices;

/// --vocab-file and --cased, or --model.
void add_tokenizer_flags(CLI::App& app, TokenizerFlags& flags) {
  app.add_option("--vocab-file", flags.vocab_file, "vocab.txt: a token a line; or --model")->type_name("FILE");
  app.add_flag("--cased", flags.cased,
               "with --vocab-file: keep case and accents (default: lower-case and strip accents)");
  app.add_option("--model", flags.model,
                 "model directory or TensorFlow checkpoint: its vocabulary, case and added tokens, as pretrain --init "
                 "and finetune read text for it")
      ->type_name("PATH");
}

/// --threads, all cores if not given.
void add_threads_flag(CLI::App& app, int& threads) {
  threads = available_cores();
  number_flag(app, "--threads", threads, Range<int>{1, 1024}, "threads; the result does not depend on it", "all cores");
}

void add_overwrite_flag(CLI::App& app, bool& overwrite) {
  app.add_flag("--overwrite", overwrite, "replace a file that is there");
}

void add_flags(CLI::App& app, TokensOptions& options) {
  add_tokenizer_flags(app, options.tokenizer);
  app.add_flag("--with-special-tokens", options.with_special_tokens,
               "literal [MASK], [SEP] … in the text become their ids (default: split, as in Google's tokenizer)");
  add_threads_flag(app, options.threads);
  app.add_option("FILE", options.input,
                 "text, a line at a time; lines end at \\n only; .jsonl, .ndjson, .json: a {\"text\"} a line (default: "
                 "standard input)")
      ->type_name("");
}

void add_flags(CLI::App& app, SentencesOptions& options) {
  app.add_option("--input", options.inputs,
                 "text: a paragraph a line, a blank line or a new file between documents; .jsonl, .ndjson, .json: a "
                 "{\"text\"} a line is a document, its lines are paragraphs; either may be compressed by gzip or "
                 "Zstandard")
      ->type_name("FILE")
      ->required();
  app.add_option("--output", options.output, "a sentence a line, a blank line between documents")
      ->type_name("FILE")
      ->required();
  add_overwrite_flag(app, options.overwrite);
  app.add_option("--language", options.language,
                 "whose abbreviations end no sentence: de, en, es, fr, it, pt, ru; any other code that ICU has takes "
                 "the rules of Unicode alone")
      ->type_name("CODE")
      ->capture_default_str();
  app.add_flag("--unwrap", options.unwrap,
               "for books: a blank line ends a paragraph, whose lines are joined, and a file is a document");
}

void add_flags(CLI::App& app, RecordsOptions& options) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  data::GoogleOptions& google = options.google;
  add_tokenizer_flags(app, options.tokenizer);
  app.add_option("--input", options.inputs, "text: a sentence a line, a blank line between documents")
      ->type_name("FILE")
      ->required();
  app.add_option("--output", options.outputs, "TFRecord files; the records go round robin over them")
      ->type_name("FILE")
      ->required();
  add_overwrite_flag(app, options.overwrite);
  number_flag(app, "--max-seq-length", google.max_seq_length, Range<std::int64_t>{5, 65536},
              "tokens of a record, [CLS] and [SEP] included");
  number_flag(app, "--max-predictions-per-seq", google.max_predictions, Range<std::int64_t>{0, 65536},
              "masked tokens of a record, at most");
  number_flag(app, "--masked-lm-prob", google.masked_lm_prob, Range<double>{0, 1}, "share of tokens that are masked");
  number_flag(app, "--short-seq-prob", google.short_seq_prob, Range<double>{0, 1},
              "share of documents that are cut into shorter records");
  number_flag(app, "--dupe-factor", google.dupe_factor, Range<std::int64_t>{1, kMost},
              "how often the text is used, masked anew each time");
  number_flag(app, "--seed", google.seed,
              Range<std::int64_t>{std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()},
              "of Python's random numbers");
  app.add_flag("--whole-word-mask", google.whole_words, "mask all pieces of a word or none");
  add_threads_flag(app, options.threads);
}

void add_flags(CLI::App& app, CorpusOptions& options) {
  add_tokenizer_flags(app, options.tokenizer);
  app.add_option("--input", options.inputs,
                 "text: a sentence a line, a blank line between documents; .jsonl, .ndjson, .json: a {\"text\"} a "
                 "line, its lines are "
                 "sentences; either may be compressed by gzip or Zstandard")
      ->type_name("FILE")
      ->required();
  app.add_option("--output", options.output, "directory to write; it appears when it is whole")
      ->type_name("DIR")
      ->required();
  number_flag(app, "--shards", options.shards, Range<int>{1, 99999},
              "parts of about the same size, at most so many; a compressed input is not divided");
  add_threads_flag(app, options.threads);
}

void add_flags(CLI::App& app, DumpOptions& options) {
  app.add_option("FILE", options.files, "TFRecord files, also .gz or .zst")->type_name("")->required();
  const Choices<io::OnCorrupt> choices{{"stop", io::OnCorrupt::stop}, {"skip", io::OnCorrupt::skip}};
  choice_flag(app, "--on-corrupt", options.on_corrupt, choices, "what to do about a corrupt record");
}

void add_flags(CLI::App& app, VocabOptions& options) {
  constexpr std::size_t kMost = 1 << 23;
  app.add_option("--input", options.inputs,
                 "text; .jsonl, .ndjson, .json: a {\"text\"} a line; either may be compressed by gzip or Zstandard")
      ->type_name("FILE")
      ->required();
  app.add_option("--output", options.output, "vocab.txt")->type_name("FILE")->required();
  add_overwrite_flag(app, options.overwrite);
  number_flag(app, "--size", options.trainer.size, Range<std::size_t>{6, kMost},
              "tokens wanted, special ones included");
  app.add_flag("--cased", options.cased, "keep case and accents (default: lower-case and strip accents)");
  number_flag(app, "--min-frequency", options.trainer.min_frequency,
              Range<std::uint64_t>{1, std::numeric_limits<std::uint32_t>::max()},
              "of a pair of pieces that becomes a piece");
  number_flag(app, "--limit-alphabet", options.trainer.limit_alphabet, Range<std::size_t>{1, kMost},
              "the most frequent characters that are kept; Chinese needs some 8000");
  add_threads_flag(app, options.threads);
}

void add_flags(CLI::App& app, SquadRecordsOptions& options) {
  tasks::SquadOptions& features = options.features;
  add_tokenizer_flags(app, options.tokenizer);
  app.add_option("--input", options.input, "questions and contexts in SQuAD's JSON, or a question a line")
      ->type_name("FILE")
      ->required();
  app.add_option("--output", options.output, "TFRecord file")->type_name("FILE")->required();
  add_overwrite_flag(app, options.overwrite);
  app.add_flag("--training", features.training, "with the positions of the answers");
  app.add_flag("--version-2", features.version_2, "SQuAD 2.0: a question may have no answer");
  number_flag(app, "--max-seq-length", features.max_seq_length, Range<int>{8, 65536},
              "tokens of a window, [CLS] and [SEP] included");
  number_flag(app, "--doc-stride", features.doc_stride, Range<int>{1, 65536},
              "pieces from the beginning of a window to that of the next");
  number_flag(app, "--max-query-length", features.max_query_length, Range<int>{1, 65536},
              "pieces of a question; more are cut");
  add_threads_flag(app, features.threads);
}

template <class Options>
void add_command(CLI::App& app, const std::string& name, const std::string& description,
                 void (*run)(const Options& options), std::function<void()>& chosen) {
  CLI::App* const command = app.add_subcommand(name, description);
  const auto options = std::make_shared<Options>();
  add_flags(*command, *options);
  command->final_callback([&chosen, run, options] { chosen = [run, options] { run(*options); }; });
}

}  // namespace

void add_commands(CLI::App& app, std::function<void()>& chosen) {
  app.require_subcommand(1);
  add_command(app, "sentences", "a sentence a line of raw text, a blank line between documents: what pretrain reads",
              write_sentences, chosen);
  add_command(app, "tokens", "a line of token ids for every line of text", write_tokens, chosen);
  add_command(app, "records", "pre-training records, as Google's create_pretraining_data.py", write_records, chosen);
  add_command(app, "corpus", "a tokenised corpus, which pretrain maps and does not read; an interrupted one goes on",
              write_corpus, chosen);
  add_command(app, "dump", "the records of TFRecord files as text", write_dump, chosen);
  add_command(app, "squad", "answer-span features of SQuAD's JSON, as Google's run_squad.py", write_squad, chosen);
  add_command(app, "vocab", "learns a WordPiece vocabulary from text: merges by frequency, as Hugging Face's trainer",
              write_vocab, chosen);
}

}  // namespace bertrand::prepare
