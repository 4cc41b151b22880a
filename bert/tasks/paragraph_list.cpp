// A paragraph is a row with its context, then a row for each question, then one without cells.
#include "bert/tasks/paragraph_list.h"

#include <charconv>
#include <utility>

namespace bertrand::tasks {
namespace {

/// The cells of a question. Behind them are two for each answer: its text and where it starts.
struct QuestionCell {
  static constexpr std::size_t id = 0, question = 1, is_impossible = 2, answers = 3;
};

std::string text_of(std::optional<bool> is_impossible) {
  return is_impossible ? std::string(*is_impossible ? "1" : "0") : "";
}

SquadQuestion question_of(const Row& row) {
  const std::string& is_impossible = row.cell(QuestionCell::is_impossible);
  SquadQuestion question{.id = row.cell(QuestionCell::id),
                         .question = row.cell(QuestionCell::question),
                         .answers = {},
                         .is_impossible = is_impossible.empty() ? std::nullopt : std::optional(is_impossible == "1")};
  for (std::size_t i = QuestionCell::answers; i < row.cells.size(); i += 2) {
    SquadAnswer& answer = question.answers.emplace_back(SquadAnswer{.text = row.cells[i]});
    const std::string& start = row.cells[i + 1];
    std::from_chars(start.data(), start.data() + start.size(), answer.start);
  }
  return question;
}

}  // namespace

void ParagraphList::add(const SquadParagraph& paragraph) {
  rows_.add({.cells = {paragraph.context}});
  for (const SquadQuestion& question : paragraph.questions) {
    Row row{.cells = {question.id, question.question, text_of(question.is_impossible)}};
    for (const SquadAnswer& answer : question.answers) {
      row.cells.push_back(answer.text);
      row.cells.push_back(std::to_string(answer.start));
    }
    rows_.add(row);
  }
  rows_.add({});
}

void ParagraphList::for_each(const std::function<void(SquadParagraph&& paragraph)>& use) const {
  SquadParagraph paragraph;
  rows_.for_each([&](const Row& row) {
    if (row.cells.empty()) use(std::exchange(paragraph, {}));
    else if (row.cells.size() == 1) paragraph.context = row.cells[0];
    else paragraph.questions.push_back(question_of(row));
  });
}

}  // namespace bertrand::tasks
