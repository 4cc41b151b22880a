#include "bert/data/pretraining_text_corpus.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <future>

#include <utf8proc.h>

#include "tensor/error.h"

namespace bertrand::data {

namespace {

constexpr std::size_t kBlockBytes = std::size_t{16} << 20;  // read at a time, so that the text is never all in memory
constexpr std::uint32_t kDocumentEnd = 0;                   // among sentence lengths, which are positive

/// What one thread made of some lines.
struct Piece {
  std::vector<std::int32_t> ids;
  std::vector<std::uint32_t> sentences;  // lengths, with kDocumentEnd between documents
  std::int64_t lines = 0;
  std::int64_t invalid_bytes = 0;
  std::int64_t first_invalid_line = 0;  // counted from 0 within the piece; meaningful where invalid_bytes > 0
};

/// Python's str.isspace of one code point.
bool is_space(utf8proc_int32_t c) {
  return c == ' ' || (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x1f) || c == 0x85 || c == 0xa0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/// Whether Python's decode("utf-8", "ignore").strip() leaves nothing: such a line ends a document.
bool is_blank(std::string_view line) {
  while (!line.empty()) {
    utf8proc_int32_t c = 0;
    const auto size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(line.data()),
                                       static_cast<utf8proc_ssize_t>(line.size()), &c);
    if (size > 0 && !is_space(c)) return false;
    line.remove_prefix(size > 0 ? static_cast<std::size_t>(size) : 1);
  }
  return true;
}

Piece tokenise(std::string_view lines, const text::Tokenizer& tokenizer) {
  Piece piece;
  text::Encoder encoder(tokenizer);
  for (std::size_t begin = 0; begin < lines.size(); ++piece.lines) {
    const std::size_t newline = std::min(lines.find('\n', begin), lines.size());
    const std::string_view line = lines.substr(begin, newline - begin);
    begin = newline + 1;
    const std::span<const std::int32_t> ids = encoder.encode(line);
    const std::size_t invalid = encoder.dropped().count;
    if (invalid > 0 && piece.invalid_bytes == 0) piece.first_invalid_line = piece.lines;
    piece.invalid_bytes += static_cast<std::int64_t>(invalid);
    piece.ids.insert(piece.ids.end(), ids.begin(), ids.end());
    if (!ids.empty())
      piece.sentences.push_back(static_cast<std::uint32_t>(ids.size()));
    else if (is_blank(line))
      piece.sentences.push_back(kDocumentEnd);
  }
  return piece;
}

/// Cuts `lines` into at most `count` parts of similar size, at line ends.
std::vector<std::string_view> split(std::string_view lines, std::size_t count) {
  std::vector<std::string_view> parts;
  const std::size_t target = lines.size() / count + 1;
  while (!lines.empty()) {
    const std::size_t newline = lines.find('\n', std::min(target, lines.size()) - 1);
    const std::size_t size = newline == std::string_view::npos ? lines.size() : newline + 1;
    parts.push_back(lines.substr(0, size));
    lines.remove_prefix(size);
  }
  return parts;
}

class CorpusReader {
 public:
  CorpusReader(const text::Tokenizer& tokenizer, const CorpusOptions& options)
      : tokenizer_(tokenizer), options_(options) {
    corpus_.ids = CompactIds(static_cast<std::size_t>(tokenizer.vocabulary().size()));
    corpus_.documents = {.sentences = {0}, .documents = {0}};
  }

  void read(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) fail(errno == ENOENT ? Failure::input : Failure::io, "{}: open: {}", file.string(), std::strerror(errno));
    std::int64_t line = 1;
    std::string block;
    while (in) {
      const std::size_t kept = block.size();  // the beginning of a line that the last block cut
      block.resize(kept + kBlockBytes);
      in.read(block.data() + kept, static_cast<std::streamsize>(kBlockBytes));
      if (in.bad()) fail(Failure::io, "{}: read: {}", file.string(), std::strerror(errno));
      block.resize(kept + static_cast<std::size_t>(in.gcount()));
      const std::size_t end = in ? block.rfind('\n') + 1 : block.size();  // npos + 1 is 0: no line is whole yet
      add(std::string_view(block).substr(0, end), file, line);
      block.erase(0, end);
      if (options_.progress) options_.progress(static_cast<std::size_t>(in.gcount()));
    }
    if (options_.file_ends_document) end_document();
  }

  Corpus take() {
    end_document();
    return std::move(corpus_);
  }

 private:
  void add(std::string_view lines, const std::filesystem::path& file, std::int64_t& line) {
    std::vector<std::future<Piece>> pieces;
    for (const std::string_view part : split(lines, static_cast<std::size_t>(std::max(1, options_.threads))))
      pieces.push_back(std::async(std::launch::async, [this, part] { return tokenise(part, tokenizer_); }));
    for (auto& future : pieces) {
      const Piece piece = future.get();
      if (piece.invalid_bytes > 0 && corpus_.invalid_bytes == 0)
        corpus_.first_invalid = fmt::format("{}:{}", file.string(), line + piece.first_invalid_line);
      corpus_.invalid_bytes += piece.invalid_bytes;
      line += piece.lines;
      append(piece);
    }
  }

  void append(const Piece& piece) {
    corpus_.ids.append(piece.ids);
    auto& sentences = corpus_.documents.sentences;
    for (const std::uint32_t length : piece.sentences) {
      if (length == kDocumentEnd)
        end_document();
      else
        sentences.push_back(sentences.back() + length);
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
  if (corpus.documents.count() < options.least_documents)
    fail(Failure::input, "{}: documents: expected at least {}, got {}; hint: a blank line ends a document, and {}",
         names, options.least_documents, corpus.documents.count(), "random next sentences come from other documents");
  return corpus;
}

}  // namespace bertrand::data
