#include "bert/data/corpus_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "bert/data/pretraining_text_corpus.h"
#include "io/byte_source.h"
#include "io/crc32c.h"
#include "io/descriptor.h"
#include "io/error.h"
#include "io/file_arguments.h"
#include "io/file_checksum.h"
#include "io/file_names.h"

namespace bertrand::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kProgress = "progress.json";

/// What somebody else put in the place of our directory is not filled: a link may lead to any directory of this user's,
/// and the owner of a directory may change what is in it.
void require_own(const fs::path& directory) {
  const bool is_link = fs::is_symlink(fs::symlink_status(directory));
  if (is_link || io::is_of_another_user(directory))
    fail(Failure::usage,
         "--output: {}: expected nothing or a directory of your own, got {}; hint: remove it, or name another --output",
         directory.string(), is_link ? "a link" : "another user's");
}

/// A file that is made anew, whatever an interrupted job left there. A link, which another user who may write to the
/// directory could put there, goes and is not followed.
std::unique_ptr<io::FileWriter> made_anew(io::Files& files, const fs::path& file) {
  files.remove_all(file);
  return std::make_unique<io::FileWriter>(files, file, io::Opening::create_new);
}

/// Held by one process at a time; free again when that ends.
class DirectoryLock {
 public:
  explicit DirectoryLock(const fs::path& directory)
      : descriptor_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)) {
    if (!descriptor_) io::refuse_call(directory, "open", errno);
    if (::flock(descriptor_.number(), LOCK_EX | LOCK_NB) == 0) return;
    if (errno != EWOULDBLOCK) io::refuse_call(directory, "flock", errno);
    fail(Failure::usage, "--output: {}: expected a directory that no other process writes to, got one that is in use",
         directory.string());
  }

 private:
  const io::Descriptor descriptor_;
};

/// One file of a shard, written on at its end.
class ArrayWriter {
 public:
  ArrayWriter(io::Files& files, fs::path file) : files_(files), file_(std::move(file)) {}

  void begin() { out_ = made_anew(files_, file_); }
  void go_on(const CorpusArray& array, std::uint64_t width) {
    std::error_code error;
    if (fs::is_symlink(fs::symlink_status(file_, error)))
      fail(Failure::input, "{}: expected the file that {} tells of, got a link; hint: remove the directory",
           file_.string(), kProgress);
    if (const std::uint64_t bytes = fs::file_size(file_, error); error || bytes < array.count * width)
      fail(Failure::input, "{}: expected at least {} bytes, as {} says, got {}; hint: remove the directory",
           file_.string(), array.count * width, kProgress, error ? 0 : bytes);
    files_.cut(file_, array.count * width);
    open();
  }
  template <class T>
  void write(std::span<const T> numbers, CorpusArray& array) {
    const auto bytes = std::as_bytes(numbers);
    out_->write(bytes);
    array.count += numbers.size();
    array.crc32c = io::crc32c(bytes, array.crc32c);
  }
  void save() {
    out_->finish();
    open();
  }
  void finish(CorpusArray& array) {
    out_->finish();
    array.sample = io::crc32c_of_sample(file_);
  }

 private:
  void open() { out_ = std::make_unique<io::FileWriter>(files_, file_, io::Opening::append); }

  io::Files& files_;
  fs::path file_;
  std::unique_ptr<io::FileWriter> out_;
};

/// A shard that is being written. Its documents begin when their first sentence does.
class ShardWriter {
 public:
  ShardWriter(io::Files& files, const ShardFiles& names, CorpusShard& shard, int id_bytes)
      : shard_(shard),
        narrow_(id_bytes == 2),
        ids_(files, names.ids),
        sentences_(files, names.sentences),
        documents_(files, names.documents) {}

  void begin() {
    constexpr std::uint64_t kZero = 0;
    ids_.begin(), sentences_.begin(), documents_.begin();
    sentences_.write(std::span(&kZero, 1), shard_.sentences);
    documents_.write(std::span(&kZero, 1), shard_.documents);
  }
  /// What came after `shard` was saved is cut off.
  void go_on(std::uint64_t last_document_end) {
    ids_.go_on(shard_.ids, narrow_ ? 2 : 4);
    sentences_.go_on(shard_.sentences, sizeof(std::uint64_t));
    documents_.go_on(shard_.documents, sizeof(std::uint64_t));
    ended_ = last_document_end;
  }
  void append(std::span<const std::int32_t> ids, std::span<const std::uint32_t> lengths) {
    std::uint64_t end = shard_.ids.count;
    ends_.clear();
    for (const std::uint32_t length : lengths) ends_.push_back(end += length);
    if (narrow_) {
      narrow_ids_.assign(ids.begin(), ids.end());
      ids_.write(std::span<const std::uint16_t>(narrow_ids_), shard_.ids);
    } else {
      ids_.write(ids, shard_.ids);
    }
    sentences_.write(std::span<const std::uint64_t>(ends_), shard_.sentences);
  }
  void end_document() {
    const std::uint64_t sentences = shard_.sentences.count - 1;
    if (sentences == ended_) return;
    ended_ = sentences;
    pending_.push_back(sentences);
    if (pending_.size() >= 4096) flush();  // for memory alone
  }
  bool is_empty() const { return ended_ == 0; }
  std::uint64_t last_document_end() const { return ended_; }
  void save() {
    flush();
    ids_.save(), sentences_.save(), documents_.save();
  }
  void finish() {
    flush();
    ids_.finish(shard_.ids), sentences_.finish(shard_.sentences), documents_.finish(shard_.documents);
  }

