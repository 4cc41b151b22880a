#include "bert/data/pretraining_records.h"

#include <algorithm>

#include "bert/data/tf_example.h"
#include "tensor/error.h"

namespace bertrand::data {

namespace {

/// The features of one record, each of the kind and length that Google's reader asks for.
class RecordFeatures {
 public:
  RecordFeatures(std::string_view record, std::string_view place)
      : features_(parse_example(record, place)), place_(place) {}

  const std::vector<std::int64_t>& integers(std::string_view name) const {
    return list<std::vector<std::int64_t>>(name, "an int64 list");
  }
  const std::vector<float>& numbers(std::string_view name) const {
    return list<std::vector<float>>(name, "a float list");
  }

  void check_length(std::string_view name, std::size_t expected, std::size_t got) const {
    if (expected != got) fail(Failure::input, "{}: {}: expected {} values, got {}", place_, name, expected, got);
  }

 private:
  template <class List>
  const List& list(std::string_view name, const char* kind) const {
    const auto found = features_.find(name);
    if (found == features_.end()) {
      std::vector<std::string> present;
      for (const auto& [feature, values] : features_) present.push_back(feature);
      fail(Failure::input,
           "{}: feature {}: expected {}, got none (there are: {}); hint: are these pre-training records?", place_, name,
           kind, fmt::join(present, " "));
    }
    const List* values = std::get_if<List>(&found->second);
    if (!values) fail(Failure::input, "{}: feature {}: expected {}, got another kind", place_, name, kind);
    return *values;
  }

  const Features features_;
  const std::string_view place_;
};

std::int32_t in_range(std::int64_t value, std::int64_t end, const char* what, std::string_view place) {
  if (value < 0 || value >= end) fail(Failure::input, "{}: {}: expected 0 to {}, got {}", place, what, end - 1, value);
  return static_cast<std::int32_t>(value);
}

/// The tokens before the padding: input_mask is ones, then zeros.
std::size_t unpadded_length(const RecordFeatures& features, std::string_view place) {
  const auto& mask = features.integers("input_mask");
  const auto length = static_cast<std::size_t>(std::find(mask.begin(), mask.end(), 0) - mask.begin());
  for (std::size_t i = 0; i < mask.size(); ++i)
    if (mask[i] != (i < length ? 1 : 0))
      fail(Failure::input, "{}: input_mask: expected ones, then zeros, got {} at {}", place, mask[i], i);
  if (length == 0) fail(Failure::input, "{}: input_mask: expected at least one token, got none", place);
  return length;
}

void read_masks(PretrainingExample& example, const RecordFeatures& features, std::string_view place,
                std::int64_t vocab_size) {
  const auto& positions = features.integers("masked_lm_positions");
  const auto& ids = features.integers("masked_lm_ids");
  const auto& weights = features.numbers("masked_lm_weights");
  features.check_length("masked_lm_ids", positions.size(), ids.size());
  features.check_length("masked_lm_weights", positions.size(), weights.size());
  for (std::size_t i = 0; i < positions.size(); ++i) {
    if (weights[i] == 0) continue;  // padding
    if (weights[i] != 1) fail(Failure::input, "{}: masked_lm_weights: expected 0 or 1, got {}", place, weights[i]);
    example.masked_positions.push_back(
        in_range(positions[i], static_cast<std::int64_t>(example.token_ids.size()), "masked_lm_positions", place));
    example.masked_ids.push_back(in_range(ids[i], vocab_size, "masked_lm_ids", place));
  }
  if (example.masked_ids.empty())
    fail(Failure::input, "{}: masked_lm_weights: expected at least one masked token, got none", place);
}

}  // namespace

PretrainingExample parse_pretraining_record(std::string_view record, std::string_view place,
                                            const PretrainingRecordsOptions& options) {
  const RecordFeatures features(record, place);
  const auto& ids = features.integers("input_ids");
  const auto& types = features.integers("segment_ids");
  features.check_length("input_mask", ids.size(), features.integers("input_mask").size());
  features.check_length("segment_ids", ids.size(), types.size());
  const std::size_t length = unpadded_length(features, place);
  if (static_cast<std::int64_t>(length) > options.max_positions)
    fail(Failure::input, "{}: input_ids: expected at most {} tokens (max_position_embeddings), got {}", place,
         options.max_positions, length);

  PretrainingExample example;
  for (std::size_t i = 0; i < length; ++i) {
    example.token_ids.push_back(in_range(ids[i], options.vocab_size, "input_ids", place));
    example.token_types.push_back(in_range(types[i], 2, "segment_ids", place));
  }
  read_masks(example, features, place, options.vocab_size);
  const auto& label = features.integers("next_sentence_labels");
  features.check_length("next_sentence_labels", 1, label.size());
  example.next_sentence_label = in_range(label[0], 2, "next_sentence_labels", place);
  return example;
}

PretrainingRecords::PretrainingRecords(const std::vector<std::filesystem::path>& files,
                                       const PretrainingRecordsOptions& options) {
  std::string record;
  for (const auto& file : files) {
    RecordReader reader(file, options.on_corrupt);
    while (reader.next(record)) add(parse_pretraining_record(record, reader.place(), options));
    if (skipped_ == 0 && reader.skipped() > 0) first_skipped_ = reader.first_skipped();
    skipped_ += reader.skipped();
  }
  if (labels_.empty()) fail(Failure::input, "{}: records: expected at least one, got none", files.at(0).string());
}

void PretrainingRecords::add(const PretrainingExample& example) {
  token_ids_.insert(token_ids_.end(), example.token_ids.begin(), example.token_ids.end());
  masked_ids_.insert(masked_ids_.end(), example.masked_ids.begin(), example.masked_ids.end());
  for (const std::int32_t type : example.token_types) token_types_.push_back(static_cast<std::uint8_t>(type));
  for (const std::int32_t position : example.masked_positions)
    masked_positions_.push_back(static_cast<std::uint16_t>(position));
  labels_.push_back(static_cast<std::uint8_t>(example.next_sentence_label));
  first_token_.push_back(token_ids_.size());
  first_masked_.push_back(masked_ids_.size());
  longest_ = std::max(longest_, static_cast<std::int64_t>(example.token_ids.size()));
}

PretrainingExample PretrainingRecords::example(std::int64_t, std::int64_t number) {
  const auto i = static_cast<std::size_t>(number);
  const auto part = [](const auto& all, const std::vector<std::uint64_t>& first, std::size_t n) {
    return std::vector<std::int32_t>(all.begin() + static_cast<std::ptrdiff_t>(first[n]),
                                     all.begin() + static_cast<std::ptrdiff_t>(first[n + 1]));
  };
  return {.token_ids = part(token_ids_, first_token_, i),
          .token_types = part(token_types_, first_token_, i),
          .masked_positions = part(masked_positions_, first_masked_, i),
          .masked_ids = part(masked_ids_, first_masked_, i),
          .next_sentence_label = labels_[i]};
}

std::size_t PretrainingRecords::bytes() const {
  return (first_token_.capacity() + first_masked_.capacity()) * 8 +
         (token_ids_.capacity() + masked_ids_.capacity()) * 4 + token_types_.capacity() +
         masked_positions_.capacity() * 2 + labels_.capacity();
}

}  // namespace bertrand::data
