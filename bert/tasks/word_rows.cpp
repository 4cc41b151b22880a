// eval_rows.jsonl, sentence by sentence.
#include "bert/tasks/word_rows.h"

#include "io/json.h"

namespace bertrand::tasks {

void write_word_rows(TokenTask task, const JudgedWords& words, const WordPredictions& predictions,
                     const std::function<void(std::string_view line)>& write) {
  write(
      io::json_text({{"task", io::name_in(token_tasks(), task)}, {"kind", "words"}, {"labels", words.names.names()}}) +
      "\n");
  for (std::size_t s = 0; s < words.file.sentences(); ++s) {
    const std::size_t begin = words.file.offsets[s], count = words.file.offsets[s + 1] - begin;
    const auto part = [&](const auto& all) {
      io::Json list = io::Json::array();
      for (const auto& one : std::span(all).subspan(begin, count)) list.push_back(one);
      return list;
    };
    write(io::json_text({{"id", std::to_string(s)},
                         {"words", part(words.file.words)},
                         {"label", part(words.truth)},
                         {"prediction", part(words.predicted)},
                         {"probabilities", part(predictions.probabilities)}}) +
          "\n");
  }
}

}  // namespace bertrand::tasks
