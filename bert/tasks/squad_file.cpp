#include "bert/tasks/squad_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <unordered_set>

#include "io/error.h"
#include "io/files.h"
#include "io/input_files.h"

namespace bertrand::tasks {
namespace {

using Json = nlohmann::json;
constexpr std::size_t kDeepest = 64;
constexpr std::int64_t kLongestContext = std::int64_t{1} << 40;
constexpr std::size_t kShownLevels = 10;  // levels of a place in a message

/// What an object or list of the file is for.
enum class Level {
  outside,
  file,
  articles,
  article,
  paragraphs,
  paragraph,
  questions,
  question,
  answers,
  answer,
  other
};

/// The level that the value of `key` opens within an object of this level; other: it is passed over.
Level below(Level level, const std::string& key) {
  if (level == Level::file && key == "data") return Level::articles;
  if (level == Level::article && key == "paragraphs") return Level::paragraphs;
  if (level == Level::paragraph && key == "qas") return Level::questions;
  if (level == Level::question && key == "answers") return Level::answers;
  return Level::other;
}

/// The level of the items of a list.
Level items_of(Level level) {
  switch (level) {
    case Level::articles: return Level::article;
    case Level::paragraphs: return Level::paragraph;
    case Level::questions: return Level::question;
    case Level::answers: return Level::answer;
    default: return Level::other;
  }
}

/// The keys that an object of this level must have.
std::vector<std::string> required(Level level) {
  switch (level) {
    case Level::file: return {"data"};
    case Level::article: return {"paragraphs"};
    case Level::paragraph: return {"context", "qas"};
    case Level::question: return {"id", "question"};
    case Level::answer: return {"text", "answer_start"};
    default: return {};
  }
}

/// What the parser calls for each piece of JSON.
class Reader : public nlohmann::json_sax<Json> {
 public:
  explicit Reader(const std::string& file) : file_(file) {}
  std::vector<SquadParagraph> take() { return std::move(paragraphs_); }

  bool start_object(std::size_t) override {
    const Level level = open(false);
    if (level == Level::paragraph) paragraphs_.emplace_back();
    if (level == Level::question) paragraphs_.back().questions.emplace_back();
    if (level == Level::answer) paragraphs_.back().questions.back().answers.emplace_back();
    return true;
  }
  bool start_array(std::size_t) override {
    open(true);
    return true;
  }
  bool key(std::string& name) override {
    Frame& frame = frames_.back();
    if (frame.level != Level::other && !frame.keys.insert(name).second) refuse("the key \"{}\" comes twice", name);
    frame.key = name;
    return true;
  }
  bool end_object() override {
    for (const std::string& name : required(frames_.back().level))
      if (!frames_.back().keys.contains(name)) refuse("expected the key \"{}\", got none", name);
    frames_.pop_back();
    return true;
  }
  bool end_array() override {
    frames_.pop_back();
    return true;
  }

  bool string(std::string& value) override {
    std::string* const wanted = wanted_string();
    if (!wanted) return passed_over("a text");
    *wanted = std::move(value);
    const bool is_id = level() == Level::question && frames_.back().key == "id";
    if (is_id && !ids_.insert(*wanted).second) refuse("expected an id of its own, got \"{}\" again", *wanted);
    return true;
  }
  bool boolean(bool value) override {
    if (level() != Level::question || frames_.back().key != "is_impossible") return passed_over("true or false");
    paragraphs_.back().questions.back().is_impossible = value;
    return true;
  }
  bool number_integer(std::int64_t value) override { return number(value); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return passed_over("a number");
    return number(static_cast<std::int64_t>(value));
  }
  bool number_float(double, const std::string&) override { return passed_over("a fraction"); }
  bool null() override { return passed_over("null"); }
  bool binary(Json::binary_t&) override { return false; }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    const std::string_view what = error.what();  // [json.exception.parse_error.101] parse error at line 1, column 7: …
    const std::size_t colon = what.find(": ");
    fail(Failure::input, "{}@{}: expected JSON, got {}; hint: is it cut short?", file_, position,
         colon == std::string_view::npos ? what : what.substr(colon + 2));
  }

 private:
  struct Frame {
    Level level = Level::other;
    bool is_list = false;
    std::string key;             // of the value that is being read
    std::int64_t items = -1;     // of a list: the number of the one that is being read
    std::set<std::string> keys;  // of an object
  };

