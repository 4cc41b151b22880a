// Question answering data in SQuAD's JSON (Rajpurkar et al. 2016, 2018): paragraphs, their questions, their answers.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bertrand::tasks {

constexpr std::int64_t kLongestContext = std::int64_t{1} << 40;  ///< code points

struct SquadAnswer {
  std::string text;
  std::int64_t start = 0;  ///< in code points from the beginning of the context
};

struct SquadQuestion {
  std::string id, question;
  std::vector<SquadAnswer> answers;
  std::optional<bool> is_impossible;  ///< of version 2; none: the file does not say
};

struct SquadParagraph {
  std::string context;
  std::vector<SquadQuestion> questions;
};

/// The bytes of all its texts.
std::size_t text_bytes(const SquadParagraph& paragraph);

/// Says of a paragraph, by its number in the file from 0, whether it is wanted; none: all are.
using ParagraphFilter = std::function<bool(std::size_t number)>;

/// Reads a file as it streams by: SQuAD's JSON, or a question a line (bert/tasks/squad_lines.h), which files named
/// .jsonl and .ndjson have, and others whose first lines, of 1 MiB at most, are objects. Of SQuAD's JSON, memory is
/// little more than the texts. Keys that SQuAD does not have, and plausible_answers, are passed over. Throws
/// Error(Failure::io) if the file cannot be read, and Error(Failure::input) naming file, place
/// (data[3].paragraphs[0].qas[1].id), expected and got: no JSON, a value of another kind, a key that is missing or
/// comes twice, an id that comes twice, more than 64 levels.
std::vector<SquadParagraph> read_squad(const std::filesystem::path& file, const ParagraphFilter& wanted = {});
/// The same of text at hand; `name` stands for the file in messages.
std::vector<SquadParagraph> parse_squad(std::string_view text, const std::string& name);
/// The same paragraph by paragraph, in order, none of which is held. That an id comes twice is only known at the end: 8
/// bytes of each are kept.
void walk_squad(const std::filesystem::path& file, const std::function<void(SquadParagraph&& paragraph)>& use,
                const ParagraphFilter& wanted = {});

}  // namespace bertrand::tasks