 private:
  void flush() {
    documents_.write(std::span<const std::uint64_t>(pending_), shard_.documents);
    pending_.clear();
  }

  CorpusShard& shard_;
  const bool narrow_;
  ArrayWriter ids_, sentences_, documents_;
  std::uint64_t ended_ = 0;  // sentences before the end of the last document
  std::vector<std::uint16_t> narrow_ids_;
  std::vector<std::uint64_t> ends_, pending_;
};

/// What the inputs are and what is made of them: another job does not go on with this one's files.
io::Json identity_of(const CorpusJob& job, const CorpusManifest& manifest) {
  io::Json inputs = io::Json::array();
  for (const fs::path& input : job.inputs)
    inputs.push_back({{"path", input.string()},
                      {"bytes", fs::file_size(input)},
                      {"modified", fs::last_write_time(input).time_since_epoch().count()}});
  return {{"vocab_sha256", manifest.vocab_sha256},
          {"lower_case", manifest.lower_case},
          {"max_chars_per_word", manifest.max_chars_per_word},
          {"added_tokens_sha256", manifest.added_tokens_sha256},
          {"shards", job.shards},
          {"inputs", std::move(inputs)}};
}

class CorpusWriter : public CorpusSink {
 public:
  CorpusWriter(const CorpusJob& job, const text::Tokenizer& tokenizer, io::Files& files, fs::path directory)
      : job_(job), files_(files), directory_(std::move(directory)), result_{.manifest = manifest_for(tokenizer)} {
    // Shards are told apart by the place of their text in the inputs, so that no thread or block decides.
    for (const fs::path& input : job.inputs) {
      const bool divided = !io::ByteSource(input, "text").is_compressed();
      inputs_.push_back({.first = total_, .divided = divided});
      total_ += fs::file_size(input);
    }
    identity_ = identity_of(job, result_.manifest);
    result_.manifest.shards.reserve(static_cast<std::size_t>(job.shards));  // writers refer to them
  }

  /// Where to go on.
  TextPlace begin() {
    if (fs::exists(directory_ / kProgress)) go_on();
    else begin_shard();
    return place_;
  }

  void take(const TokenisedText& text) override {
    std::span<const std::int32_t> ids = text.ids;
    std::size_t begin = 0, ended = 0;
    for (std::size_t i = 0; i < text.lengths.size(); ++i) {
      if (text.lengths[i] != 0) continue;
      ids = append(ids, text.lengths.subspan(begin, i - begin));
      begin = i + 1;
      writer_->end_document();
      begin_shard_if_due(inputs_.at(text.file), text.ends[ended++]);
    }
    append(ids, text.lengths.subspan(begin));
  }

  void reached(const TextPlace& place) override {
    text_bytes_ += place.bytes - (place.file == place_.file ? place_.bytes : 0);
    place_ = place;
    const bool stop = job_.stop && job_.stop();
    if (stop || text_bytes_ - saved_bytes_ >= job_.save_bytes) save();
    if (job_.progress) job_.progress(text_bytes_);
  }

  void warn(const std::string& warning) override { result_.warnings.push_back(warning); }

  CorpusResult finish() {
    if (writer_->is_empty()) {  // the last document ended a shard
      result_.manifest.shards.pop_back();
      const ShardFiles names = shard_files(directory_, result_.manifest.shards.size());
      for (const fs::path& file : {names.ids, names.sentences, names.documents}) files_.remove_all(file);
    } else {
      writer_->finish();
    }
    check_documents(result_.manifest.total().documents.count, job_.inputs, /*least=*/1);
    const auto manifest = made_anew(files_, directory_ / kCorpusManifest);
    manifest->write(io::json_text(result_.manifest.to_json(), 2) + "\n");
    manifest->finish();
    files_.sync_directory(directory_);
    return std::move(result_);
  }

 private:
  struct Input {
    std::uint64_t first;  // bytes of the inputs before it
    bool divided;
  };

  std::span<const std::int32_t> append(std::span<const std::int32_t> ids, std::span<const std::uint32_t> lengths) {
    std::uint64_t count = 0;
    for (const std::uint32_t length : lengths) count += length;
    writer_->append(ids.first(count), lengths);
    return ids.subspan(count);
  }

  void begin_shard() {
    std::vector<CorpusShard>& shards = result_.manifest.shards;
    shards.emplace_back();
    open_shard();
    writer_->begin();
  }
  void open_shard() {
    std::vector<CorpusShard>& shards = result_.manifest.shards;
    writer_ = std::make_unique<ShardWriter>(files_, shard_files(directory_, shards.size() - 1), shards.back(),
                                            result_.manifest.id_bytes());
  }

