#include "bert/tasks/squad_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bert/tasks/squad_lines.h"
#include "bert/text/vocabulary.h"
#include "io/error.h"
#include "io/file_names.h"
#include "io/files.h"
#include "io/input_files.h"
#include "io/json_stream.h"
#include "io/signals.h"
#include "io/table.h"

namespace bertrand::tasks {
namespace {

constexpr std::size_t kBeginning = 4096;  // bytes that show if a file is text at all
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
class Reader : public io::JsonStream {
 public:
  using Use = std::function<void(SquadParagraph&&)>;
  Reader(const std::string& file, Use use, SquadIds& ids)
      : JsonStream({.name = file, .failure = Failure::input}), use_(std::move(use)), ids_(ids) {}

  bool boolean(bool value) override {
    if (!wants_truth()) return passed_over("true or false");
    paragraph_.questions.back().is_impossible = value;
    return true;
  }
  bool number_integer(std::int64_t value) override { return number(value); }
  bool number_unsigned(std::uint64_t value) override { return number(value); }
  bool number_float(double, const std::string& text) override {
    if (wants_number()) refuse_start(text.substr(0, 40));
    return passed_over("a number");
  }
  bool null() override { return passed_over("null"); }

 private:
  struct Frame {
    Level level = Level::other;
    bool is_list = false;
    std::string key;          // of the value that is being read
    std::int64_t items = -1;  // of a list: the number of the one that is being read
  };

  void open_object() override {
    const Level level = open(false);
    if (level == Level::question) paragraph_.questions.emplace_back();
    if (level == Level::answer) paragraph_.questions.back().answers.emplace_back();
  }
  void open_list() override { open(true); }
  void name(std::string& key) override { frames_.back().key = std::move(key); }
  void text(std::string& value) override {
    std::string* const wanted = wanted_string();
    if (!wanted) {
      passed_over("a text");
      return;
    }
    *wanted = std::move(value);
    if (level() == Level::question && frames_.back().key == "id" && !ids_.add(*wanted))
      refuse("expected an id of its own, got {} again", io::shown(*wanted));
  }
  void close_object() override {
    frames_.back().key.clear();  // what is wrong now is wrong with the object
    for (const std::string& name : required(level()))
      if (!keys().contains(name)) refuse("expected the key \"{}\", got none{}", name, hint());
    if (level() == Level::paragraph) use_(std::exchange(paragraph_, {}));
    frames_.pop_back();
  }
  void close_list() override { frames_.pop_back(); }

  /// What to do about an object that lacks a key: other programs have questions in other forms.
  const char* hint() const {
    if (level() == Level::file) return "; hint: the name of a file with a question a line ends in .jsonl";
    if (level() == Level::article && keys().contains("question"))
      return "; hint: write the objects of \"data\" a line each, into a file that ends in .jsonl";
    return "";
  }

  Level level() const { return frames_.empty() ? Level::outside : frames_.back().level; }

  /// A new item of a list counts, whatever it is.
  void count_item() {
    if (!frames_.empty() && frames_.back().is_list) ++frames_.back().items;
  }

  Level open(bool is_list) {
    count_item();
    Level next = Level::other;
    if (frames_.empty()) next = is_list ? Level::other : Level::file;
    else next = frames_.back().is_list ? items_of(level()) : below(level(), frames_.back().key);
    const bool list_is_right =
        next == Level::articles || next == Level::paragraphs || next == Level::questions || next == Level::answers;
    if (frames_.empty() && is_list) refuse("expected an object, got a list");
    if (next != Level::other && list_is_right != is_list)
      refuse("expected {}, got {}", list_is_right ? "a list" : "an object", is_list ? "a list" : "an object");
    refuse_if_scalar(is_list);
    frames_.push_back({.level = next, .is_list = is_list});
    return next;
  }

  /// An object or list in the place of a text, a number or a truth value.
  void refuse_if_scalar(bool is_list) {
    if (wanted_string() || wants_number())
      refuse("expected a text or number, got {}", is_list ? "a list" : "an object");
    if (wants_truth()) refuse("expected true or false, got {}", is_list ? "a list" : "an object");
  }

  std::string* wanted_string() {
    if (frames_.empty()) return nullptr;
    const std::string& key = frames_.back().key;
    if (level() == Level::paragraph && key == "context") return &paragraph_.context;
    if (level() == Level::question && key == "id") return &paragraph_.questions.back().id;
    if (level() == Level::question && key == "question") return &paragraph_.questions.back().question;
    if (level() == Level::answer && key == "text") return &paragraph_.questions.back().answers.back().text;
    return nullptr;
  }
  bool wants_number() const { return level() == Level::answer && frames_.back().key == "answer_start"; }
  bool wants_truth() const { return level() == Level::question && frames_.back().key == "is_impossible"; }

  bool number(auto value) {
    if (!wants_number()) return passed_over("a number");
    if (std::cmp_less(value, 0) || std::cmp_greater(value, kLongestContext)) refuse_start(std::to_string(value));
    paragraph_.questions.back().answers.back().start = static_cast<std::int64_t>(value);
    return true;
  }
  [[noreturn]] void refuse_start(const std::string& got) const {
    refuse("expected a place in the context, a whole number from 0, got {}", got);
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
    if (wants_truth()) refuse("expected true or false, got {}", what);
    return true;
  }

