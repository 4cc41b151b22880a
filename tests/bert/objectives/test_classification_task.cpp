#include "bert/objectives/classification_task.h"

#include <doctest/doctest.h>

#include "bert/tasks/task.h"
#include "support/program.h"

using namespace bertrand;
using namespace bertrand::objectives;

TEST_CASE("samples are rows evenly spread over a table, and all of them if there are no more") {
  const support::TemporaryDirectory directory;
  const text::Tokenizer tokenizer(text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\n", "vocab"));
  std::string rows = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n";
  for (const char* row : {"1\t1\t2\ta\tb", "0\t3\t4\tb\ta", "1\t5\t6\ta a\tb", "0\t7\t8\tb\tb"})
    rows += row + std::string("\n");
  support::write_text(directory / "dev.tsv", rows);
  const ClassificationTask task(
      tasks::read_task_data(tasks::named_task("mrpc"), {.evaluation = directory / "dev.tsv"},
                            {.directory = "", .problem_type = "", .labels = {"0", "1"}}, tokenizer, 8),
      bert::Config{}, tokenizer, {});
  const tasks::Logits outputs{.outputs = 2, .values = {0, 1, 0, 1, 1, 0, 0, 0}};
  const auto texts = [&](std::size_t most) {
    std::vector<std::string> found;
    for (const FineTuningTask::Sample& sample : task.samples(outputs, most))
      found.push_back(sample.text + ", " + sample.truth + ": " + sample.prediction);
    return found;
  };
  const std::vector<std::string> all = {"a | b, 1: 1 73.1 %", "b | a, 0: 1 73.1 %", "a a | b, 1: 0 73.1 %",
                                        "b | b, 0: 0 50.0 %"};
  CHECK(texts(9) == all);
  CHECK(texts(4) == all);
  CHECK(texts(2) == std::vector<std::string>{all[0], all[2]});
  CHECK(texts(0).empty());
}
