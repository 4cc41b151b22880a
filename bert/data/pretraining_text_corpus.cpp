// Text tokenised block by block, and a corpus held in memory.
#include "bert/data/pretraining_text_corpus.h"

#include <algorithm>
#include <optional>

#include "bert/data/json_lines.h"
#include "bert/data/line_blocks.h"
#include "io/error.h"
#include "io/file_names.h"
#include "io/in_order.h"
#include "io/input_files.h"
#include "io/split.h"

namespace bertrand::data {

namespace {

constexpr std::uint32_t kDocumentEnd = 0;  // among sentence lengths, which are positive

/// Some lines of file number `file`.
struct Lines {
  std::size_t file = 0;
  LineBlock block;
};

/// What one thread made of them.
struct Piece {
  std::size_t file = 0;
  std::vector<std::int32_t> ids;
  std::vector<std::uint32_t> sentences;  // lengths, with kDocumentEnd between documents
  std::vector<std::uint64_t> ends;       // of documents, in bytes
  std::uint64_t lines = 0, bytes = 0;
  std::int64_t unknown = 0;    // of the ids
  text::InvalidBytes invalid;  // its lines counted from 1 within the piece
};

/// Whether Python's decode("utf-8", "ignore").strip() leaves nothing: such a line ends a document.
bool is_blank(std::string_view line) {
  std::string valid;
  return text::strip(text::drop_invalid_utf8(line, valid).count > 0 ? valid : line).empty();
}

std::string names_of(const std::vector<std::filesystem::path>& files) {
  return files.size() == 1 ? files[0].string() : fmt::format("{} and {} more", files.at(0).string(), files.size() - 1);
}

/// How the lines of a file are read.
struct Form {
  bool as_google = false, json_lines = false;
};

class Tokenising {
 public:
  Tokenising(text::CachingTokenizer& tokenizer, Form form) : caching_(tokenizer), form_(form) {}

  /// `name` is for messages.
  Piece piece_of(const Lines& some, const std::string& name) {
    const std::string_view lines = some.block.text;
    piece_.file = some.file;
    for (const std::string_view line : io::lines_of(lines)) {
      ++piece_.lines;
      piece_.bytes =
          std::min<std::size_t>(static_cast<std::size_t>(line.data() - lines.data()) + line.size() + 1, lines.size());
      if (form_.json_lines) add_document(line, name, some.block.lines_before + piece_.lines);
      else add(line);
    }
    return std::move(piece_);
  }

 private:
  void add(std::string_view line) {
    if (form_.as_google && line.find('\r') != std::string_view::npos) {
      without_returns_ = line;
      std::erase(without_returns_, '\r');
      line = without_returns_;
    }
    if (!add_sentence(line) && is_blank(line)) end_document();
  }

  void add_document(std::string_view line, const std::string& name, std::uint64_t number) {
    const std::optional<std::string> text = text_of_json_line(line, name, number);
    if (!text) return;
    for (const std::string_view sentence : io::lines_of(*text)) add_sentence(sentence);
    end_document();
  }

  void end_document() {
    piece_.sentences.push_back(kDocumentEnd);
    piece_.ends.push_back(piece_.bytes);
  }

  /// Whether the line has a token.
  bool add_sentence(std::string_view line) {
    const std::span<const std::int32_t> ids = caching_.encode(line);
    piece_.invalid.add(caching_.dropped(), piece_.lines);
    piece_.ids.insert(piece_.ids.end(), ids.begin(), ids.end());
    if (!ids.empty()) piece_.sentences.push_back(static_cast<std::uint32_t>(ids.size()));
    return !ids.empty();
  }

  text::CachingTokenizer& caching_;
  const Form form_;
  std::string without_returns_;
  Piece piece_;
};

class FileTokeniser {
 public:
  FileTokeniser(const std::vector<std::filesystem::path>& files, const text::Tokenizer& tokenizer,
                const CorpusOptions& options, CorpusSink& sink, const TextPlace& start, std::size_t block_bytes)
      : files_(files),
        options_(options),
        sink_(sink),
        block_bytes_(block_bytes),
        unknown_id_(tokenizer.vocabulary().unk_id()),
        start_(start),
        file_(start.file),
        place_(start) {
    for (int i = 0; i < std::max(1, options.threads); ++i) tokenizers_.emplace_back(tokenizer);
  }

  void run() {
    io::in_order([&] { return next(); }, options_.threads,
                 [&](const Lines& lines, std::size_t slot) { return tokenise(lines, tokenizers_[slot]); },
                 [&](Piece piece) { take(piece); });
    go_to(files_.size() - 1);
    end_file();
    end_document();
    warn_of_unknown();
  }

 private:
  std::optional<Lines> next() {
    for (; file_ < files_.size(); ++file_, blocks_.reset()) {
      if (!blocks_) open();
      if (auto block = blocks_->next(block_bytes_)) return Lines{.file = file_, .block = *std::move(block)};
    }
    return {};
  }

  /// What was done before is read, for compressed files know no other way, but not tokenised.
  void open() {
    blocks_.emplace(files_[file_]);
    if (file_ == start_.file && !blocks_->skip(start_.bytes))
      fail(Failure::input, "{}: text: expected {} bytes, of which a corpus was begun, got fewer", blocks_->name(),
           start_.bytes);
  }

