// A tokenised corpus to draw examples from, wherever it lies: in memory, or in files that are mapped.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bertrand::data {

/// Token ids in two or four bytes each, that somebody else holds.
struct IdSpan {
  std::span<const std::uint16_t> narrow;
  std::span<const std::int32_t> wide;

  std::size_t size() const { return narrow.size() + wide.size(); }
  std::int32_t operator[](std::size_t i) const { return wide.empty() ? static_cast<std::int32_t>(narrow[i]) : wide[i]; }
};

/// Some documents, end to end. `name` begins the messages about them.
struct CorpusPart {
  std::string name;
  IdSpan ids;
  std::span<const std::uint64_t> sentences;  ///< [sentences + 1] first tokens
  std::span<const std::uint64_t> documents;  ///< [documents + 1] first sentences
};

/// Where the sentences of one document begin among all tokens of the corpus, and where the last one ends.
struct Sentences {
  std::uint64_t base = 0;
  std::span<const std::uint64_t> places;  ///< [count + 1]
  std::string_view part;                  ///< for messages, as is the document's number in it
  std::uint64_t document = 0;
  std::uint64_t part_tokens = 0;

  std::size_t count() const { return places.size() - 1; }
  std::uint64_t operator[](std::size_t i) const { return base + places[i]; }
  /// The tokens of a sentence. Throws Error(Failure::input) if they are not in its part, or are none or 2^31.
  std::int64_t tokens(std::size_t i) const {
    const std::uint64_t first = places[i], last = places[i + 1];
    if (first >= last || last > part_tokens || last - first >= std::uint64_t{1} << 31) refuse(i);
    return static_cast<std::int64_t>(last - first);
  }

 private:
  [[noreturn]] void refuse(std::size_t i) const;
};

/// Parts, one after the other. Numbers of documents and tokens go through all of them. What a part says of itself is
/// not trusted: every place and id is checked when it is used. Threads may read one together.
class CorpusView {
 public:
  virtual ~CorpusView() = default;
  CorpusView(const CorpusView&) = delete;
  CorpusView& operator=(const CorpusView&) = delete;

  std::uint64_t documents() const { return documents_; }
  std::uint64_t sentences() const { return sentences_; }
  std::uint64_t tokens() const { return tokens_; }
  /// The sentences of a document: at least one. Throws Error(Failure::input) if they are not in its part. Takes no
  /// longer for a long document: each sentence is checked when its tokens are counted.
  Sentences sentences(std::uint64_t document) const;
  /// Appends tokens [begin, begin + count), which are in one document. Throws Error(Failure::input) if they are not in
  /// the corpus, or for an id outside the vocabulary.
  void append_ids(std::uint64_t begin, std::uint64_t count, std::vector<std::int32_t>& out) const;

  /// The memory that it takes however little of it is looked at.
  virtual std::size_t bytes() const = 0;
  /// Gives back the memory of what was looked at if it can be read again.
  virtual void let_go() const {}

 protected:
  explicit CorpusView(std::int32_t vocabulary_size) : vocabulary_size_(vocabulary_size) {}
  void add(const CorpusPart& part);

 private:
  struct Placed {
    CorpusPart part;
    std::uint64_t first_document, first_token;
  };
  const Placed& part_of_document(std::uint64_t document) const;

  std::int32_t vocabulary_size_;
  std::vector<Placed> parts_;
  std::uint64_t documents_ = 0, sentences_ = 0, tokens_ = 0;
};

/// What a person should be told of a corpus whose documents hardly have a next sentence; "" for others.
std::string doubt_about_sentences(std::uint64_t documents, std::uint64_t sentences);

}  // namespace bertrand::data
