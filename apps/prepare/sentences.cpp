// prepare sentences: paragraphs cut into sentences, document by document.
#include "apps/prepare/sentences.h"

#include <fmt/format.h>

#include <chrono>

#include "apps/prepare/output.h"
#include "bert/data/json_lines.h"
#include "bert/data/line_blocks.h"
#include "bert/text/sentences.h"
#include "bert/text/utf8.h"
#include "bert/text/vocabulary.h"
#include "io/byte_progress.h"
#include "io/error.h"
#include "io/file_arguments.h"
#include "io/file_names.h"
#include "io/file_replacer.h"
#include "io/input_files.h"
#include "io/line_source.h"
#include "io/say.h"
#include "io/signals.h"
#include "io/split.h"
#include "io/units.h"

namespace bertrand::prepare {
namespace {

constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;  // bytes, and what is written at once

struct Counts {
  std::uint64_t documents = 0, sentences = 0, bytes = 0;
  std::uint64_t single = 0;  // documents of one sentence
};

/// Writes the sentences of documents as they come. A document without a sentence is none.
class DocumentWriter {
 public:
  DocumentWriter(text::SentenceSplitter& splitter, io::FileReplacer& out) : splitter_(splitter), out_(out) {}

  void add_paragraph(std::string_view paragraph) {
    const std::size_t size = lines_.size();
    if (in_document_ == 0 && counts_.documents > 0) lines_.push_back('\n');
    const std::size_t sentences = splitter_.append_lines(paragraph, lines_);
    if (sentences == 0) lines_.resize(size);
    in_document_ += sentences;
    if (lines_.size() >= kReadAtOnce) flush();
  }
  void end_document() {
    if (in_document_ == 0) return;
    ++counts_.documents;
    counts_.sentences += in_document_;
    counts_.single += in_document_ == 1 ? 1 : 0;
    in_document_ = 0;
  }
  const Counts& finish() {
    flush();
    return counts_;
  }

 private:
  void flush() {
    out_.write(lines_);
    counts_.bytes += lines_.size();
    lines_.clear();
  }

  text::SentenceSplitter& splitter_;
  io::FileReplacer& out_;
  std::string lines_;
  std::uint64_t in_document_ = 0;  // sentences of the document at hand
  Counts counts_;
};

/// Lines to paragraphs and documents.
class FileReader {
 public:
  FileReader(DocumentWriter& writer, bool unwrap) : writer_(writer), unwrap_(unwrap) {}

  /// `done` is called with the bytes of text read since its last call. Returns what was no UTF-8.
  template <class Done>
  text::InvalidBytes read(const std::filesystem::path& file, Done done) {
    data::LineBlocks input(file);
    const bool is_json = io::is_json_lines(file);
    text::InvalidBytes invalid;
    std::uint64_t lines = 0;
    std::string valid;
    while (std::optional<data::LineBlock> next = input.next(kReadAtOnce)) {
      std::string& block = next->text;
      io::refuse_nul(block, input.name(), lines);
      const std::size_t size = block.size();
      if (!is_json) {  // in JSON they are an error
        const text::InvalidBytes dropped = text::drop_invalid_lines(block, valid);
        if (dropped.count > 0) block.swap(valid);
        invalid.add(dropped, lines);
      }
      for (const std::string_view line : io::lines_of(block)) {
        ++lines;
        if (is_json) add_document(line, input.name(), lines);
        else add_line(line, input.name(), lines);
      }
      done(size);
    }
    end_document();
    return invalid;
  }

 private:
  void add_document(std::string_view line, const std::string& name, std::uint64_t number) {
    const std::optional<std::string> text = data::text_of_json_line(line, name, number);
    if (!text) return;
    for (const std::string_view part : io::lines_of(*text)) take(part, name, number);
    end_document();
  }

  void add_line(std::string_view line, const std::string& name, std::uint64_t number) {
    if (!unwrap_ && text::strip(line).empty()) writer_.end_document();
    else take(line, name, number);
  }

  /// A line of a document: a paragraph, or a part of one.
  void take(std::string_view line, const std::string& name, std::uint64_t number) {
    if (!unwrap_) return writer_.add_paragraph(line);
    line = text::strip(line);  // a carriage return would end a sentence
    if (line.empty()) return end_paragraph();
    if (paragraph_.size() + line.size() >= io::LineSource::kLongest)
      fail(Failure::input, "{}:{}: expected a paragraph of at most {} bytes, got more; hint: {}", name, number,
           io::LineSource::kLongest, "a blank line ends one; without --unwrap each line is one");
    paragraph_.append(line).push_back(' ');
  }

  void end_paragraph() {
    writer_.add_paragraph(paragraph_);
    paragraph_.clear();
  }
  void end_document() {
    end_paragraph();
    writer_.end_document();
  }

  DocumentWriter& writer_;
  const bool unwrap_;
  std::string paragraph_;  // of unwrap: the lines of one so far
};

}  // namespace

void write_sentences(const SentencesOptions& options) {
  io::catch_stop_signals(io::OnStop::leave);
  const auto begin = std::chrono::steady_clock::now();
  const double input_bytes = io::check_files(options.inputs, {options.output});
  check_output(options.output, options.overwrite);
  text::SentenceSplitter splitter(options.language);

  io::FileReplacer out(io::Files::system(), options.output);
  DocumentWriter writer(splitter, out);
  FileReader reader(writer, options.unwrap);
  io::ByteProgress progress("cutting into sentences", input_bytes);
  std::vector<std::string> warnings;
  for (const std::filesystem::path& file : options.inputs) {
    const text::InvalidBytes invalid = reader.read(file, [&](std::size_t bytes) { progress.add(bytes); });
    if (invalid.count > 0) warnings.push_back(invalid.message(file.string()));
  }
  progress.finish();
  const Counts& counts = writer.finish();
  for (const std::string& warning : warnings) io::warn("{}", warning);
  const std::string first = options.inputs.front().string();
  if (counts.documents == 0)
    fail(Failure::input, "{}: text: expected sentences, got none{}", first,
         options.inputs.size() > 1 ? fmt::format(" in it and {} more", options.inputs.size() - 1) : "");
  out.publish();
  if (2 * counts.single >= counts.documents)
    io::warn(
        "{}: {} of {} documents have one sentence: pairs of such a document are all random; hint: a blank line ends a "
        "document, with --unwrap the end of a file",
        first, counts.single, counts.documents);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  io::tell("wrote {}, {}, {} bytes in {:.2f} seconds", io::counted(counts.documents, "document"),
           io::counted(counts.sentences, "sentence"), counts.bytes, seconds.count());
}

}  // namespace bertrand::prepare
