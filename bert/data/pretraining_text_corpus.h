// Plain text as token ids: a sentence a line, a blank line (or the end of a file) between documents. In a file whose
// name has .jsonl each line is a document, {"text": "…"}, and the lines of its text are the sentences.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bert/data/corpus_view.h"
#include "bert/text/tokenizer.h"

namespace bertrand::data {

/// Whether ids of a vocabulary of this size take two bytes each; else four.
constexpr bool is_narrow(std::size_t vocabulary_size) { return vocabulary_size <= 65536; }

/// Ids in two bytes each if the vocabulary allows it, else four.
class CompactIds {
 public:
  explicit CompactIds(std::size_t vocabulary_size) : narrow_(is_narrow(vocabulary_size)) {}

  void append(std::span<const std::int32_t> ids);
  void clear() { narrow_ids_.clear(), wide_ids_.clear(); }
  std::int32_t operator[](std::size_t i) const { return span()[i]; }
  IdSpan span() const { return {narrow_ids_, wide_ids_}; }
  std::size_t size() const { return narrow_ ? narrow_ids_.size() : wide_ids_.size(); }
  std::size_t bytes() const { return narrow_ids_.capacity() * 2 + wide_ids_.capacity() * 4; }

 private:
  bool narrow_;
  std::vector<std::uint16_t> narrow_ids_;
  std::vector<std::int32_t> wide_ids_;
};

/// Where sentences and documents begin in one long row of tokens. No sentence and no document is empty.
struct Documents {
  std::vector<std::uint64_t> sentences = {0};  ///< [sentences + 1] first tokens
  std::vector<std::uint64_t> documents = {0};  ///< [documents + 1] first sentences

  std::size_t count() const { return documents.size() - 1; }
};

struct Corpus {
  CompactIds ids;
  Documents documents;
  std::vector<std::string> warnings = {};  ///< of CorpusSink

  std::size_t bytes() const {
    return ids.bytes() + (documents.sentences.capacity() + documents.documents.capacity()) * sizeof(std::uint64_t);
  }
};

/// A corpus that is held in memory, to draw from.
class HeldCorpus : public CorpusView {
 public:
  HeldCorpus(Corpus corpus, std::int32_t vocabulary_size);
  std::size_t bytes() const override { return corpus_.bytes(); }
  const std::vector<std::string>& warnings() const { return corpus_.warnings; }

 private:
  Corpus corpus_;
};

struct CorpusOptions {
  int threads = 1;  ///< the result does not depend on it
  /// As Google's script reads: a document goes on in the next file unless a blank line ends it, and a carriage return
  /// vanishes even within a line (TensorFlow's readline takes every one away; the tokenizer takes it for a space).
  bool as_google = false;
  std::uint64_t least_documents = 2;                          ///< that there must be; one is enough as Google reads
  std::function<void(std::size_t bytes)> progress = nullptr;  ///< called with the bytes read since the last call
};

/// A place in some files where a line begins.
struct TextPlace {
  std::size_t file = 0;             ///< number of the file
  std::uint64_t bytes = 0;          ///< of its text, after decompression
  std::uint64_t lines = 0;          ///< before it in the file
  text::InvalidBytes invalid = {};  ///< before it in the file
  std::int64_t tokens = 0;          ///< before it in all files
  std::int64_t unknown = 0;         ///< of these, [UNK]
};

/// The tokens of some lines of file number `file`. `lengths` are those of sentences, with 0 where a document ends;
/// several of them may follow each other. `ends` has for each of these how many bytes of the file's text it comes
/// after.
struct TokenisedText {
  std::size_t file = 0;
  std::span<const std::int32_t> ids;
  std::span<const std::uint32_t> lengths;
  std::span<const std::uint64_t> ends;
};

/// Takes text, in order.
class CorpusSink {
 public:
  virtual ~CorpusSink() = default;
  virtual void take(const TokenisedText& text) = 0;
  /// All before `place` was taken.
  virtual void reached(const TextPlace&) {}
  /// A file had bytes that are no UTF-8, which were dropped, or many tokens of all that was read are [UNK].
  virtual void warn(const std::string& warning) = 0;
};

/// Tokenises the files once, from `start` on, in blocks of about `block_bytes`, one for each thread: memory does not
/// grow with the files. Lines without a token are dropped. Throws Error(Failure::io) for a file that cannot be read and
/// Error(Failure::input) for one with a NUL, or a line of JSON that is not {"text": "…"}.
void tokenise_files(const std::vector<std::filesystem::path>& files, const text::Tokenizer& tokenizer,
                    const CorpusOptions& options, CorpusSink& sink, const TextPlace& start = {},
                    std::size_t block_bytes = std::size_t{1} << 20);

/// Throws Error(Failure::input), naming the files, unless there are `least` documents: one or two.
void check_documents(std::uint64_t documents, const std::vector<std::filesystem::path>& files, std::uint64_t least);

/// The files in memory. Throws as tokenise_files and check_documents do.
Corpus read_corpus(const std::vector<std::filesystem::path>& files, const text::Tokenizer& tokenizer,
                   const CorpusOptions& options);

}  // namespace bertrand::data
