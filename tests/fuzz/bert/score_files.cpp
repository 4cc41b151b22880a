// The files that evaluate scores: answers, null odds, tagged words, judgements; and behind the first NUL a ranking.
#include "bert/tasks/score_files.h"

#include <cmath>

#include "fuzz/fuzz.h"

using namespace bertrand;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const fuzz::Directory directory;
  const std::string_view text = fuzz::text_of(data, size), first = text.substr(0, text.find('\0'));
  const auto file = directory.write("a", first),
             run = directory.write("b", text.substr(std::min(size, first.size() + 1)));
  const auto check = [](const tasks::FileScores& scores) {
    for (const auto& [name, value] : scores.figures) fuzz::require(!std::isinf(value), "a figure");
  };
  fuzz::read_or_refuse([&] { tasks::read_answers(file); });
  fuzz::read_or_refuse([&] { tasks::read_null_odds(file); });
  for (const auto& task : tasks::token_tasks())
    fuzz::read_or_refuse([&] { check(tasks::score_tokens_file(file, task.second)); });
  fuzz::read_or_refuse([&] { check(tasks::score_ranking_files(file, run)); });
  return 0;
}
