// A vocabulary read from its lines.
#include "bert/text/vocabulary.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "bert/text/utf8.h"
#include "io/byte_source.h"
#include "io/input_files.h"
#include "io/say.h"
#include "io/seeded_hash.h"
#include "io/units.h"

namespace bertrand::text {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// What Python's str.strip() removes, as UTF-8.
constexpr auto kWhiteSpace = std::to_array<std::string_view>(
    {"\t",     "\n",     "\v",     "\f",     "\r",     "\x1C",   "\x1D",   "\x1E",   "\x1F",   " ",
     "\u0085", "\u00A0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
     "\u2007", "\u2008", "\u2009", "\u200A", "\u2028", "\u2029", "\u202F", "\u205F", "\u3000"});

std::string read_file(const std::filesystem::path& path, Failure failure) {
  constexpr std::size_t kPart = std::size_t{1} << 18;
  io::refuse_directory(path, "vocabulary", failure);
  io::ByteSource source(path, "vocabulary", [](std::string_view) { return true; });
  std::string bytes;
  for (std::size_t got = kPart; got == kPart;) {
    const std::size_t before = bytes.size();
    bytes.resize(before + kPart);
    got = source.read(bytes.data() + before, kPart);
    bytes.resize(before + got);
    if (bytes.size() > io::kMostSmallFile)
      fail(failure, "{}: vocabulary: expected at most {}, got more; hint: is it a text?", path.string(),
           io::bytes_text(static_cast<double>(io::kMostSmallFile)));
  }
  return bytes;
}

/// Blank lines at the end of what has more lines than `rows`.
void drop_blank_end(std::string_view& text, std::int64_t rows) {
  for (auto lines = std::ranges::count(text, '\n') + !text.ends_with('\n'); lines > rows; --lines) {
    const std::size_t begin = text.substr(0, text.size() - text.ends_with('\n')).rfind('\n') + 1;
    if (!strip(text.substr(begin)).empty()) return;
    text = text.substr(0, begin);
  }
}

}  // namespace

std::string_view strip(std::string_view text) {
  for (bool found = true; found;) {
    found = false;
    for (const std::string_view space : kWhiteSpace) {
      if (text.starts_with(space)) text.remove_prefix(space.size()), found = true;
      if (text.ends_with(space)) text.remove_suffix(space.size()), found = true;
    }
  }
  return text;
}

struct Vocabulary::Contents {
  std::string text;
  std::vector<std::string> tokens;
  std::unordered_map<std::string_view, std::int32_t, io::SeededHash> ids;
  std::vector<std::int32_t> distinct_ids;
  std::int32_t unk, cls, sep, mask;

  std::int32_t find(std::string_view token) const {
    const auto found = ids.find(token);
    return found == ids.end() ? -1 : found->second;
  }
};

Vocabulary::Vocabulary(std::shared_ptr<const Contents> contents) : contents_(std::move(contents)) {}

Vocabulary Vocabulary::load(const std::filesystem::path& path, const VocabularyOptions& options) {
  return parse(read_file(path, options.failure), path.string(), options);
}

