#include "bert/tasks/training_words.h"

#include "io/error.h"

namespace bertrand::tasks {

TrainingWords::TrainingWords(const TokenOptions& options, const TaskFiles& files, std::vector<std::string>* bad)
    : options_(options), files_(files), bad_(bad) {
  const auto note = [&](const TokenFile& sentence) {
    if (sentences_++ == 0) first_line_ = sentence.lines.front();
    names_.insert(sentence.labels.begin(), sentence.labels.end());
    if (options.task == TokenTask::ner) illegal_.add(sentence);
    only_numbers_ = only_numbers_ && words_are_numbers(sentence);
  };
  invalid_ = walk_sentences(files.train.string(), options.columns, true, bad, note).invalid;
}

LabelSet TrainingWords::labels() const {
  return learn_token_labels(names_, fmt::format("{}:{}", files_.train.string(), first_line_), bad_);
}

TrainedWords TrainingWords::encode(const LabelSet& labels, SentenceEncoder& encoder, SentenceList& taken) const {
  const std::string file = files_.train.string();
  const bool holds_out = files_.held_out.share > 0;
  std::vector<bool> marked(static_cast<std::size_t>(sentences_));
  if (holds_out) marked = held_out(std::vector<std::int32_t>(marked.size()), files_.held_out, file);
  TrainedWords out;
  out.file = file;
  out.illegal = illegal_;
  out.invalid = invalid_;
  out.only_numbers = only_numbers_;
  EncodedSentences encoded{.windows = EncodedDataset(files_.spill), .piece_tokens = {}};
  std::map<std::int32_t, std::int64_t> counts;
  std::int64_t first_line = 0, number = 0;
  std::vector<std::string> known;  // bad lines are known already
  walk_sentences(file, options_.columns, true, bad_ ? &known : nullptr, [&](const TokenFile& sentence) {
    if (number == sentences_) fail(Failure::input, "{}: expected {} sentences as before, got more", file, sentences_);
    if (marked[static_cast<std::size_t>(number++)]) return taken.append(sentence);
    if (out.sentences++ == 0) first_line = sentence.lines.front();
    encoder.append(sentence.words, encoded);
    const std::vector<std::int32_t> numbers = numbered_labels(sentence, labels, bad_);
    append_targets(numbers, labels, options_.label_all_pieces, encoded);
    for (const std::int32_t label : numbers) ++counts[label];
    out.count(encoded);
  });
  if (number < sentences_)
    fail(Failure::input, "{}: expected {} sentences as before, got {}", file, sentences_, number);
  out.take(std::move(encoded), fmt::format("{}:{}", file, first_line));
  out.common = most_common(counts);
  return out;
}

}  // namespace bertrand::tasks
