#include "bert/data/mapped_corpus.h"

#include <sys/mman.h>

#include <bit>

#include "io/error.h"
#include "io/file_checksum.h"

namespace bertrand::data {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the files of a corpus are little-endian, and so is every machine this runs on");

/// A mapped file begins at a page, so that its numbers are aligned.
template <class T>
std::span<const T> as(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

/// An example looks at two places of a few hundred bytes. Without this, each would read as far ahead as the disk has
/// it: up to some megabytes.
void read_here_and_there(std::span<const std::byte> bytes) {
  if (!bytes.empty()) ::madvise(const_cast<std::byte*>(bytes.data()), bytes.size(), MADV_RANDOM);
}

}  // namespace

MappedCorpus::MappedCorpus(const std::vector<std::filesystem::path>& directories, const text::Tokenizer& tokenizer,
                           const CorpusCheck& check)
    : CorpusView(tokenizer.vocabulary().size()) {
  const CorpusManifest expected = manifest_for(tokenizer);
  for (const auto& directory : directories) open(directory, expected);
  compare(check);
}

void MappedCorpus::let_go() const {
  for (const File& file : files_) file.mapped->let_go();
}

void MappedCorpus::open(const std::filesystem::path& directory, const CorpusManifest& expected) {
  const std::filesystem::path file = directory / kCorpusManifest;
  const std::string name = file.string();
  if (!std::filesystem::exists(file))
    fail(Failure::input, "{}: expected a corpus, which has a {}, got a directory without one; {}", directory.string(),
         kCorpusManifest, "hint: prepare corpus makes it of text; DIR/* names the files in a directory");
  const CorpusManifest manifest =
      parse_corpus_manifest(io::parse_json(io::MappedFile(file).text(), {name, Failure::input}), name);
  if (manifest.vocab_sha256 != expected.vocab_sha256)
    fail(Failure::input, "{}: vocab_sha256: expected that of the vocabulary given, {}, got {}; {}", name,
         expected.vocab_sha256, manifest.vocab_sha256.substr(0, 64),
         "hint: make the corpus with the same --vocab-file, or with --model");
  if (manifest.vocab_size != expected.vocab_size)
    fail(Failure::input, "{}: vocab_size: expected {}, as the vocabulary has, got {}", name, expected.vocab_size,
         manifest.vocab_size);
  if (manifest.lower_case != expected.lower_case)
    fail(Failure::input, "{}: lower_case: expected {}, as the model's text, got {}; hint: {}", name,
         expected.lower_case, manifest.lower_case, "--cased must be given to both programs or to none");
  if (manifest.added_tokens_sha256 != expected.added_tokens_sha256)
    fail(Failure::input, "{}: added_tokens_sha256: expected {}, as the model's, got {}; hint: {}", name,
         expected.added_tokens_sha256.empty() ? "none" : expected.added_tokens_sha256,
         manifest.added_tokens_sha256.empty() ? "none" : manifest.added_tokens_sha256.substr(0, 64),
         "prepare corpus --model makes it with those of a model");
  if (manifest.max_chars_per_word != expected.max_chars_per_word)
    warnings_.push_back(
        fmt::format("{}: words of up to {} characters are cut into pieces, and by the model's "
                    "tokenizer of up to {}; hint: prepare corpus --model",
                    name, manifest.max_chars_per_word, expected.max_chars_per_word));
  for (std::size_t i = 0; i < manifest.shards.size(); ++i) {
    const CorpusShard& shard = manifest.shards[i];
    const ShardFiles files = shard_files(directory, i);
    const auto ids = map(files.ids, shard.ids, static_cast<std::uint64_t>(manifest.id_bytes()));
    read_here_and_there(ids);  // for speed alone
    CorpusPart part{.name = files.ids.string(),
                    .ids = {},
                    .sentences = as<std::uint64_t>(map(files.sentences, shard.sentences, sizeof(std::uint64_t))),
                    .documents = as<std::uint64_t>(map(files.documents, shard.documents, sizeof(std::uint64_t)))};
    if (manifest.id_bytes() == 2) part.ids.narrow = as<std::uint16_t>(ids);
    else part.ids.wide = as<std::int32_t>(ids);
    add(part);
  }
}

std::span<const std::byte> MappedCorpus::map(const std::filesystem::path& file, const CorpusArray& expected,
                                             std::uint64_t width) {
  files_.push_back({.path = file, .expected = expected, .mapped = std::make_unique<const io::MappedFile>(file)});
  const std::span<const std::byte> bytes = files_.back().mapped->bytes();
  if (bytes.size() != expected.count * width)
    fail(Failure::input, "{}: expected {} bytes, as {} says, got {}; hint: is it cut short?", file.string(),
         expected.count * width, kCorpusManifest, bytes.size());
  return bytes;
}

void MappedCorpus::compare(const CorpusCheck& check) const {
  const auto compare = [](const File& file, const char* what, std::uint32_t expected, std::uint32_t got) {
    if (got != expected)
      fail(Failure::input, "{}: expected {} {:#010x}, as {} says, got {:#010x}; {}", file.path.string(), what, expected,
           kCorpusManifest, got, "hint: it is damaged; copy it again, or make the corpus again");
  };
  if (check.extent == InputCheck::index)
    for (const File& file : files_)
      compare(file, "a sample with CRC-32C", file.expected.sample, io::crc32c_of_sample(file.path));
  if (check.extent != InputCheck::all) return;
  std::vector<const File*> share;
  std::vector<std::filesystem::path> paths;
  for (auto i = static_cast<std::size_t>(check.process); i < files_.size();
       i += static_cast<std::size_t>(check.processes)) {
    share.push_back(&files_[i]);
    paths.push_back(files_[i].path);
  }
  const std::vector<std::uint32_t> sums = io::crc32c_of_files(paths, check.threads);
  for (std::size_t i = 0; i < share.size(); ++i) compare(*share[i], "CRC-32C", share[i]->expected.crc32c, sums[i]);
}

}  // namespace bertrand::data
