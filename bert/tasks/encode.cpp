// Examples tokenised, joined and cut.
#include "bert/tasks/encode.h"

#include <fmt/format.h>

#include <algorithm>

#include "io/error.h"

namespace bertrand::tasks {
text::Sequence encode_pieces(std::vector<std::int32_t> a, std::optional<std::vector<std::int32_t>> b,
                             SpecialTokens special, int max_length) {
  const int least = b ? 5 : 3;
  if (max_length < least)
    fail(Failure::usage, "--max-seq-length: expected at least {} for {}, got {}", least, b ? "pairs" : "single texts",
         max_length);
  if (!b) a.resize(std::min(a.size(), static_cast<std::size_t>(max_length - 2)));
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

void EncodedDataset::end_example(std::int32_t first_length) {
  offsets_.push_back(token_ids.size());
  first_lengths_.push_back(first_length);
  if (!place_.is_due(token_ids.unspilled_bytes() + targets.unspilled_bytes(), token_ids.is_spilled())) return;
  token_ids.spill(place_);
  targets.spill(place_);
  offsets_.spill(place_);
  first_lengths_.spill(place_);
}

void EncodedDataset::finish() {
  token_ids.finish(place_);
  targets.finish(place_);
  offsets_.finish(place_);
  first_lengths_.finish(place_);
}

std::size_t EncodedDataset::bytes() const {
  return token_ids.held_bytes() + targets.held_bytes() + offsets_.held_bytes() + first_lengths_.held_bytes();
}

// This is for memory alone.
void EncodedDataset::let_go() const {
  token_ids.let_go();
  targets.let_go();
  offsets_.let_go();
  first_lengths_.let_go();
}

ExampleEncoder::ExampleEncoder(const text::Tokenizer& tokenizer, int max_length)
    : special_{.cls = tokenizer.vocabulary().cls_id(), .sep = tokenizer.vocabulary().sep_id()},
      max_length_(max_length),
      caching_(tokenizer) {}

std::vector<std::int32_t> ExampleEncoder::pieces_of(const std::string& text, const char* what, const Dataset& dataset,
                                                    const Example& example) {
  const std::span<const std::int32_t> ids = caching_.encode(text);
  if (ids.empty() && text.find_first_not_of(" \t\r\n") != std::string::npos)
    fail(Failure::input, "{}: {}: expected at least one token, got none", dataset.where(example), what);
  return {ids.begin(), ids.end()};
}

void ExampleEncoder::append(const Dataset& dataset, const Example& example, EncodedDataset& to) {
  const std::vector<std::int32_t> a = pieces_of(example.text_a, "text", dataset, example);
  std::vector<std::optional<std::vector<std::int32_t>>> seconds;
  if (example.text_b && example.choices.empty())
    seconds.push_back(pieces_of(*example.text_b, "text", dataset, example));
  for (const std::string& choice : example.choices)
    seconds.push_back(pieces_of(example.text_b ? fmt::format("{} {}", *example.text_b, choice) : choice, "choices",
                                dataset, example));
  if (seconds.empty()) seconds.push_back(std::nullopt);
  for (auto& b : seconds) {  // now that none of them is refused
    const std::size_t whole = a.size() + (b ? b->size() + 3 : 2);
    const text::Sequence one = encode_pieces(a, std::move(b), special_, max_length_);
    to.cut += one.token_ids.size() < whole;
    to.token_ids.append(one.token_ids);
    to.end_example(static_cast<std::int32_t>(std::ranges::count(one.token_types, 0)));
  }
}

}  // namespace bertrand::tasks
