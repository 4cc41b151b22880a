// Records checked, their places kept, and read one by one.
#include "bert/data/pretraining_records.h"

#include <algorithm>
#include <future>
#include <limits>

#include "bert/data/tf_example.h"
#include "io/error.h"

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
      fail(Failure::input,
           "{}: feature {}: expected {}, got none among its {} features; hint: are these pre-training records?", place_,
           name, kind, features_.size());
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

/// What is known of one file after it was read through.
struct PretrainingRecords::Checked {
  File file;
  std::vector<Place> places;
  std::int64_t longest = 0;
  std::uint64_t skipped = 0;
  std::string first_skipped;
};

PretrainingRecords::PretrainingRecords(const std::vector<std::filesystem::path>& files,
                                       const PretrainingRecordsOptions& options)
    : options_(options) {
  const auto at_a_time = static_cast<std::size_t>(std::max(options.threads, 1));
  for (std::size_t begin = 0; begin < files.size(); begin += at_a_time) {
    std::vector<std::future<Checked>> checked;
    for (std::size_t i = begin; i < std::min(begin + at_a_time, files.size()); ++i)
      checked.push_back(std::async(std::launch::async, [this, &files, i] { return check_file(files[i]); }));
    for (auto& file : checked) add(file.get());
  }
  if (places_.empty())
    fail(Failure::input, "{}: records: expected at least one, got none{}", files.at(0).string(),
         skipped_ > 0 ? "; skipped " + first_skipped_ : "");
}

PretrainingRecords::Checked PretrainingRecords::check_file(const std::filesystem::path& path) const {
  io::RecordReader reader(path, options_.on_corrupt);
  Checked checked{.file = {.path = path, .is_compressed = reader.is_compressed(), .unpacked = {}},
                  .places = {},
                  .first_skipped = {}};
  for (std::string record; reader.next(record);) {
    const PretrainingExample example = parse_pretraining_record(record, reader.place(), options_);
    if (record.size() > std::numeric_limits<std::uint32_t>::max())
      fail(Failure::input, "{}: record: expected at most 4 GiB, got {} bytes", reader.place(), record.size());
    checked.places.push_back({.offset = checked.file.is_compressed ? checked.file.unpacked.size() : reader.offset(),
                              .bytes = static_cast<std::uint32_t>(record.size()),
                              .tokens = static_cast<std::uint32_t>(example.token_ids.size()),
                              .masked = static_cast<std::uint32_t>(example.masked_ids.size())});
    if (checked.file.is_compressed) {
      checked.file.unpacked += record;
      io::check_decompressed(path, checked.file.unpacked.size(), options_.most_decompressed);
    }
    checked.longest = std::max(checked.longest, static_cast<std::int64_t>(example.token_ids.size()));
  }
  checked.skipped = reader.skipped();
  checked.first_skipped = reader.first_skipped();
  return checked;
}

void PretrainingRecords::add(Checked checked) {
  places_.insert(places_.end(), checked.places.begin(), checked.places.end());
  files_.push_back(std::move(checked.file));
  files_.back().end = places_.size();
  longest_ = std::max(longest_, checked.longest);
  if (skipped_ == 0) first_skipped_ = std::move(checked.first_skipped);
  skipped_ += checked.skipped;
}

PretrainingExample PretrainingRecords::example(std::int64_t, std::int64_t number) {
  const auto file = std::ranges::upper_bound(files_, static_cast<std::size_t>(number), {}, &File::end);
  const Place& where = place(number);
  const std::string name = fmt::format("{}@{}", file->path.string(), where.offset);
  if (file->is_compressed)
    return parse_pretraining_record(std::string_view(file->unpacked).substr(where.offset, where.bytes), name, options_);
  return parse_pretraining_record(io::read_record_at(file->path, where.offset, where.bytes), name, options_);
}

/// The example with most tokens need not be the one with most masked ones.
std::vector<ExampleSize> PretrainingRecords::largest(std::int64_t count) const {
  std::vector<std::uint32_t> tokens, masked;
  for (const Place& place : places_) {
    tokens.push_back(place.tokens);
    masked.push_back(place.masked);
  }
  const auto taken = std::min<std::ptrdiff_t>(count, std::ssize(places_));
  std::ranges::partial_sort(tokens, tokens.begin() + taken, std::greater());
  std::ranges::partial_sort(masked, masked.begin() + taken, std::greater());
  std::vector<ExampleSize> sizes;
  for (std::size_t i = 0; i < static_cast<std::size_t>(taken); ++i)
    sizes.push_back({.tokens = tokens[i], .masked = masked[i]});
  return sizes;
}

std::size_t PretrainingRecords::bytes() const {
  std::size_t bytes = places_.capacity() * sizeof(Place);
  for (const File& file : files_) bytes += file.unpacked.capacity();
  return bytes;
}

}  // namespace bertrand::data
