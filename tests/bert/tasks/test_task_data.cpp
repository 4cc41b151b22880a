// What a run learns from and is warned of, of the labels that its own file has.
#include "bert/tasks/task_data.h"

#include <doctest/doctest.h>

#include "support/program.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

const text::Tokenizer& tokenizer() {
  static const text::Tokenizer one(text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\n", "vocab"));
  return one;
}

TaskData read(const Task& task, const std::string& rows, const HeldOut& held_out, const ModelOutputs& model = {}) {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "train.tsv";
  support::write_text(file, "text\tlabel\n" + rows);
  return read_task_data(task, {.train = file, .held_out = held_out}, model, tokenizer(), 8);
}

}  // namespace

TEST_CASE("of rows with several labels the rarest one says where they belong, so that some of it is learnt") {
  std::string rows;
  for (int row = 0; row < 40; ++row) {
    const std::string common = row % 2 == 0 ? "a" : "b";
    rows += "a\t" + (row == 3 || row == 17 ? "all," + common + ",rare" : row < 5 ? "" : "all," + common) + "\n";
  }
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const TaskData data = read(custom_task({.kind = Kind::multi_label}), rows, {.share = 0.5, .seed = seed});
    std::vector<int> learnt(4), none(2);
    const auto targets = data.train->encoded.targets.all();
    for (std::size_t i = 0; i < targets.size(); ++i) learnt[i % 4] += targets[i];
    CAPTURE(seed);
    CHECK(data.labels.names() == std::vector<std::string>{"a", "all", "b", "rare"});
    CHECK(data.train->encoded.size() == 20);
    CHECK(learnt[3] == 1);
    CHECK(std::abs(learnt[0] - 9) <= 1);
    CHECK(std::abs(learnt[1] - 18) <= 1);
  }
}

TEST_CASE("labels that only the start model has are not doubted") {
  const ModelOutputs model{.config = "model/config.json", .problem_type = "", .labels = {"x", "X", "y", "z"}};
  CHECK(read(custom_task({}), "a\tx\na\ty\na\tx\n", {}, model).warnings() == "");
  const std::string doubted = read(custom_task({}), "a\tx\na\ty\na\tz\n", {}, model).warnings();
  CHECK(doubted.find("train.tsv: 3 labels in 3 rows: is --label-column the right one?\n") != std::string::npos);
}