Vocabulary Vocabulary::parse(std::string bytes, const std::string& name, const VocabularyOptions& options) {
  auto contents = std::make_shared<Contents>();
  std::string_view rest = bytes;
  if (rest.starts_with(kByteOrderMark)) rest.remove_prefix(kByteOrderMark.size());
  if (rest.starts_with('{') && rest.find("\n[UNK]") == rest.npos)
    fail(options.failure, "{}: vocabulary: expected one token a line, got JSON; hint: {}", name,
         "is it a tokenizer.json? export --format huggingface writes the vocab.txt of its model");
  drop_blank_end(rest, options.rows);
  InvalidBytes invalid;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    std::string valid;
    const DroppedBytes dropped = drop_invalid_utf8(line, valid);
    invalid.add(dropped, contents->tokens.size() + 1);
    const std::string_view token = strip(dropped.count == 0 ? line : valid);
    const bool is_as_read = token.empty() || token == line.substr(0, line.find_last_not_of('\r') + 1);
    contents->text += is_as_read ? line : token;
    if (line.size() < rest.size()) contents->text += '\n';
    contents->tokens.emplace_back(token);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  if (invalid.count > 0) io::warn("{}", invalid.message(name));
  if (contents->tokens.empty())
    fail(options.failure, "{}:1: vocabulary: expected one token a line, got an empty file", name);

  contents->ids.reserve(contents->tokens.size());
  for (std::size_t i = 0; i < contents->tokens.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    const auto [entry, is_new] = contents->ids.emplace(contents->tokens[i], id);
    if (!is_new && !entry->first.empty()) {
      fail(options.failure, "{}:{}: vocabulary: expected every token once, got \"{}\" again, first on line {}", name,
           id + 1, entry->first, entry->second + 1);
    }
    if (is_new) contents->distinct_ids.push_back(id);
    entry->second = id;
  }
  for (std::int32_t& id : contents->distinct_ids) id = contents->find(contents->tokens[static_cast<std::size_t>(id)]);

  for (const char* special : {"[UNK]", "[CLS]", "[SEP]", "[MASK]"}) {
    const bool is_required = options.require_specials || std::string_view(special) == "[UNK]";
    if (is_required && contents->find(special) < 0) {
      fail(options.failure,
           "{}: vocabulary: expected the special tokens [UNK], [CLS], [SEP] and [MASK], got none {}; hint: {}", name,
           special, "is it the vocabulary of a BERT?");
    }
  }
  contents->unk = contents->find("[UNK]");
  contents->cls = contents->find("[CLS]");
  contents->sep = contents->find("[SEP]");
  contents->mask = contents->find("[MASK]");
  return Vocabulary(std::move(contents));
}

Vocabulary Vocabulary::with_added(const std::vector<std::string>& tokens) const {
  auto contents = std::make_shared<Contents>(*contents_);
  contents->tokens.insert(contents->tokens.end(), tokens.begin(), tokens.end());
  contents->ids.clear();  // its keys are those of the other one
  for (std::int32_t id = 0; const std::string& token : contents->tokens) contents->ids.insert_or_assign(token, id++);
  return Vocabulary(std::move(contents));
}

std::int32_t Vocabulary::find(std::string_view token) const { return contents_->find(token); }

std::int32_t Vocabulary::id(std::string_view token) const {
  const std::int32_t id = find(token);
  if (id < 0) fail(Failure::input, "vocabulary: expected a token of the vocabulary, got \"{}\"", token);
  return id;
}

std::string_view Vocabulary::token(std::int32_t id) const {
  if (id < 0 || id >= size()) fail(Failure::input, "vocabulary: expected an id from 0 to {}, got {}", size() - 1, id);
  return contents_->tokens[static_cast<std::size_t>(id)];
}

std::int32_t Vocabulary::size() const { return static_cast<std::int32_t>(contents_->tokens.size()); }
std::int32_t Vocabulary::unk_id() const { return contents_->unk; }
std::int32_t Vocabulary::cls_id() const { return contents_->cls; }
std::int32_t Vocabulary::sep_id() const { return contents_->sep; }
std::int32_t Vocabulary::mask_id() const { return contents_->mask; }
const std::vector<std::int32_t>& Vocabulary::distinct_ids() const { return contents_->distinct_ids; }
bool Vocabulary::has_capitals() const {
  const auto is_capital = [](char c) { return 'A' <= c && c <= 'Z'; };
  const auto is_letter = [&](char c) { return is_capital(c) || ('a' <= c && c <= 'z'); };
  for (std::int32_t id = 0; id < size(); ++id) {
    std::string_view word = token(id);
    if (word.starts_with("##")) word.remove_prefix(2);
    if (std::ranges::all_of(word, is_letter) && std::ranges::any_of(word, is_capital)) return true;
  }
  return false;
}

const std::string& Vocabulary::text() const { return contents_->text; }

}  // namespace bertrand::text
