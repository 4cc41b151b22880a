// Records checked, their places kept, and read one by one.
#include "bert/data/pretraining_records.h"

#include <algorithm>
#include <mutex>

#include "bert/data/record_check.h"
#include "bert/data/tf_example.h"
#include "io/crc32c.h"
#include "io/error.h"
#include "io/in_order.h"
#include "io/signals.h"

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

PretrainingRecords::PretrainingRecords(const std::vector<std::filesystem::path>& files,
                                       const PretrainingRecordsOptions& options)
    : options_(options) {
  open_all(files);
  if (examples(0) == 0)
    fail(Failure::input, "{}: records: expected at least one, got none{}", files.at(0).string(),
         skipped_ > 0 ? "; " + warnings_.front() : "");
}

void PretrainingRecords::make_indexes(std::vector<std::filesystem::path> files,
                                      const PretrainingRecordsOptions& options) {
  std::erase_if(files, [](const auto& file) { return io::RecordReader(file).is_compressed(); });
  PretrainingRecords(options).open_all(files);
}

void PretrainingRecords::open_all(const std::vector<std::filesystem::path>& files) {
  spill_of_each_ = options_.spill;
  spill_of_each_.held_bytes /= std::max<std::size_t>(files.size(), 1);
  const int threads = std::max(options_.threads, 1);
  const auto at_a_time = static_cast<int>(std::clamp<std::size_t>(files.size(), 1, static_cast<std::size_t>(threads)));
  io::in_order(
      {.count = files.size(), .threads = at_a_time, .batch = 1},
      [&](std::size_t file, std::size_t) { return open(files[file], threads / at_a_time); },
      [&](File file) { add(std::move(file)); });
}

/// An index of records that this model cannot take is no help: to read the file names the first of them.
std::optional<RecordIndex> PretrainingRecords::fitting_index(const std::filesystem::path& path) const {
  for (const auto& directory : {std::filesystem::path(), options_.run_directory})
    if (auto index = RecordIndex::open(path, options_.check, directory);
        index && index->sums().largest_id < options_.vocab_size && index->sums().longest <= options_.max_positions)
      return index;
  return {};
}

PretrainingRecords::File PretrainingRecords::open(const std::filesystem::path& path, int threads) const {
  if (options_.check != InputCheck::all)
    if (auto index = fitting_index(path)) {
      File file{.path = path, .sums = index->sums()};
      file.index = std::move(index);
      return file;
    }
  File file = read_through(path, threads);
  if (!options_.keep_index) return file;
  if (file.is_indexable()) keep_index(file);
  if (file.skipped > 0) remove_indexes(file);
  return file;
}

/// Data may lie where nobody may write: then the run keeps its index. A file that is given twice is read by two
/// threads, under whatever paths, and a process writes a file once at a time (io/temporary_name.h).
void PretrainingRecords::keep_index(File& file) const {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  const auto keep = [&file](const std::filesystem::path& directory) {
    try {
      RecordIndex::write(io::Files::system(), file.path, file.held, file.sums, directory);
      file.index = RecordIndex::open(file.path, InputCheck::none, directory);
    } catch (const Error& error) {
      if (file.not_kept.empty()) file.not_kept = error.what();
    }
  };
  keep({});
  if (!file.index && !options_.run_directory.empty()) keep(options_.run_directory);
  if (!file.index) return;
  file.not_kept.clear();
  file.held = std::vector<RecordPlace>();  // {} would keep its memory
}

/// Of the file as it was, when a sample does not tell: other processes would believe it.
void PretrainingRecords::remove_indexes(const File& file) const {
  RecordIndex::remove(io::Files::system(), file.path);
  if (!options_.run_directory.empty()) RecordIndex::remove(io::Files::system(), file.path, options_.run_directory);
}

