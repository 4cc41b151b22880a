// Examples tokenised, joined and cut.
#include "bert/tasks/encode.h"

#include <algorithm>

#include "io/error.h"

namespace bertrand::tasks {
namespace {

std::vector<std::int32_t> pieces_of(const std::string& text, text::Encoder& encoder, const std::string& where) {
  const std::span<const std::int32_t> ids = encoder.encode(text);
  if (ids.empty() && text.find_first_not_of(" \t\r\n") != std::string::npos)
    fail(Failure::input, "{}: text: expected at least one token, got none", where);
  return {ids.begin(), ids.end()};
}

}  // namespace

text::Sequence encode_pieces(std::vector<std::int32_t> a, std::optional<std::vector<std::int32_t>> b,
                             SpecialTokens special, int max_length) {
  const int least = b ? 5 : 3;
  if (max_length < least)
    fail(Failure::usage, "--max-seq-length: expected at least {} for {}, got {}", least, b ? "pairs" : "single texts",
         max_length);
  if (!b && static_cast<int>(a.size()) > max_length - 2) a.resize(static_cast<std::size_t>(max_length - 2));
  while (b && static_cast<int>(a.size() + b->size()) > max_length - 3) (a.size() > b->size() ? a : *b).pop_back();

  text::Sequence encoded;
  encoded.token_ids.push_back(special.cls);
  encoded.token_ids.insert(encoded.token_ids.end(), a.begin(), a.end());
  encoded.token_ids.push_back(special.sep);
  encoded.token_types.assign(encoded.token_ids.size(), 0);
  if (b) {
    encoded.token_ids.insert(encoded.token_ids.end(), b->begin(), b->end());
    encoded.token_ids.push_back(special.sep);
    encoded.token_types.resize(encoded.token_ids.size(), 1);
  }
  return encoded;
}

std::size_t EncodedDataset::bytes() const {
  return (token_ids.capacity() + first_lengths.capacity()) * sizeof(std::int32_t) +
         offsets.capacity() * sizeof(std::int64_t);
}

EncodedDataset encode_dataset(Dataset& dataset, const text::Tokenizer& tokenizer, int max_length, OnBadRow on_bad) {
  const SpecialTokens special{.cls = tokenizer.vocabulary().cls_id(), .sep = tokenizer.vocabulary().sep_id()};
  text::Encoder encoder(tokenizer);
  EncodedDataset encoded;
  dataset.for_each_example(on_bad, [&](const Example& example) {
    const std::string where = dataset.where(example);
    std::vector<std::int32_t> a = pieces_of(example.text_a, encoder, where);
    std::optional<std::vector<std::int32_t>> b;
    if (example.text_b) b = pieces_of(*example.text_b, encoder, where);
    const std::size_t whole = a.size() + (b ? b->size() + 3 : 2);

    const text::Sequence one = encode_pieces(std::move(a), std::move(b), special, max_length);
    encoded.cut += one.token_ids.size() < whole;
    encoded.token_ids.insert(encoded.token_ids.end(), one.token_ids.begin(), one.token_ids.end());
    encoded.offsets.push_back(static_cast<std::int64_t>(encoded.token_ids.size()));
    encoded.first_lengths.push_back(static_cast<std::int32_t>(std::ranges::count(one.token_types, 0)));
  });
  return encoded;
}

}  // namespace bertrand::tasks