  Piece tokenise(const Lines& lines, text::CachingTokenizer& tokenizer) const {
    const std::filesystem::path& file = files_[lines.file];
    io::refuse_nul(lines.block.text, file.string(), lines.block.lines_before);
    const Form form{.as_google = options_.as_google, .json_lines = io::is_json_lines(file)};
    Piece piece = Tokenising(tokenizer, form).piece_of(lines, file.string());
    piece.unknown = std::ranges::count(piece.ids, unknown_id_);
    return piece;
  }

  void take(Piece& piece) {
    go_to(piece.file);
    for (std::uint64_t& end : piece.ends) end += place_.bytes;
    sink_.take({place_.file, piece.ids, piece.sentences, piece.ends});
    place_.tokens += std::ssize(piece.ids);
    place_.unknown += piece.unknown;
    place_.invalid.add(piece.invalid, place_.lines);
    place_.lines += piece.lines;
    place_.bytes += piece.bytes;
    if (options_.progress) options_.progress(piece.bytes);
    sink_.reached(place_);
  }

  void go_to(std::size_t file) {
    for (; place_.file < file; place_ = {.file = place_.file + 1, .tokens = place_.tokens, .unknown = place_.unknown})
      end_file();
  }
  void end_file() {
    if (place_.invalid.count > 0) sink_.warn(place_.invalid.message(files_[place_.file].string()));
    if (!options_.as_google) end_document();
  }
  void end_document() { sink_.take({place_.file, {}, {&kDocumentEnd, 1}, {&place_.bytes, 1}}); }

  /// A model of [UNK] would have fine losses.
  void warn_of_unknown() {
    constexpr double kUsual = 0.05;
    const double share =
        static_cast<double>(place_.unknown) / static_cast<double>(std::max<std::int64_t>(place_.tokens, 1));
    if (share > kUsual)
      sink_.warn(fmt::format("{}: {:.0f} % of the tokens are [UNK]; hint: is the vocabulary of this language?",
                             names_of(files_), 100 * share));
  }

  const std::vector<std::filesystem::path>& files_;
  const CorpusOptions& options_;
  CorpusSink& sink_;
  const std::size_t block_bytes_;
  const std::int32_t unknown_id_;
  const TextPlace start_;
  std::vector<text::CachingTokenizer> tokenizers_;
  std::size_t file_;  // that is read
  std::optional<LineBlocks> blocks_;
  TextPlace place_;  // that was taken
};

/// Keeps all.
class Collector : public CorpusSink {
 public:
  explicit Collector(Corpus& corpus) : corpus_(corpus) {}

  void take(const TokenisedText& text) override {
    corpus_.ids.append(text.ids);
    auto& [sentences, documents] = corpus_.documents;
    for (const std::uint32_t length : text.lengths) {
      if (length != kDocumentEnd) sentences.push_back(sentences.back() + length);
      else if (sentences.size() - 1 > documents.back()) documents.push_back(sentences.size() - 1);
    }
  }
  void warn(const std::string& warning) override { corpus_.warnings.push_back(warning); }

 private:
  Corpus& corpus_;
};

}  // namespace

void CompactIds::append(std::span<const std::int32_t> ids) {
  if (narrow_) {
    for (const std::int32_t id : ids) narrow_ids_.push_back(static_cast<std::uint16_t>(id));
  } else {
    wide_ids_.insert(wide_ids_.end(), ids.begin(), ids.end());
  }
}

HeldCorpus::HeldCorpus(Corpus corpus, std::int32_t vocabulary_size)
    : CorpusView(vocabulary_size), corpus_(std::move(corpus)) {
  add({"text", corpus_.ids.span(), corpus_.documents.sentences, corpus_.documents.documents});
}

void tokenise_files(const std::vector<std::filesystem::path>& files, const text::Tokenizer& tokenizer,
                    const CorpusOptions& options, CorpusSink& sink, const TextPlace& start, std::size_t block_bytes) {
  FileTokeniser(files, tokenizer, options, sink, start, block_bytes).run();
}

void check_documents(std::uint64_t documents, const std::vector<std::filesystem::path>& files, std::uint64_t least) {
  const std::string names = names_of(files);
  if (documents == 0) fail(Failure::input, "{}: text: expected sentences, a line each, got none", names);
  if (documents < least)
    fail(Failure::input, "{}: documents: expected at least {}, got {}; hint: a blank line ends a document, and {}",
         names, least, documents, "random next sentences come from other documents; --no-next-sentence needs none");
}

Corpus read_corpus(const std::vector<std::filesystem::path>& files, const text::Tokenizer& tokenizer,
                   const CorpusOptions& options) {
  Corpus corpus{.ids = CompactIds(static_cast<std::size_t>(tokenizer.vocabulary().size())), .documents = {}};
  Collector collector(corpus);
  tokenise_files(files, tokenizer, options, collector);
  check_documents(corpus.documents.count(), files, options.as_google ? 1 : options.least_documents);
  return corpus;
}

}  // namespace bertrand::data