PretrainingRecords::File PretrainingRecords::read_through(const std::filesystem::path& path, int threads) const {
  io::RecordReader reader(path, options_.on_corrupt);
  File file{.path = path, .is_compressed = reader.is_compressed()};
  const auto next = [&]() -> std::optional<UncheckedRecord> {
    io::leave_if_requested("reading records");
    UncheckedRecord record;
    if (!reader.next(record.bytes)) return {};
    record.place = reader.place();
    record.offset = file.is_compressed ? static_cast<std::uint64_t>(file.unpacked.size()) : reader.offset();
    if (!file.is_compressed) return record;
    file.unpacked.append(record.bytes);
    file.unpacked.spill_if_due(spill_of_each_);
    io::check_decompressed(path, static_cast<std::uint64_t>(file.unpacked.size()), options_.most_decompressed);
    return record;
  };
  CheckedRecords checked = check_records(next, options_, threads);
  file.held = std::move(checked.places);
  file.sums = checked.sums;
  file.unpacked.finish(spill_of_each_);
  file.skipped = reader.skipped();
  file.skipped_text = reader.skipped_text();
  file.sums.file_bytes = std::filesystem::file_size(path);
  file.sums.file_crc32c = reader.crc32c();
  return file;
}

void PretrainingRecords::add(File file) {
  file.begin = files_.empty() ? 0 : files_.back().end;
  file.end = file.begin + file.places().size();
  longest_ = std::max(longest_, std::int64_t{file.sums.longest});
  most_masked_ = std::max(most_masked_, std::int64_t{file.sums.most_masked});
  if (file.skipped > 0) warnings_.push_back(std::move(file.skipped_text));
  skipped_ += file.skipped;
  if (not_kept_.empty()) not_kept_ = std::move(file.not_kept);
  files_.push_back(std::move(file));
}

std::optional<std::uint32_t> PretrainingRecords::crc32c_of_file(std::size_t file) const {
  return files_[file].is_indexable() ? std::optional(files_[file].sums.file_crc32c) : std::nullopt;
}

const PretrainingRecords::File& PretrainingRecords::file_of(std::int64_t number) const {
  return *std::ranges::upper_bound(files_, static_cast<std::size_t>(number), {}, &File::end);
}

const RecordPlace& PretrainingRecords::place(std::int64_t number) const {
  const File& file = file_of(number);
  return file.places()[static_cast<std::size_t>(number) - file.begin];
}

PretrainingExample PretrainingRecords::example(std::int64_t, std::int64_t number) {
  const File& file = file_of(number);
  const RecordPlace where = place(number);
  if (file.index) file.index->let_go();  // for memory alone
  const std::string name = fmt::format("{}@{}", file.path.string(), where.offset);
  if (file.is_compressed) {
    file.unpacked.let_go();  // for memory alone
    const std::span<const char> record = file.unpacked.all().subspan(where.offset, where.bytes);
    return parse_pretraining_record({record.data(), record.size()}, name, options_);
  }
  return parse_pretraining_record(io::read_record_at(file.path, where.offset, where.bytes, where.crc32c), name,
                                  options_);
}

/// The example with most tokens need not be the one with most masked ones.
std::vector<ExampleSize> PretrainingRecords::largest(std::int64_t count) const {
  const auto most = static_cast<std::size_t>(std::min(count, static_cast<std::int64_t>(files_.back().end)));
  if (most == 0) return {};
  std::vector<std::uint32_t> tokens, masked;  // heaps whose first is the smallest
  const auto keep = [most](std::vector<std::uint32_t>& heap, std::uint32_t value) {
    if (heap.size() == most && value <= heap.front()) return;
    if (heap.size() == most) std::ranges::pop_heap(heap, std::greater()), heap.pop_back();
    heap.push_back(value);
    std::ranges::push_heap(heap, std::greater());
  };
  for (const File& file : files_) {
    for (const RecordPlace& place : file.places()) keep(tokens, place.tokens), keep(masked, place.masked);
    if (file.index) file.index->let_go();  // for memory alone
  }
  std::ranges::sort_heap(tokens, std::greater());
  std::ranges::sort_heap(masked, std::greater());
  std::vector<ExampleSize> sizes;
  for (std::size_t i = 0; i < most; ++i) sizes.push_back({.tokens = tokens[i], .masked = masked[i]});
  return sizes;
}

std::size_t PretrainingRecords::bytes() const {
  std::size_t bytes = 0;
  for (const File& file : files_) bytes += file.held.capacity() * sizeof(RecordPlace) + file.unpacked.held_bytes();
  return bytes;
}

}  // namespace bertrand::data
