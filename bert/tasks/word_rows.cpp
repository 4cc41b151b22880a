// eval_rows.jsonl, sentence by sentence.
#include "bert/tasks/word_rows.h"

#include "io/json.h"

namespace bertrand::tasks {

void write_word_rows(TokenTask task, const JudgedWords& words, const WordPredictions& predictions,
                     const std::function<void(std::string_view line)>& write) {
  write(io::json_text({{"task", io::name_in(token_tasks(), task)},
                       {"kind", "words"},
                       {"rows", words.list.sentences()},
                       {"labels", words.names.names()}}) +
        "\n");
  std::size_t begin = 0;
  words.list.for_each([&](std::size_t s, const TokenFile& sentence) {
    const auto part = [&](const auto& all) {
      io::Json list = io::Json::array();
      for (const auto& one : all.subspan(begin, sentence.words.size())) list.push_back(one);
      return list;
    };
    write(io::json_text({{"id", std::to_string(s)},
                         {"words", sentence.words},
                         {"label", part(words.truth)},
                         {"prediction", part(words.predicted)},
                         {"probabilities", part(predictions.probabilities.all())}}) +
          "\n");
    begin += sentence.words.size();
  });
}

}  // namespace bertrand::tasks
