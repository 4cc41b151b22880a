// A corpus tokenised and held in memory.
#include "bert/data/pretraining_text_corpus.h"

#include <algorithm>
#include <future>

#include "bert/data/line_blocks.h"
#include "io/error.h"
#include "io/input_files.h"

namespace bertrand::data {

namespace {

constexpr std::size_t kBlockBytes = std::size_t{16} << 20;  // read at a time, so that the text is never all in memory
constexpr std::uint32_t kDocumentEnd = 0;                   // among sentence lengths, which are positive

/// What one thread made of some lines.
struct Piece {
  std::vector<std::int32_t> ids;
  std::vector<std::uint32_t> sentences;  // lengths, with kDocumentEnd between documents
  std::uint64_t lines = 0;
  text::InvalidBytes invalid;  // its lines counted from 1 within the piece
};

/// Whether Python's decode("utf-8", "ignore").strip() leaves nothing: such a line ends a document.
bool is_blank(std::string_view line) {
  std::string valid;
  return text::strip(text::drop_invalid_utf8(line, valid).count > 0 ? valid : line).empty();
}

Piece tokenise(std::string_view lines, const text::Tokenizer& tokenizer, bool as_google) {
  Piece piece;
  text::Encoder encoder(tokenizer);
  std::string without_returns;
  for_each_line(lines, [&](std::string_view line) {
    ++piece.lines;
    if (as_google && line.find('\r') != std::string_view::npos) {
      without_returns = line;
      std::erase(without_returns, '\r');
      line = without_returns;
    }
    const std::span<const std::int32_t> ids = encoder.encode(line);
    piece.invalid.add(encoder.dropped(), piece.lines);
    piece.ids.insert(piece.ids.end(), ids.begin(), ids.end());
    if (!ids.empty()) piece.sentences.push_back(static_cast<std::uint32_t>(ids.size()));
    else if (is_blank(line)) piece.sentences.push_back(kDocumentEnd);
  });
  return piece;
}

class CorpusReader {
 public:
  CorpusReader(const text::Tokenizer& tokenizer, const CorpusOptions& options)
      : tokenizer_(tokenizer), options_(options) {
    corpus_.ids = CompactIds(static_cast<std::size_t>(tokenizer.vocabulary().size()));
    corpus_.documents = {.sentences = {0}, .documents = {0}};
  }

  // While the threads work on one block, the next is read.
  void read(const std::filesystem::path& file) {
    LineBlocks blocks(file);
    text::InvalidBytes invalid;
    std::uint64_t lines = 0;
    std::string block, next_block;
    bool has_block = blocks.next(block, kBlockBytes);
    while (has_block) {
      if (!options_.as_google) io::refuse_nul(block, blocks.name(), lines);
      std::vector<std::future<Piece>> pieces = tokenise_block(block);
      has_block = blocks.next(next_block, kBlockBytes);
      for (auto& future : pieces) {
        const Piece piece = future.get();
        append(piece);
        invalid.add(piece.invalid, lines);
        lines += piece.lines;
      }
      if (options_.progress) options_.progress(block.size());
      block.swap(next_block);
    }
    if (invalid.count > 0) corpus_.warnings.push_back(invalid.message(blocks.name()));
    if (!options_.as_google) end_document();
  }

  Corpus take() {
    end_document();
    return std::move(corpus_);
  }

 private:
  std::vector<std::future<Piece>> tokenise_block(std::string_view block) const {
    std::vector<std::future<Piece>> pieces;
    for (const std::string_view part : split_lines(block, static_cast<std::size_t>(std::max(1, options_.threads))))
      pieces.push_back(
          std::async(std::launch::async, [this, part] { return tokenise(part, tokenizer_, options_.as_google); }));
    return pieces;
  }

  void append(const Piece& piece) {
    corpus_.ids.append(piece.ids);
    auto& sentences = corpus_.documents.sentences;
    for (const std::uint32_t length : piece.sentences) {
      if (length == kDocumentEnd) end_document();
      else sentences.push_back(sentences.back() + length);
    }
  }

  void end_document() {
    auto& [sentences, documents] = corpus_.documents;
    if (sentences.size() - 1 > documents.back()) documents.push_back(sentences.size() - 1);
  }

  const text::Tokenizer& tokenizer_;
  const CorpusOptions& options_;
  Corpus corpus_;
};

}  // namespace

void CompactIds::append(std::span<const std::int32_t> ids) {
  if (narrow_) {
    for (const std::int32_t id : ids) narrow_ids_.push_back(static_cast<std::uint16_t>(id));
  } else {
    wide_ids_.insert(wide_ids_.end(), ids.begin(), ids.end());
  }
}

Corpus read_corpus(const std::vector<std::filesystem::path>& files, const text::Tokenizer& tokenizer,
                   const CorpusOptions& options) {
  CorpusReader reader(tokenizer, options);
  for (const auto& file : files) reader.read(file);
  Corpus corpus = reader.take();
  const std::string names =
      files.size() == 1 ? files[0].string() : fmt::format("{} and {} more", files.at(0).string(), files.size() - 1);
  if (corpus.documents.count() == 0) fail(Failure::input, "{}: text: expected sentences, a line each, got none", names);
  if (const std::size_t least = options.as_google ? 1 : 2; corpus.documents.count() < least)
    fail(Failure::input, "{}: documents: expected at least {}, got {}; hint: a blank line ends a document, and {}",
         names, least, corpus.documents.count(), "random next sentences come from other documents");
  return corpus;
}

}  // namespace bertrand::data
