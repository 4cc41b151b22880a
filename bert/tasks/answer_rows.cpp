// eval_rows.jsonl, question by question.
#include "bert/tasks/answer_rows.h"

#include <algorithm>

#include "io/json.h"

namespace bertrand::tasks {

void write_answer_rows(bool version_2, const std::vector<SquadParagraph>& data, const Answers& predicted,
                       const std::function<void(std::string_view line)>& write) {
  write(io::json_text({{"task", version_2 ? "squad2" : "squad"}, {"kind", "answers"}}) + "\n");
  for (const SquadParagraph& paragraph : data)
    for (const SquadQuestion& question : paragraph.questions) {
      const auto found = predicted.find(question.id);
      const std::string said = found == predicted.end() ? "" : found->second;
      std::vector<std::string> truths;
      for (const SquadAnswer& answer : question.answers)
        if (!version_2 || !normalized_answer(answer.text).empty()) truths.push_back(answer.text);
      const bool none = truths.empty() && version_2;
      double exact = 0, f1 = 0;
      for (const std::string& truth : none ? std::vector<std::string>{""} : truths) {
        exact = std::max(exact, exact_match(said, truth));
        f1 = std::max(f1, answer_f1(said, truth, version_2));
      }
      write(io::json_text({{"id", question.id},
                           {"text", question.question},
                           {"text_pair", paragraph.context},
                           {"label", truths},
                           {"prediction", said},
                           {"exact", exact},
                           {"f1", f1}}) +
            "\n");
    }
}

}  // namespace bertrand::tasks
