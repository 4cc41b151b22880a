// prepare vocab: a vocabulary learned from text.
#include "apps/prepare/vocab.h"

#include <fmt/format.h>

#include <string>

#include "apps/prepare/output.h"
#include "bert/data/json_lines.h"
#include "bert/data/line_blocks.h"
#include "io/byte_progress.h"
#include "io/error.h"
#include "io/file_arguments.h"
#include "io/file_names.h"
#include "io/files.h"
#include "io/in_order.h"
#include "io/input_files.h"
#include "io/say.h"
#include "io/signals.h"
#include "io/split.h"
#include "io/units.h"

namespace bertrand::prepare {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{4}
                                    << 20;  // counted by one thread; part of the result if words are forgotten

/// What one thread made of a block.
struct CountedBlock {
  text::WordCounts counts;
  text::InvalidBytes invalid;
  std::uint64_t lines_before = 0;
  std::size_t bytes = 0;
};

/// The texts of lines of JSON, which come after `lines` others of the file `name`.
std::string texts_of(std::string_view block, const std::string& name, std::uint64_t lines) {
  std::string texts;
  for (const std::string_view line : io::lines_of(block))
    if (const auto text = data::text_of_json_line(line, name, ++lines)) texts.append(*text).push_back('\n');
  return texts;
}

text::WordCounts count_words(const VocabOptions& options, double input_bytes) {
  io::ByteProgress progress("counting words", input_bytes);
  text::WordCounts counts;
  std::vector<std::string> warnings;
  for (const std::filesystem::path& file : options.inputs) {
    data::LineBlocks input(file);
    const auto count_block = [&, is_json = io::is_json_lines(file)](data::LineBlock block, std::size_t) {
      io::refuse_nul(block.text, input.name(), block.lines_before);
      CountedBlock counted;
      counted.lines_before = block.lines_before;
      counted.bytes = block.text.size();
      if (is_json) block.text = texts_of(block.text, input.name(), block.lines_before);
      counted.invalid = counted.counts.add_lines(block.text, !options.cased);
      return counted;
    };
    text::InvalidBytes invalid;
    io::in_order([&] { return input.next(kBlockBytes); }, options.threads, count_block,
                 [&](const CountedBlock& counted) {
                   counts.merge(counted.counts);
                   invalid.add(counted.invalid, counted.lines_before);
                   progress.add(counted.bytes);
                 });
    if (invalid.count > 0) warnings.push_back(invalid.message(input.name()));
  }
  progress.finish();
  for (const std::string& warning : warnings) io::warn("{}", warning);
  return counts;
}

}  // namespace

void write_vocab(const VocabOptions& options) {
  io::catch_stop_signals(io::OnStop::leave);
  const double input_bytes = io::check_files(options.inputs, {options.output});
  check_output(options.output, options.overwrite);
  const text::WordCounts counts = count_words(options, input_bytes);
  if (counts.size() == 0)
    fail(Failure::input, "{}: text: expected words, got none{}", options.inputs.front().string(),
         options.inputs.size() > 1 ? fmt::format(" in it and {} more", options.inputs.size() - 1) : "");
  text::VocabularyTrainerOptions trainer = options.trainer;
  trainer.progress = [](std::size_t) { io::leave_if_requested("merging"); };
  text::LeftOutCharacters left_out;
  const std::vector<std::string> tokens = text::train_vocabulary(counts, trainer, &left_out);
  std::string lines;
  for (const std::string& token : tokens) lines.append(token).push_back('\n');
  io::replace_file(io::Files::system(), options.output, lines);
  constexpr double kFew = 0.005;  // what large texts have of other alphabets
  if (left_out.share > kFew)
    io::warn("--limit-alphabet {}: {}, {:.3g} % of the text's, and all words with them were left out; hint: {}",
             trainer.limit_alphabet, io::counted(left_out.count, "rarer character"), 100 * left_out.share,
             "a larger one keeps them");
  io::tell("wrote {} tokens learnt from {}{}", tokens.size(), io::counted(counts.size(), "different word"),
           tokens.size() == options.trainer.size ? ""
           : left_out.count > 0                  ? "; what is left of the text has no more frequent pairs"
                                                 : "; the text has no more frequent pairs");
  if (counts.forgotten() > 0) io::tell("{} occurrences of rare words were not used", counts.forgotten());
}

}  // namespace bertrand::prepare
