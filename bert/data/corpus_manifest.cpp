#include "bert/data/corpus_manifest.h"

#include "bert/data/pretraining_text_corpus.h"
#include "io/sha256.h"

namespace bertrand::data {
namespace {

constexpr int kFormatVersion = 2;
constexpr const char* kFormat = "bertrand corpus";
// Corpora that were made before these were noted have Google's length of a word, and no added tokens.
constexpr std::int64_t kGooglesMaxChars = text::TokenizerOptions::kGooglesMaxChars, kMostChars = std::int64_t{1} << 31;

io::Json json_of(const CorpusArray& array, std::uint64_t ends) {
  return {{"count", array.count - ends}, {"crc32c", array.crc32c}, {"sample_crc32c", array.sample}};
}

/// `ends`: numbers in the file beside those that are counted.
CorpusArray parse_array(io::JsonReader& shard, std::string_view key, std::int64_t ends) {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;  // so that no number of bytes overflows
  io::JsonReader array = shard.object(key);
  const auto checksum = [&](const char* name) {
    return static_cast<std::uint32_t>(array.whole(name, {0, std::numeric_limits<std::uint32_t>::max()}));
  };
  return {.count = static_cast<std::uint64_t>(array.whole("count", {0, kMost}) + ends),
          .crc32c = checksum("crc32c"),
          .sample = checksum("sample_crc32c")};
}

/// Without what stands at the sides of a token, which BERT never reads.
std::string sha256_of(const std::vector<text::AddedToken>& tokens) {
  std::string text;
  for (const text::AddedToken& token : tokens)
    text += fmt::format("{} {} {} {} {}\n", token.id, token.special, token.normalized, token.single_word, token.text);
  return text.empty() ? "" : io::sha256(text);
}

}  // namespace

int CorpusManifest::id_bytes() const { return is_narrow(static_cast<std::size_t>(vocab_size)) ? 2 : 4; }

CorpusShard CorpusManifest::total() const {
  CorpusShard total;
  for (const CorpusShard& shard : shards) {
    total.ids.count += shard.ids.count;
    total.sentences.count += shard.sentences.count - 1;
    total.documents.count += shard.documents.count - 1;
  }
  return total;
}

io::Json CorpusManifest::to_json() const {
  const CorpusShard sums = total();
  io::Json json{{"format", kFormat},
                {"format_version", kFormatVersion},
                {"vocab_sha256", vocab_sha256},
                {"vocab_size", vocab_size},
                {"lower_case", lower_case},
                {"max_chars_per_word", max_chars_per_word},
                {"added_tokens_sha256", added_tokens_sha256},
                {"id_bytes", id_bytes()},
                {"tokens", sums.ids.count},
                {"sentences", sums.sentences.count},
                {"documents", sums.documents.count},
                {"shards", io::Json::array()}};
  for (const CorpusShard& shard : shards)
    json["shards"].push_back({{"tokens", json_of(shard.ids, 0)},
                              {"sentences", json_of(shard.sentences, 1)},
                              {"documents", json_of(shard.documents, 1)}});
  return json;
}

CorpusManifest manifest_for(const text::Tokenizer& tokenizer) {
  return {.vocab_sha256 = io::sha256(tokenizer.vocabulary().text()),
          .vocab_size = tokenizer.vocabulary().size(),
          .lower_case = tokenizer.options().lower_case,
          .max_chars_per_word = tokenizer.options().max_chars_per_word,
          .added_tokens_sha256 = sha256_of(tokenizer.options().added_tokens),
          .shards = {}};
}

CorpusManifest parse_corpus_manifest(const io::Json& json, const std::string& file) {
  const io::JsonSource source{file, Failure::input};
  io::JsonReader reader(json, source);
  reader.expect("format", kFormat);
  if (const std::int64_t version = reader.whole("format_version", {}); version != kFormatVersion)
    fail(Failure::input, "{}: format_version: expected {}, got {}; hint: make the corpus again with prepare corpus",
         file, kFormatVersion, version);
  CorpusManifest manifest{.vocab_sha256 = reader.text("vocab_sha256"),
                          .vocab_size = reader.whole("vocab_size", {1, std::numeric_limits<std::int32_t>::max()}),
                          .lower_case = reader.flag("lower_case"),
                          .max_chars_per_word = reader.whole("max_chars_per_word", {1, kMostChars}, kGooglesMaxChars),
                          .added_tokens_sha256 = reader.text("added_tokens_sha256", ""),
                          .shards = {}};
  for (const io::Json& entry : reader.list("shards")) {
    io::JsonReader shard(entry, source, fmt::format("shards.{}.", manifest.shards.size()));
    manifest.shards.push_back({.ids = parse_array(shard, "tokens", 0),
                               .sentences = parse_array(shard, "sentences", 1),
                               .documents = parse_array(shard, "documents", 1)});
  }
  const CorpusShard sums = manifest.total();
  const auto whole = [&](const char* key, std::uint64_t sum) {
    if (const std::int64_t got = reader.whole(key, {}); static_cast<std::uint64_t>(got) != sum)
      fail(Failure::input, "{}: {}: expected {}, the sum of the shards, got {}", file, key, sum, got);
  };
  whole("id_bytes", static_cast<std::uint64_t>(manifest.id_bytes()));
  whole("tokens", sums.ids.count);
  whole("sentences", sums.sentences.count);
  whole("documents", sums.documents.count);
  return manifest;
}

ShardFiles shard_files(const std::filesystem::path& directory, std::size_t number) {
  const std::string name = fmt::format("shard-{:05}", number);
  return {directory / (name + ".ids"), directory / (name + ".sentences"), directory / (name + ".documents")};
}

}  // namespace bertrand::data
