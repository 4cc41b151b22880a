// Plain text as token ids: a sentence a line, a blank line (or the end of a file) between documents.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bert/data/pretraining_text_pairs.h"
#include "bert/text/tokenizer.h"

namespace bertrand::data {

/// Ids in two bytes each if the vocabulary allows it, else four.
class CompactIds {
 public:
  explicit CompactIds(std::size_t vocabulary_size = 0) : narrow_(vocabulary_size <= 65536) {}

  void append(std::span<const std::int32_t> ids);
  std::int32_t operator[](std::size_t i) const {
    return narrow_ ? static_cast<std::int32_t>(narrow_ids_[i]) : wide_ids_[i];
  }
  std::size_t size() const { return narrow_ ? narrow_ids_.size() : wide_ids_.size(); }
  std::size_t bytes() const { return narrow_ids_.capacity() * 2 + wide_ids_.capacity() * 4; }

 private:
  bool narrow_;
  std::vector<std::uint16_t> narrow_ids_;
  std::vector<std::int32_t> wide_ids_;
};

struct Corpus {
  CompactIds ids;
  Documents documents;
  std::vector<std::string> warnings;  ///< of each file with bytes that are no UTF-8, which were dropped

  std::size_t bytes() const {
    return ids.bytes() + (documents.sentences.capacity() + documents.documents.capacity()) * sizeof(std::uint64_t);
  }
};

struct CorpusOptions {
  int threads = 1;  ///< the result does not depend on it
  /// As Google's script reads: a document goes on in the next file unless a blank line ends it, and a carriage return
  /// vanishes even within a line (TensorFlow's readline takes every one away; the tokenizer takes it for a space). A
  /// NUL, which else is no text, vanishes too.
  bool as_google = false;
  std::function<void(std::size_t bytes)> progress = nullptr;  ///< called with the bytes read since the last call
};

/// Tokenises the files once. Lines without a token are dropped. Throws Error(Failure::io) for a file that cannot be
/// read and Error(Failure::input) for one with a NUL, and if all files together hold fewer than two
/// documents, as Google one.
Corpus read_corpus(const std::vector<std::filesystem::path>& files, const text::Tokenizer& tokenizer,
                   const CorpusOptions& options);

}  // namespace bertrand::data