  /// FILE: data[3].paragraphs[0].qas[1].id
  std::string place() const override {
    std::string text;
    for (std::size_t i = 0; i < std::min(frames_.size(), kShownLevels); ++i) {
      const Frame& frame = frames_[i];
      if (frame.is_list) text += frame.items >= 0 ? fmt::format("[{}]", frame.items) : "";
      else if (!frame.key.empty()) text += fmt::format("{}{}", text.empty() ? "" : ".", io::printable(frame.key));
    }
    return fmt::format("{}: {}", source().name, text.empty() ? "file" : text);
  }

  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> message, Args&&... args) const {
    fail(Failure::input, "{}: {}", place(), fmt::format(message, std::forward<Args>(args)...));
  }

  std::vector<Frame> frames_;
  const Use use_;
  SquadParagraph paragraph_;  // that is being read
  SquadIds& ids_;
};

/// `let_go` is called now and then, when what came before in the text is not needed any more.
void walk_json(std::string_view text, const std::string& name, const Reader::Use& use, SquadIds& ids,
               const std::function<void()>& let_go) {
  constexpr std::size_t kPart = std::size_t{1} << 24;
  std::size_t bytes = 0;
  const auto use_and_let_go = [&](SquadParagraph&& paragraph) {
    bytes += text_bytes(paragraph);
    use(std::move(paragraph));
    if (bytes < kPart) return;
    io::leave_if_requested("reading questions");
    let_go();  // for memory alone
    bytes = 0;
  };
  Reader(name, use_and_let_go, ids).read(text, let_go);
}

/// Whether the first of several lines may be an object, and the next one too. SQuAD's JSON is one object in all, which
/// is mostly one long line.
bool has_an_object_a_line(std::string_view text) {
  constexpr std::size_t kLooked = std::size_t{1} << 20;
  const std::string_view first = text.substr(0, kLooked), line = first.substr(0, first.find('\n')),
                         object = text::strip(line);
  return object.starts_with('{') && object.ends_with('}') && text::strip(first.substr(line.size())).starts_with('{');
}

/// `read` reads a file of questions.
void read_and_compare_ids(const std::function<void(const Reader::Use& use, SquadIds& ids)>& read,
                          const Reader::Use& use) {
  SquadIds ids;
  read(use, ids);
  // For speed alone not in any case: no id would be refused. Hashes may be equal by accident.
  if (ids.begin_second_reading()) read([](SquadParagraph&&) {}, ids);
}

}  // namespace

std::size_t text_bytes(const SquadParagraph& paragraph) {
  std::size_t bytes = paragraph.context.size();
  for (const SquadQuestion& question : paragraph.questions) {
    bytes += question.id.size() + question.question.size();
    for (const SquadAnswer& answer : question.answers) bytes += answer.text.size();
  }
  return bytes;
}

std::vector<SquadParagraph> parse_squad(std::string_view text, const std::string& name) {
  std::vector<SquadParagraph> all;
  read_and_compare_ids([&](const auto& use, SquadIds& ids) { walk_json(text, name, use, ids, [] {}); },
                       [&](SquadParagraph&& paragraph) { all.push_back(std::move(paragraph)); });
  return all;
}

void walk_squad(const std::filesystem::path& file, const std::function<void(SquadParagraph&&)>& use,
                const ParagraphFilter& wanted) {
  std::size_t number = 0;
  const auto use_wanted = [&](SquadParagraph&& paragraph) {
    if (!wanted || wanted(number++)) use(std::move(paragraph));
  };
  const auto walk_lines = [&](const auto& use_each, SquadIds& ids) { walk_squad_lines(file, use_each, ids); };
  const std::string extension = io::plain_extension(file);
  if (extension == ".jsonl" || extension == ".ndjson") return read_and_compare_ids(walk_lines, use_wanted);
  io::refuse_directory(file, "questions", Failure::input);
  const io::MappedFile mapped(file);
  const std::string_view text = mapped.text();
  if (io::is_compressed_name(file))
    fail(Failure::input, "{}: expected SQuAD's JSON as it is, got it compressed; hint: unpack it first", file.string());
  io::refuse_nul(text.substr(0, kBeginning), file.string());
  if (has_an_object_a_line(text)) return read_and_compare_ids(walk_lines, use_wanted);
  read_and_compare_ids([&](const auto& use_each,
                           SquadIds& ids) { walk_json(text, file.string(), use_each, ids, [&] { mapped.let_go(); }); },
                       use_wanted);
}

std::vector<SquadParagraph> read_squad(const std::filesystem::path& file, const ParagraphFilter& wanted) {
  std::vector<SquadParagraph> all;
  walk_squad(
      file, [&](SquadParagraph&& paragraph) { all.push_back(std::move(paragraph)); }, wanted);
  return all;
}

}  // namespace bertrand::tasks