  Level level() const { return frames_.empty() ? Level::outside : frames_.back().level; }

  /// A new item of a list counts, whatever it is.
  void count_item() {
    if (!frames_.empty() && frames_.back().is_list) ++frames_.back().items;
  }

  Level open(bool is_list) {
    count_item();
    if (frames_.size() == kDeepest) refuse("expected at most {} levels of values in each other, got more", kDeepest);
    Level next = Level::other;
    if (frames_.empty()) next = is_list ? Level::other : Level::file;
    else next = frames_.back().is_list ? items_of(level()) : below(level(), frames_.back().key);
    const bool list_is_right =
        next == Level::articles || next == Level::paragraphs || next == Level::questions || next == Level::answers;
    if (frames_.empty() && is_list) refuse("expected an object, got a list");
    if (next != Level::other && list_is_right != is_list)
      refuse("expected {}, got {}", list_is_right ? "a list" : "an object", is_list ? "a list" : "an object");
    if (!is_list || next != Level::other) refuse_if_scalar(is_list);
    frames_.push_back({.level = next, .is_list = is_list});
    return next;
  }

  /// An object or list in the place of a text or number.
  void refuse_if_scalar(bool is_list) {
    if (frames_.empty() || frames_.back().is_list) return;
    if (wanted_string() || wants_number())
      refuse("expected a text or number, got {}", is_list ? "a list" : "an object");
  }

  std::string* wanted_string() {
    if (frames_.empty() || frames_.back().is_list) return nullptr;
    const std::string& key = frames_.back().key;
    if (level() == Level::paragraph && key == "context") return &paragraphs_.back().context;
    if (level() == Level::question && key == "id") return &paragraphs_.back().questions.back().id;
    if (level() == Level::question && key == "question") return &paragraphs_.back().questions.back().question;
    if (level() == Level::answer && key == "text") return &paragraphs_.back().questions.back().answers.back().text;
    return nullptr;
  }
  bool wants_number() const { return level() == Level::answer && frames_.back().key == "answer_start"; }

  bool number(std::int64_t value) {
    if (!wants_number()) return passed_over("a number");
    if (value < 0 || value > kLongestContext) refuse("expected a place in the context, got {}", value);
    paragraphs_.back().questions.back().answers.back().start = value;
    return true;
  }

  /// A value of a key that SQuAD does not have, or of another kind than it has.
  bool passed_over(const char* what) {
    count_item();
    if (frames_.empty()) refuse("expected an object, got {}", what);
    const Frame& frame = frames_.back();
    if (frame.level == Level::other) return true;
    if (frame.is_list) refuse("expected an object, got {}", what);
    if (wanted_string()) refuse("expected a text, got {}", what);
    if (wants_number()) refuse("expected a whole number, got {}", what);
    if (below(frame.level, frame.key) != Level::other) refuse("expected a list, got {}", what);
    if (frame.level == Level::question && frame.key == "is_impossible") refuse("expected true or false, got {}", what);
    return true;
  }

  /// data[3].paragraphs[0].qas[1].id
  std::string place() const {
    std::string text;
    for (std::size_t i = 0; i < std::min(frames_.size(), kShownLevels); ++i) {
      const Frame& frame = frames_[i];
      if (frame.is_list) text += frame.items >= 0 ? fmt::format("[{}]", frame.items) : "";
      else if (!frame.key.empty()) text += (text.empty() ? "" : ".") + frame.key;
    }
    return text.empty() ? "file" : text;
  }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> message, Args&&... args) const {
    fail(Failure::input, "{}: {}: {}", file_, place(), fmt::format(message, std::forward<Args>(args)...));
  }

  const std::string& file_;
  std::vector<Frame> frames_;
  std::vector<SquadParagraph> paragraphs_;
  std::unordered_set<std::string> ids_;
};

}  // namespace

std::vector<SquadParagraph> parse_squad(std::string_view text, const std::string& name) {
  // The parser would take a NUL for the end of its input.
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos)
    fail(Failure::input, "{}@{}: expected JSON, got a NUL", name, nul);
  Reader reader(name);
  Json::sax_parse(text, &reader);
  return reader.take();
}

std::vector<SquadParagraph> read_squad(const std::filesystem::path& file) {
  io::refuse_directory(file, "questions", Failure::input);
  const io::MappedFile mapped(file);
  return parse_squad({reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()}, file.string());
}

}  // namespace bertrand::tasks
