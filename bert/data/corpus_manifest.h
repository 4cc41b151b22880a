// What a corpus directory says of itself: manifest.json.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "bert/text/tokenizer.h"
#include "io/json.h"

namespace bertrand::data {

inline constexpr const char* kCorpusManifest = "manifest.json";

/// One of the three files of a shard: little-endian numbers, no header.
struct CorpusArray {
  std::uint64_t count = 0;   ///< numbers in it
  std::uint32_t crc32c = 0;  ///< of its bytes
  std::uint32_t sample = 0;  ///< io::crc32c_of_sample(), when it is whole
};

/// Documents end to end: SHARD.ids holds token ids, SHARD.sentences first tokens and the end (8 bytes each),
/// SHARD.documents first sentences and the end (8 bytes each).
struct CorpusShard {
  CorpusArray ids, sentences, documents;
};

struct CorpusManifest {
  std::string vocab_sha256;  ///< of text::Vocabulary::text()
  std::int64_t vocab_size = 0;
  bool lower_case = true;
  std::int64_t max_chars_per_word = text::TokenizerOptions::kGooglesMaxChars;  ///< as the tokenizer's options have it
  std::string added_tokens_sha256;  ///< of what the added tokens mean; empty: there are none
  std::vector<CorpusShard> shards;

  /// Two bytes for each id, or four.
  int id_bytes() const;
  /// The sums of all shards.
  CorpusShard total() const;
  io::Json to_json() const;
};

/// The manifest of a corpus that this tokenizer makes, without shards.
CorpusManifest manifest_for(const text::Tokenizer& tokenizer);

/// Throws Error(Failure::input) naming `file` for what cannot be; what it says of other files is not looked at.
CorpusManifest parse_corpus_manifest(const io::Json& json, const std::string& file);

/// The files of shard `number` in `directory`, in the order of CorpusShard.
struct ShardFiles {
  std::filesystem::path ids, sentences, documents;
};
ShardFiles shard_files(const std::filesystem::path& directory, std::size_t number);

}  // namespace bertrand::data
