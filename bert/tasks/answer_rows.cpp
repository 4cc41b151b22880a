#include "bert/tasks/answer_rows.h"

#include "io/json.h"

namespace bertrand::tasks {

std::string answer_rows_header(bool version_2, std::int64_t questions) {
  return io::json_text({{"task", version_2 ? "squad2" : "squad"}, {"kind", "answers"}, {"rows", questions}}) + "\n";
}

std::string answer_row(bool version_2, const SquadParagraph& paragraph, const SquadQuestion& question,
                       const std::string& predicted) {
  std::vector<std::string> truths;
  for (const SquadAnswer& answer : question.answers)
    if (!version_2 || !normalized_answer(answer.text).empty()) truths.push_back(answer.text);
  const ScoredAnswer scored = scored_answer(question, predicted, version_2);
  return io::json_text({{"id", question.id},
                        {"text", question.question},
                        {"text_pair", paragraph.context},
                        {"label", truths},
                        {"prediction", predicted},
                        {"exact", scored.exact},
                        {"f1", scored.f1}}) +
         "\n";
}

}  // namespace bertrand::tasks