  /// A document has ended after `end` bytes of the text of `input`.
  void begin_shard_if_due(const Input& input, std::uint64_t end) {
    const std::uint64_t place = input.first + (input.divided ? end : 0);
    const auto shards = static_cast<std::uint64_t>(job_.shards);
    const std::uint64_t due = std::min(place / (total_ / shards + 1), shards - 1);
    if (due <= share_ || writer_->is_empty()) return;
    share_ = due;
    writer_->finish();
    begin_shard();
  }

  void save();
  void go_on();

  const CorpusJob& job_;
  io::Files& files_;
  const fs::path directory_;
  CorpusResult result_;
  io::Json identity_;
  std::vector<Input> inputs_;
  std::uint64_t total_ = 0;
  std::unique_ptr<ShardWriter> writer_;
  TextPlace place_;
  std::uint64_t share_ = 0;  // of the inputs, in which the shard at hand began
  std::uint64_t text_bytes_ = 0, saved_bytes_ = 0;
};

/// First the arrays, then what says how much of them counts.
void CorpusWriter::save() {
  writer_->save();
  const text::InvalidBytes& invalid = place_.invalid;
  const io::Json json{{"job", identity_},
                      {"file", place_.file},
                      {"bytes", place_.bytes},
                      {"lines", place_.lines},
                      {"invalid_bytes", {invalid.count, invalid.first_line, invalid.first_column}},
                      {"tokens", place_.tokens},
                      {"unknown_tokens", place_.unknown},
                      {"text_bytes", text_bytes_},
                      {"share", share_},
                      {"sentences_in_documents", writer_->last_document_end()},
                      {"warnings", result_.warnings},
                      {"manifest", result_.manifest.to_json()}};
  io::replace_file(files_, directory_ / kProgress, io::json_text(json, 2) + "\n");
  saved_bytes_ = text_bytes_;
}

void CorpusWriter::go_on() {
  const std::string name = (directory_ / kProgress).string();
  const io::Json json = io::parse_json(io::read_file(name), {name, Failure::input});
  io::JsonReader reader(json, {name, Failure::input});
  if (reader.object("job").json() != identity_)
    fail(Failure::usage, "--output: {}: expected the beginning of this job, got that of another; {}",
         directory_.string(), "hint: remove it, or give the inputs and flags that it was begun with");
  const auto whole = [&](const char* key) { return static_cast<std::uint64_t>(reader.whole(key, {})); };
  place_ = {.file = static_cast<std::size_t>(reader.whole("file", {0, std::ssize(inputs_) - 1})),
            .bytes = whole("bytes"),
            .lines = whole("lines"),
            .invalid = {},
            .tokens = reader.whole("tokens", {}),
            .unknown = reader.whole("unknown_tokens", {})};
  const io::Json& invalid = reader.list("invalid_bytes");
  if (invalid.size() != 3 || !std::ranges::all_of(invalid, [](const io::Json& n) { return n.is_number_unsigned(); }))
    reader.refuse("invalid_bytes", "three numbers", &invalid);
  place_.invalid = {invalid[0].get<std::uint64_t>(), invalid[1].get<std::uint64_t>(), invalid[2].get<std::uint64_t>()};
  for (const io::Json& warning : reader.list("warnings")) {
    if (!warning.is_string()) reader.refuse("warnings", "texts", &warning);
    result_.warnings.push_back(warning.get<std::string>());
  }
  const std::string place = name + ": manifest";
  result_.manifest.shards = parse_corpus_manifest(reader.object("manifest").json(), place).shards;
  result_.manifest.shards.reserve(static_cast<std::size_t>(job_.shards));
  if (result_.manifest.shards.empty() || std::ssize(result_.manifest.shards) > job_.shards)
    fail(Failure::input, "{}: shards: expected 1 to {}, got {}", place, job_.shards, result_.manifest.shards.size());
  text_bytes_ = saved_bytes_ = result_.begun_bytes = whole("text_bytes");
  share_ = whole("share");
  open_shard();
  writer_->go_on(whole("sentences_in_documents"));
}

}  // namespace

CorpusResult write_corpus(const CorpusJob& job, const text::Tokenizer& tokenizer, io::Files& files) {
  const fs::path output = io::without_slash(job.output);
  const fs::path parent = io::parent_of(output);
  const fs::path partial = output.string() + ".partial";
  io::check_new_directory("output", output);
  require_own(partial);
  files.make_directory(partial);
  const DirectoryLock lock(partial);
  try {
    CorpusWriter writer(job, tokenizer, files, partial);
    const TextPlace start = writer.begin();
    tokenise_files(job.inputs, tokenizer, {.threads = job.threads}, writer, start, job.block_bytes);
    CorpusResult result = writer.finish();
    files.rename(partial, output);
    files.sync_directory(parent);
    files.remove_all(output / kProgress);
    return result;
  } catch (...) {
    std::error_code ignored;
    if (!fs::exists(partial / kProgress, ignored)) fs::remove_all(partial, ignored);  // nothing to go on with
    throw;
  }
}

}  // namespace bertrand::data
