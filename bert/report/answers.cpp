// Answers to questions: intervals, lengths of questions, and the answers that miss most.
#include "bert/report/answers.h"

#include <algorithm>

#include "bert/report/intervals.h"
#include "io/shortened.h"

namespace bertrand::report {
namespace {

struct Question {
  std::string_view line;  ///< of the file
  double exact = 0, f1 = 0;
};

Question read_question(const Line& from) {
  constexpr io::JsonReader::Real kShare{.least = 0, .most = 1};
  io::JsonReader& line = from.json;
  const Question question{.line = from.text, .exact = line.real("exact", kShare), .f1 = line.real("f1", kShare)};
  for (const char* key : {"prediction", "text"}) line.text(key);  // checked here, read where they are shown
  for (const char* key : {"id", "text_pair"}) line.text(key, "");
  line.list("label");
  return question;
}

/// A question that is not answered as it should be, as the page shows it.
io::Json row_json(const Question& question) {
  const io::Json json = read_again(question.line);
  io::JsonReader line(json, {tasks::kEvaluationRows, Failure::input});
  const std::string said = line.text("prediction");
  io::Json row = {{"id", line.text("id", "")},
                  {"text", io::shortened(line.text("text"))},
                  {"pair", io::shortened(line.text("text_pair", ""))}};
  row["label"] = io::Json::array();
  for (const io::Json& one : line.list("label"))
    if (one.is_string() && std::ranges::find(row["label"], one) == row["label"].end()) row["label"].push_back(one);
  row["prediction"] = io::Json::array();
  if (!said.empty()) row["prediction"].push_back(io::shortened(said));
  row["right"] = false;  // however little an answer differs from the label
  row["f1"] = question.f1;
  return row;
}

/// In percent.
io::Json intervals_of(const std::vector<Question>& questions) {
  return intervals(questions.size(), kResamples, [&](std::span<const std::size_t> drawn) {
    const double percent = 100 / static_cast<double>(drawn.size());
    double exact = 0, f1 = 0;
    for (const std::size_t i : drawn) exact += questions[i].exact, f1 += questions[i].f1;
    return std::map<std::string, double>{{"exact_match", percent * exact}, {"f1", percent * f1}};
  });
}

}  // namespace

io::Json answers_of(std::string_view lines, const Extent& extent, const LetGo& let_go) {
  std::vector<Question> questions;
  read_lines(lines, let_go, [&](const Line& line) {
    if (line.number > 1) questions.push_back(read_question(line));
  });
  io::Json json{{"kind", "answers"}, {"labels", io::Json::array()}, {"rows", questions.size()}};
  json["intervals"] = intervals_of(questions);
  // F1 does not say which: right words in another order have 1, and an exact answer of articles alone has 0.
  std::erase_if(questions, [](const Question& question) { return question.exact >= 1; });
  std::ranges::stable_sort(questions, {}, &Question::f1);
  json["wrong"] = io::Json::array();
  for (std::size_t i = 0; i < std::min(extent.rows, questions.size()); ++i)
    json["wrong"].push_back(row_json(questions[i]));
  return json;
}

}  // namespace bertrand::report
