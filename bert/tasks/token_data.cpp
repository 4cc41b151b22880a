// The files of a token task read, labelled and encoded together.
#include "bert/tasks/token_data.h"

#include <algorithm>
#include <cmath>

#include "bert/tasks/attempt.h"
#include "io/error.h"

namespace bertrand::tasks {
namespace {

std::optional<TokenSplit> read(const TokenOptions& options, const std::filesystem::path& path, bool needs_label,
                               std::vector<std::string>* bad) {
  if (path.empty()) return std::nullopt;
  std::optional<TokenSplit> split(std::in_place);
  split->file = read_token_file(path.string(), options.columns, needs_label, bad);
  return split;
}

LabelSet learn_token_labels(const TokenFile& file) {
  LabelSet labels = LabelSet::sorted(file.labels);
  if (labels.size() < 2)
    fail(Failure::input, "{}:{}: label: expected at least 2 different ones in the file, got {}", file.file,
         file.lines.front(), in_braces(labels.names()));
  return labels;
}

/// What the data alone says.
LabelSet data_labels(const TokenData& data, const LabelSet& model) {
  if (data.train) return learn_token_labels(data.train->file);
  if (data.evaluation && model.placeholders()) return learn_token_labels(data.evaluation->file);
  return {};
}

/// A bad label that is kept in `bad` counts as the first one.
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

/// The label of the second piece of a word with `label`: no other entity begins there.
std::int32_t continued(std::int32_t label, const LabelSet& names) {
  const std::string& name = names.name(static_cast<std::size_t>(label));
  if (!name.starts_with("B-")) return label;
  return names.find("I-" + name.substr(2)).value_or(label);
}

std::vector<std::int32_t> targets_of(const TokenSplit& split, const LabelSet& names, bool label_all_pieces) {
  std::vector<std::int32_t> targets(static_cast<std::size_t>(split.encoded.windows.token_ids.size()), -1);
  for (std::size_t w = 0; w < split.labels.size(); ++w) {
    std::int32_t label = split.labels[w];
    for (const std::int64_t token : split.encoded.tokens(w)) {
      targets[static_cast<std::size_t>(token)] = label;
      if (!label_all_pieces) break;
      label = continued(label, names);
    }
  }
  return targets;
}

void encode(TokenSplit& split, SentenceEncoder& encoder) {
  for (std::size_t s = 0; s < split.file.sentences(); ++s) encoder.append(split.file.sentence(s), split.encoded);
  if (split.encoded.windows.size() == 0)
    fail(Failure::input, "{}:{}: words: expected at least one of which the tokenizer leaves a token, got none",
         split.file.file, split.file.lines.front());
}

/// Once encoded and labelled, the words to train on are not looked at again.
void drop_words(TokenFile& file) {
  std::vector<std::string>().swap(file.words);  // an assignment would keep the memory
  std::vector<std::string>().swap(file.labels);
  std::vector<std::int64_t>().swap(file.lines);
}

std::string remarks_of(const TokenSplit& split, bool learnt) {
  std::string text;
  if (split.encoded.cut > 0)
    text += fmt::format("{}: {} of {} sentences are longer than --max-seq-length and were cut into windows\n",
                        split.file.file, split.encoded.cut, split.file.sentences());
  if (const std::size_t words = split.without_pieces(); words > 0)
    text += fmt::format("{}: {} of {} words have no token: {}\n", split.file.file, words, split.encoded.words(),
                        learnt ? "nothing is learnt of them" : "they are predicted as the most frequent label");
  return text;
}

}  // namespace

std::size_t TokenSplit::without_pieces() const {
  std::size_t count = 0;
  for (std::size_t w = 0; w < encoded.words(); ++w) count += encoded.tokens(w).empty();
  return count;
}

std::size_t TokenSplit::bytes() const {
  const auto of = [](const auto& list) { return list.capacity() * sizeof list[0]; };
  std::size_t bytes = of(file.words) + of(file.labels) + of(file.lines) + of(file.offsets) + of(encoded.piece_tokens) +
                      of(encoded.first_pieces) + of(labels) + of(targets);
  constexpr std::size_t kInside = 15;  // characters that a string holds in itself
  for (const auto* list : {&file.words, &file.labels})
    for (const std::string& text : *list) bytes += text.capacity() > kInside ? text.capacity() + 1 : 0;
  return bytes;
}

std::size_t TokenData::bytes() const {
  std::size_t bytes = 0;
  for (const auto* split : {&train, &evaluation, &prediction})
    if (*split) bytes += (*split)->bytes();
  return bytes;
}

std::string TokenData::warnings() const {
  std::string text;
  for (const auto* split : {&train, &evaluation, &prediction})
    if (*split && (*split)->file.invalid.count > 0)
      text += fmt::format("warning: {}\n", (*split)->file.invalid.message((*split)->file.file));
  return text;
}

std::string TokenData::remarks() const {
  std::string text;
  for (const auto* split : {&train, &evaluation, &prediction})
    if (*split) text += remarks_of(**split, split == &train);
  return text;
}

TokenData read_token_data(const TokenOptions& options, const TaskFiles& files, const ModelOutputs& model,
                          const text::Tokenizer& tokenizer) {
  TokenData data{.task = options.task};
  SentenceEncoder encoder(tokenizer, options.windows);
  std::vector<std::string>* const bad = files.on_bad == OnBadRow::keep ? &data.bad_rows : nullptr;
  data.train = read(options, files.train, true, bad);
  data.evaluation = read(options, files.evaluation, true, bad);
  data.prediction = read(options, files.prediction, false, bad);
  const LabelSet own(model.labels);
  data.labels = choose_labels(data_labels(data, own), own, data.train.has_value());
  if (data.labels.empty())
    fail(Failure::model, "{}: id2label: expected the names of the labels in config.json or a file to --train, got none",
         model.directory.string());
  if (files.held_out.share > 0) {  // now that the labels of all sentences are known
    data.evaluation.emplace();
    data.evaluation->file = hold_out(data.train->file, files.held_out);
  }
  for (std::optional<TokenSplit>* split : {&data.train, &data.evaluation, &data.prediction}) {
    if (!*split) continue;
    encode(**split, encoder);
    if (split == &data.prediction) continue;
    (*split)->labels = numbered_labels((*split)->file, data.labels, bad);
    (*split)->targets = targets_of(**split, data.labels, options.label_all_pieces);
  }
  if (data.train) {
    data.common = most_common(data.train->labels);
    drop_words(data.train->file);
  }
  return data;
}

double mean_token_loss(const TokenSplit& split, const Logits& logits) {
  check(logits.rows() == split.targets.size(), "mean_token_loss: expected {} rows of outputs, got {}",
        split.targets.size(), logits.rows());
  double sum = 0, count = 0;
  for (std::size_t token = 0; token < split.targets.size(); ++token) {
    if (split.targets[token] < 0) continue;
    sum += cross_entropy(logits.row(token), split.targets[token]);
    ++count;
  }
  return sum / count;
}

}  // namespace bertrand::tasks
