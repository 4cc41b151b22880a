// predict's flags and their help.
#include "apps/predict/options.h"

#include "apps/cli/flags.h"

namespace bertrand::predict {

using inference::Head;

const char* const kDescription =
    "Predicts with a model: a line of text or a JSON object each becomes one line of JSON, in the same order.\n"
    "\n"
    "  task       a line of text          or a JSON object       answer\n"
    "  classify   text, or text ||| pair  {text, text_pair}      {label, score, scores}\n"
    "  choose     text ||| choice ||| …   {text, choices: []}    {choice, answer, score, scores}\n"
    "  tokens     text                    {text} or {words: []}  {entities, words}\n"
    "  answer     question ||| context    {question, context}    {answer, score, start, end, n_best}\n"
    "  fill-mask  text with [MASK]        {text}                 {masks: [{position, predictions, …}]}\n"
    "  embed      text                    {text, text_pair}      {embedding}\n"
    "\n"
    "start and end count code points; {tokens: []} is {words: []}. Answers are written as they are ready; a line that "
    "comes alone is answered at once.\n"
    "All lines are of one form. They are JSON if the name of --input ends in .jsonl, .ndjson or .json (also with .gz "
    "or .zst behind it) or if the first line that is not blank begins with {, and text otherwise: then a { has no "
    "meaning. --input-format says it outright. Blank lines of JSON are passed over, and have no answer; before the "
    "form is known they are bad lines.";

namespace {

void add_files(CLI::App& app, Options& o) {
  app.add_option("--model", o.model, "model directory or TensorFlow checkpoint")->type_name("PATH")->required();
  app.add_option("--input", o.input, "lines, also .gz or .zst; - or nothing: standard input")->type_name("FILE");
  app.add_option("--output", o.output, "file to write, replaced at the end (default standard output)")
      ->type_name("FILE");
  cli::choice_flag(app, "--input-format", o.form,
                   io::Choices<Form>{{"auto", Form::detect}, {"text", Form::text}, {"jsonl", Form::jsonl}},
                   "what a line is");
  cli::choice_flag(app, "--on-bad-line", o.report_bad_lines, io::Choices<bool>{{"fail", false}, {"report", true}},
                   "a line that cannot be answered ends the run after all answers before it, or becomes "
                   "{\"error\", \"line\"}");
  app.add_flag(
      "--with-text", o.with_text,
      "answers begin with the members of their line: text, text_pair, …; a line that has a name of the answer, "
      "as label, is bad");
  app.add_option("--vocab-file", o.tokenizer.vocab_file, "vocab.txt, for a model directory without one")
      ->type_name("FILE");
  app.add_flag("--cased", o.tokenizer.cased, "with --vocab-file: keep case and accents");
  app.add_flag("--strict", o.strict, "refuse weights of which any is missing, unused or mis-shaped");
  cli::set_heading(app, "model and data");
}

void add_heads(CLI::App& app, Options& o) {
  const auto own = [&o](CLI::Option* option, std::vector<Head> heads) { o.own_flags.push_back({option, heads}); };
  inference::Options& i = o.inference;
  cli::task_flags(app, o.head, i);
  own(cli::number_flag(app, "--top-k", i.top_k, {1, 1 << 20},
                       "words for a mask, candidates for an answer; if these are more than --n-best-size, as many are "
                       "compared"),
      {Head::fill_mask, Head::answer});
  own(cli::pooling_flag(app, i), {Head::embed});
  own(app.add_flag("--normalize", i.normalize, "embeddings of length 1"), {Head::embed});
  own(cli::number_flag(
          app, "--doc-stride", o.doc_stride, {0, 1 << 20},
          "windows of what is longer than --max-seq-length: for answers tokens from the beginning of one to that of "
          "the next (default 128), for tokens those that two of them share (default a quarter)"),
      {Head::answer, Head::tokens});
  own(cli::number_flag(app, "--max-query-length", i.windows.max_query_length, {1, 1 << 20}, "tokens of a question",
                       "64, or half of a window that is too short for them"),
      {Head::answer});
  own(cli::number_flag(app, "--n-best-size", i.answers.n_best_size, {1, 1 << 20},
                       "candidates that are compared, at least --top-k; a score is a share among them"),
      {Head::answer});
  own(cli::number_flag(app, "--max-answer-length", i.answers.max_answer_length, {1, 1 << 20}, "tokens of an answer"),
      {Head::answer});
  own(cli::null_threshold_flag(app, o.null_threshold), {Head::answer});
  cli::set_heading(app, "task");
}

void add_machine(CLI::App& app, Options& o) {
  cli::machine_flags(app, o.machine, "the result");
  cli::number_flag(app, "--max-batch-tokens", o.max_batch_tokens, {1, 1 << 24},
                   "tokens computed at once; does not change the result");
  cli::set_heading(app, "machine");
}

}  // namespace

void add_flags(CLI::App& app, Options& options) {
  add_files(app, options);
  add_heads(app, options);
  add_machine(app, options);
}

}  // namespace bertrand::predict
