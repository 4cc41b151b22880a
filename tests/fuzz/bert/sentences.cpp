// A paragraph cut into sentences by the rules of one of some languages: nothing of it is lost, and each line says
// something.
#include "bert/text/sentences.h"

#include <algorithm>
#include <map>

#include "bert/text/python_text.h"
#include "bert/text/unicode.h"
#include "bert/text/utf8.h"
#include "bert/text/vocabulary.h"
#include "fuzz/io/tables.h"

using namespace bertrand;

namespace {

/// The characters that the tokenizer keeps, without white space.
std::string kept(std::string_view text) {
  std::string result;
  for (const char* p = text.data(); p < text.data() + text.size();) {
    const char* const begin = p;
    const char32_t c = text::decode_utf8(p);
    const int properties = text::UnicodeTable::get().properties(c);
    if ((properties & (text::kSpace | text::kDropped | text::kMark)) == 0 && !text::is_python_space(c))
      result.append(begin, p);
  }
  return result;
}

text::SentenceSplitter& splitter_of(std::size_t byte) {
  static const char* const kLanguages[] = {"en", "de", "fr", "zh"};
  static std::map<std::string, text::SentenceSplitter> splitters;
  const char* const language = kLanguages[byte % std::size(kLanguages)];
  return splitters.try_emplace(language, language).first->second;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = fuzz::text_of(data, size);
  const std::size_t language = fuzz::take_byte(text);
  std::string paragraph(text), valid, lines;
  if (text::drop_invalid_utf8(text, valid).count > 0) paragraph = valid;
  fuzz::read_or_refuse([&] {
    const std::size_t count = splitter_of(language).append_lines(paragraph, lines);
    fuzz::require(std::ranges::count(lines, '\n') == static_cast<std::ptrdiff_t>(count), "a line for each sentence");
    fuzz::require(kept(lines) == kept(paragraph), "all that the tokenizer keeps");
    std::string_view rest = lines;
    for (std::size_t end; (end = rest.find('\n')) != rest.npos; rest.remove_prefix(end + 1)) {
      const std::string_view line = rest.substr(0, end);
      fuzz::require(!kept(line).empty() && text::strip(line) == line, "a sentence without white space at its ends");
    }
  });
  return 0;
}
