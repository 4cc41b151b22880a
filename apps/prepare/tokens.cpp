// prepare tokens: text to ids, line by line.
#include "apps/prepare/tokens.h"

#include <array>
#include <charconv>
#include <string>
#include <vector>

#include "bert/data/json_lines.h"
#include "bert/data/line_blocks.h"
#include "bert/text/tokenizer.h"
#include "io/file_names.h"
#include "io/in_order.h"
#include "io/input_files.h"
#include "io/say.h"
#include "io/split.h"

namespace bertrand::prepare {
namespace {

constexpr std::size_t kEncodedAtOnce = std::size_t{1} << 20;  // that a thread encodes

/// What one thread made of some lines.
struct Part {
  std::string text;
  std::uint64_t lines = 0;
  text::InvalidBytes invalid;
};

/// The file that lines are from.
struct Source {
  std::string name;  ///< for messages
  bool is_json = false;
};

Part encode_lines(const data::LineBlock& block, text::CachingTokenizer& caching, const Source& source) {
  io::refuse_nul(block.text, source.name, block.lines_before);
  Part part;
  part.text.reserve(2 * block.text.size());
  std::array<char, 12> digits;
  std::string text;
  for (std::string_view line : io::lines_of(block.text)) {
    ++part.lines;
    if (source.is_json)
      line = text = data::text_of_json_line(line, source.name, block.lines_before + part.lines).value_or("");
    char separator = '\0';  // none before the first id
    for (const std::int32_t id : caching.encode(line)) {
      digits[0] = separator;
      const char* const end = std::to_chars(digits.data() + 1, digits.data() + digits.size(), id).ptr;
      const char* const begin = digits.data() + (separator == '\0' ? 1 : 0);
      part.text.append(begin, end);
      separator = ' ';
    }
    part.text.push_back('\n');
    part.invalid.add(caching.dropped(), part.lines);
  }
  return part;
}

}  // namespace

void write_tokens(const TokensOptions& options) {
  const text::Tokenizer tokenizer =
      load_tokenizer(options.tokenizer, {.specials = false, .keep_special_tokens = options.with_special_tokens});
  std::vector<text::CachingTokenizer> tokenizers;
  for (int i = 0; i < options.threads; ++i) tokenizers.emplace_back(tokenizer);

  data::LineBlocks input(options.input);
  const Source source{.name = input.name(), .is_json = io::is_json_lines(options.input)};
  text::InvalidBytes invalid;
  std::uint64_t lines = 0;
  io::in_order(
      [&] { return input.next(kEncodedAtOnce); }, options.threads,
      [&](const data::LineBlock& block, std::size_t slot) { return encode_lines(block, tokenizers[slot], source); },
      [&](const Part& part) {
        io::write_stdout(part.text);
        invalid.add(part.invalid, lines);
        lines += part.lines;
      });
  if (invalid.count > 0) io::warn("{}", invalid.message(input.name()));
}

}  // namespace bertrand::prepare
