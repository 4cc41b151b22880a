// The files of a token task read, labelled and encoded together.
#include "bert/tasks/token_data.h"

#include <algorithm>
#include <cmath>

#include "bert/tasks/attempt.h"
#include "bert/tasks/training_words.h"
#include "io/error.h"
#include "io/say.h"
#include "io/signals.h"

namespace bertrand::tasks {
namespace {

std::optional<TokenSplit> read(const TokenOptions& options, const std::filesystem::path& path,
                               const io::SpillPlace& spill, bool needs_label, std::vector<std::string>* bad) {
  if (path.empty()) return std::nullopt;
  std::optional<TokenSplit> split(std::in_place);
  split->file = path.string();
  split->list = SentenceList(spill);
  const auto add = [&](const TokenFile& sentence) {
    split->list.append(sentence);
    if (needs_label && options.task == TokenTask::ner) split->illegal.add(sentence);
    split->only_numbers = split->only_numbers && words_are_numbers(sentence);
  };
  split->invalid = walk_sentences(split->file, options.columns, needs_label, bad, add).invalid;
  split->list.finish();
  return split;
}

/// What the data alone says.
LabelSet data_labels(const std::optional<TrainingWords>& training, const TokenData& data, const LabelSet& model) {
  if (training) return training->labels();
  if (!data.evaluation || !model.placeholders()) return {};
  const SentenceList& list = data.evaluation->list;
  LabelNames names;
  list.for_each([&](std::size_t, const TokenFile& sentence) {
    io::leave_if_requested("reading words");
    names.insert(sentence.labels.begin(), sentence.labels.end());
  });
  return learn_token_labels(names, list.where(), &data.bad_rows);
}

/// The label of the second piece of a word with `label`: no other entity begins there.
std::int32_t continued(std::int32_t label, const LabelSet& names) {
  const std::string& name = names.name(static_cast<std::size_t>(label));
  if (!name.starts_with("B-")) return label;
  return names.find("I-" + name.substr(2)).value_or(label);
}

/// Encodes a file sentence by sentence. With `names` its words have labels.
void encode(TokenSplit& split, SentenceEncoder& encoder, const TokenOptions& options, const io::SpillPlace& spill,
            const LabelSet* names, std::vector<std::string>* bad) {
  EncodedSentences encoded{.windows = EncodedDataset(spill), .piece_tokens = {}};
  split.list.for_each([&](std::size_t, const TokenFile& sentence) {
    io::leave_if_requested("reading words");
    ++split.sentences;
    encoder.append(sentence.words, encoded);
    for (std::size_t w = 0; w < encoded.words(); ++w) {
      const auto token = encoded.token(w);
      split.tokens.push_back(token ? static_cast<std::int64_t>(*token) : -1);
    }
    split.tokens.spill_if_due(spill);
    if (names) {
      const std::vector<std::int32_t> numbers = numbered_labels(sentence, *names, bad);
      append_targets(numbers, *names, options.label_all_pieces, encoded);
      split.labels.append(numbers);
      split.labels.spill_if_due(spill);
    }
    split.count(encoded);
  });
  split.tokens.finish(spill);
  split.labels.finish(spill);
  split.take(std::move(encoded), split.list.where());
}

std::string remarks_of(const EncodedWords& words, std::string_view of_words_without_pieces) {
  std::string text;
  if (words.cut > 0)
    text += fmt::format("{}: sentences longer than --max-seq-length, cut into windows: {} of {}\n", words.file,
                        words.cut, words.sentences);
  if (words.without_pieces > 0)
    text += fmt::format("{}: words without a token: {} of {}; {}\n", words.file, words.without_pieces, words.words,
                        of_words_without_pieces);
  return text + words.illegal.remark(words.file);
}

/// Labels of entities that no one means.
std::string doubts_about_entities(const LabelSet& labels, const std::string& file) {
  const std::vector<std::string>& names = labels.names();
  const auto bare = std::ranges::find_if(names, [](const auto& name) { return name != "O" && !is_entity_tag(name); });
  if (bare == names.end()) return "";
  if (const auto tag = std::ranges::find_if(names, is_entity_tag); tag != names.end())
    return io::warning("{}: labels: expected O, or one with a prefix as {}, got \"{}\": is the first line a header?",
                       file, *tag, *bare);
  if (labels.find("O")) return io::warning("{}: labels: {}", file, text_of_no_entity_tag(*bare));
  return io::warning("{}: labels: expected O, or some as B-PER, got {}: is --label-column the right one?", file,
                     in_braces(names));
}

}  // namespace

void IllegalLabels::add(const TokenFile& sentences) {
  for (std::size_t s = 0; s < sentences.sentences(); ++s) {
    const std::size_t begin = sentences.offsets[s], end = sentences.offsets[s + 1];
    const auto first = pairs.add(std::span(sentences.labels).subspan(begin, end - begin));
    if (first && first_line == 0) first_line = sentences.lines[begin + *first];
  }
}

std::string IllegalLabels::remark(const std::string& file) const {
  if (first_line == 0) return "";
  return fmt::format(
      "{}:{}: labels: {} of the file continue no entity of their type, the first here, most often {}; each counts as "
      "the beginning of one\n",
      file, first_line, pairs.sum(), pairs.most_frequent());
}

LabelSet learn_token_labels(const LabelNames& names, const std::string& where, const std::vector<std::string>* bad) {
  LabelSet labels = LabelSet::sorted({names.begin(), names.end()});
  if (labels.size() < 2 && bad && !bad->empty()) throw OnlyBadRows(*bad);
  if (labels.size() < 2)
    fail(Failure::input, "{}: label: expected at least 2 different ones in the file, got {}", where,
         in_braces(labels.names()));
  return labels;
}

std::vector<std::int32_t> numbered_labels(const TokenFile& file, const LabelSet& names, std::vector<std::string>* bad) {
  std::vector<std::int32_t> labels(file.labels.size());
  for (std::size_t w = 0; w < file.labels.size(); ++w)
    attempt(bad, [&] {
      const auto label = names.find(file.labels[w]);
      if (!label)
        fail(Failure::input, "{}: label: expected one of {}, got \"{}\"", file.where(w), in_braces(names.names()),
             file.labels[w]);
      labels[w] = *label;
    });
  return labels;
}

void append_targets(std::span<const std::int32_t> labels, const LabelSet& names, bool label_all_pieces,
                    EncodedSentences& encoded) {
  const std::int64_t first_token = encoded.windows.targets.size();
  const std::size_t first_word = encoded.words() - labels.size();
  std::vector<std::int32_t> targets(static_cast<std::size_t>(encoded.windows.token_ids.size() - first_token), -1);
  for (std::size_t w = 0; w < labels.size(); ++w) {
    std::int32_t label = labels[w];
    for (const std::int64_t token : encoded.tokens(first_word + w)) {
      targets[static_cast<std::size_t>(token - first_token)] = label;
      if (!label_all_pieces) break;
      label = continued(label, names);
    }
  }
  encoded.windows.targets.append(targets);
}

void EncodedWords::count(EncodedSentences& encoded) {
  words += encoded.words();
  without_pieces += encoded.without_pieces();
  encoded.forget_words();
}

void EncodedWords::take(EncodedSentences encoded, const std::string& where) {
  if (encoded.windows.size() == 0)
    fail(Failure::input, "{}: words: expected at least one of which the tokenizer leaves a token, got none", where);
  windows = std::move(encoded.windows);
  windows.finish();
  cut = encoded.cut;
}

std::size_t TokenData::bytes() const {
  std::size_t bytes = 0;
  for (const auto* split : {&evaluation, &prediction})
    if (*split) bytes += (*split)->bytes();
  return bytes;
}

std::string TokenData::warnings() const {
  std::string text;
  const auto add = [&](const text::InvalidBytes& invalid, const std::string& file) {
    if (invalid.count > 0) text += io::warning("{}", invalid.message(file, bad_rows.empty() ? "dropped" : "found"));
  };
  if (train) add(train->invalid, train->file);
  for (const auto* split : {&evaluation, &prediction})
    if (*split) add((*split)->invalid, (*split)->file);
  const EncodedWords* first = nullptr;
  if (prediction) first = &*prediction;
  if (evaluation) first = &*evaluation;
  if (train) first = &*train;
  if (first && first->only_numbers)
    text += io::warning("{}: all words are whole numbers; hint: --text-column 1 --label-column 2", first->file);
  if (train && task == TokenTask::ner) text += doubts_about_entities(labels, train->file);
  return text;
}

std::string TokenData::remarks() const {
  std::string text;
  if (train) text += remarks_of(*train, "nothing is learnt of them");
  for (const auto* split : {&evaluation, &prediction})
    if (*split) text += remarks_of(**split, "they are predicted as the most frequent label");
  return text;
}

TokenData read_token_data(const TokenOptions& options, const TaskFiles& files, const ModelOutputs& model,
                          const text::Tokenizer& tokenizer) {
  TokenData data{.task = options.task, .spill = files.spill};
  SentenceEncoder encoder(tokenizer, options.windows);
  std::vector<std::string>* const bad = files.on_bad == OnBadRow::keep ? &data.bad_rows : nullptr;
  std::optional<TrainingWords> training;
  if (!files.train.empty()) training.emplace(options, files, bad);
  data.evaluation = read(options, files.evaluation, files.spill, true, bad);
  data.prediction = read(options, files.prediction, files.spill, false, bad);
  const LabelSet own(model.labels);
  data.labels = choose_labels(data_labels(training, data, own), own, training.has_value(), model.config);
  if (data.labels.empty())
    fail(Failure::model, "{}: id2label: expected the names of the labels or a file to --train, got none",
         model.config.string());
  SentenceList taken(files.spill);
  if (training) data.train = training->encode(data.labels, encoder, taken);
  if (files.held_out.share > 0) {
    data.evaluation.emplace();
    data.evaluation->file = files.train.string();
    data.evaluation->list = std::move(taken);
    data.evaluation->list.finish();
  }
  if (data.evaluation) encode(*data.evaluation, encoder, options, files.spill, &data.labels, bad);
  if (data.prediction) encode(*data.prediction, encoder, options, files.spill, nullptr, bad);
  return data;
}

double mean_token_loss(const TokenSplit& split, const Logits& logits) {
  const std::span<const std::int32_t> targets = split.windows.targets.all();
  check(logits.rows() == targets.size(), "mean_token_loss: expected {} rows of outputs, got {}", targets.size(),
        logits.rows());
  double sum = 0, count = 0;
  for (std::size_t token = 0; token < targets.size(); ++token) {
    logits.let_go(token);  // for memory alone
    if (targets[token] < 0) continue;
    sum += cross_entropy(logits.row(token), targets[token]);
    ++count;
  }
  split.windows.let_go();  // for memory alone
  return sum / count;
}

}  // namespace bertrand::tasks
