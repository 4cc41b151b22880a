// prepare tokens: text to ids or pieces, line by line.
#include "apps/prepare/tokens.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <future>
#include <string>
#include <vector>

#include "bert/data/json_lines.h"
#include "bert/data/line_blocks.h"
#include "bert/text/tokenizer.h"
#include "io/error.h"
#include "io/file_names.h"
#include "io/input_files.h"
#include "io/say.h"

namespace bertrand::prepare {
namespace {

constexpr std::size_t kBytesPerThread = std::size_t{1} << 20;

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

/// `before`: how many lines the file has before these.
Part encode_lines(std::string_view lines, text::Encoder& encoder, const Source& source, std::uint64_t before) {
  Part part;
  part.text.reserve(2 * lines.size());
  std::array<char, 12> digits;
  std::string text;
  data::for_each_line(lines, [&](std::string_view line) {
    ++part.lines;
    if (source.is_json) line = text = data::text_of_json_line(line, source.name, before + part.lines).value_or("");
    char separator = '\0';  // none before the first id
    for (const std::int32_t id : encoder.encode(line)) {
      digits[0] = separator;
      const char* const end = std::to_chars(digits.data() + 1, digits.data() + digits.size(), id).ptr;
      const char* const begin = digits.data() + (separator == '\0' ? 1 : 0);
      part.text.append(begin, end);
      separator = ' ';
    }
    part.text.push_back('\n');
    part.invalid.add(encoder.dropped(), part.lines);
  });
  return part;
}

void write_out(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    fail(Failure::io, "standard output: write: {}", std::strerror(errno));
  }
}

}  // namespace

void write_tokens(const TokensOptions& options) {
  const text::Tokenizer tokenizer =
      text::load_tokenizer(options.vocab_file, options.cased, {.failure = Failure::input, .require_specials = false},
                           {.keep_special_tokens = options.with_special_tokens});
  std::vector<text::Encoder> encoders;
  for (int i = 0; i < options.threads; ++i) encoders.emplace_back(tokenizer);

  data::LineBlocks input(options.input);
  const Source source{.name = input.name(), .is_json = io::is_json_lines(options.input)};
  text::InvalidBytes invalid;
  std::uint64_t lines = 0;
  std::string block, next_block;
  // While the threads encode one block, the next is read.
  bool has_block = input.next(block, kBytesPerThread * encoders.size());
  while (has_block) {
    io::refuse_nul(block, input.name(), lines);
    std::vector<std::future<Part>> parts;
    std::uint64_t before = lines;
    for (const std::string_view part : data::split_lines(block, encoders.size())) {
      parts.push_back(std::async(std::launch::async, encode_lines, part, std::ref(encoders[parts.size()]),
                                 std::cref(source), before));
      before += static_cast<std::uint64_t>(std::ranges::count(part, '\n'));
    }
    has_block = input.next(next_block, kBytesPerThread * encoders.size());
    for (std::future<Part>& future : parts) {
      const Part part = future.get();
      write_out(part.text);
      invalid.add(part.invalid, lines);
      lines += part.lines;
    }
    block.swap(next_block);
  }
  if (std::fflush(stdout) != 0) fail(Failure::io, "standard output: write: {}", std::strerror(errno));
  if (invalid.count > 0) io::warn("{}", invalid.message(input.name()));
}

}  // namespace bertrand::prepare
