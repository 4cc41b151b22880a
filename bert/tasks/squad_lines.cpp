#include "bert/tasks/squad_lines.h"

#include <fmt/format.h>

#include <utility>

#include "bert/text/vocabulary.h"
#include "io/error.h"
#include "io/json.h"
#include "io/line_source.h"
#include "io/signals.h"

namespace bertrand::tasks {
namespace {

using io::Json;

SquadAnswer answer_of(const Json& text, const Json& start, const io::JsonReader& reader, const std::string& place) {
  if (!text.is_string()) reader.refuse("answers.text" + place, "a text", &text);
  const bool is_place = start.is_number_unsigned() && start.get<std::uint64_t>() <= kLongestContext;
  if (!is_place) reader.refuse("answers.answer_start" + place, "a place in the context, a whole number from 0", &start);
  return {.text = text.get<std::string>(), .start = start.get<std::int64_t>()};
}

/// {"text": […], "answer_start": […]}
std::vector<SquadAnswer> answers_in_columns(io::JsonReader& reader) {
  io::JsonReader columns = reader.object("answers");
  const Json &texts = columns.list("text"), &starts = columns.list("answer_start");
  if (texts.size() != starts.size())
    columns.refuse("answer_start", fmt::format("a place for each of {} texts", texts.size()), &starts);
  std::vector<SquadAnswer> answers;
  for (std::size_t i = 0; i < texts.size(); ++i)
    answers.push_back(answer_of(texts[i], starts[i], reader, fmt::format("[{}]", i)));
  return answers;
}

/// [{"text", "answer_start"}, …]
std::vector<SquadAnswer> answers_in_rows(const Json& rows, io::JsonReader& reader) {
  static const Json none;
  std::vector<SquadAnswer> answers;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Json& row = rows[i];
    const std::string place = fmt::format("[{}]", i);
    if (!row.is_object()) reader.refuse("answers" + place, "an object", &row);
    answers.push_back(answer_of(row.value("text", none), row.value("answer_start", none), reader, place));
  }
  return answers;
}

SquadQuestion question_of(io::JsonReader& reader) {
  SquadQuestion question{.id = reader.text("id"), .question = reader.text("question")};
  if (const Json* const answers = reader.find("answers"); answers && !answers->is_null()) {
    question.answers = answers->is_array() ? answers_in_rows(*answers, reader) : answers_in_columns(reader);
    question.is_impossible = question.answers.empty();  // `squad_v2` does not say it otherwise
  }
  if (const Json* const is_impossible = reader.find("is_impossible"); is_impossible && !is_impossible->is_null())
    question.is_impossible = reader.flag("is_impossible");
  return question;
}

}  // namespace

void walk_squad_lines(const std::filesystem::path& file, const std::function<void(SquadParagraph&&)>& use,
                      SquadIds& ids) {
  SquadParagraph paragraph;
  const auto hand_over = [&] {
    if (!paragraph.questions.empty()) use(std::exchange(paragraph, {}));
  };
  io::LineSource lines(file, "questions");
  for (std::string_view line; lines.next(line);) {
    if (text::strip(line).empty()) continue;
    const io::JsonSource source{lines.where(), Failure::input};
    const Json json = io::parse_json(line, source);
    io::JsonReader reader(json, source);
    std::string context = reader.text("context");
    if (paragraph.questions.empty() || context != paragraph.context) {
      hand_over();
      io::leave_if_requested("reading questions");
      paragraph.context = std::move(context);
    }
    paragraph.questions.push_back(question_of(reader));
    if (const std::string& id = paragraph.questions.back().id; !ids.add(id))
      fail(Failure::input, "{}: id: expected an id of its own, got {} again", source.name, io::shown(id));
  }
  hand_over();
}

}  // namespace bertrand::tasks
