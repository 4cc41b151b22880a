// Tables, held in memory and on the disk.
#include "bert/tasks/table_rows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>

#include "io/signals.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

const text::Tokenizer& tokenizer() {
  static const text::Tokenizer one(
      text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n##d\n", "vocab"));
  return one;
}

class Setting {
 public:
  support::TemporaryDirectory directory;

  Setting() { std::filesystem::create_directory(place()); }
  std::filesystem::path place() const { return directory / "run"; }
  TaskData read(const Task& task, const std::string& text, TaskFiles files = {}) const {
    files.train = directory / "train.tsv";
    support::write_text(files.train, text);
    return read_task_data(task, files, {}, tokenizer(), 6);
  }
  /// A file for each of these places: all in memory, all on the disk, and some.
  std::vector<TaskFiles> places() const {
    return {
        {}, {.spill = {.directory = place(), .held_bytes = 1}}, {.spill = {.directory = place(), .held_bytes = 90}}};
  }
};

struct Examples {
  std::vector<std::vector<std::int32_t>> ids, targets;
  std::vector<std::int32_t> first_lengths;
  bool operator==(const Examples&) const = default;
};

Examples examples_of(const TaskData& data) {
  const EncodedDataset& encoded = data.train->encoded;
  const std::int64_t each = encoded.targets.size() / encoded.size();
  Examples all;
  for (std::int64_t i = 0; i < encoded.size(); ++i) {
    const auto ids = encoded.ids(i), targets = encoded.targets_at(i * each, each);
    all.ids.emplace_back(ids.begin(), ids.end());
    all.targets.emplace_back(targets.begin(), targets.end());
    all.first_lengths.push_back(encoded.first_length(i));
    encoded.let_go();
  }
  return all;
}

std::string many_rows() {
  std::string text = "text\ttext_pair\tlabel\n";
  for (int i = 0; i < 40; ++i)
    text += std::string(1, "abc"[i % 3]) + " bd\ta c b\t" + (i % 4 == 0 ? "pear" : i % 5 == 0 ? "fig" : "apple") + "\n";
  return text;
}

}  // namespace

TEST_CASE("a table to train on gives the same examples from memory and from the disk, and holds none of its texts") {
  const Setting setting;
  const Examples held = examples_of(setting.read(custom_task({}), many_rows()));
  REQUIRE(held.ids.size() == 40);
  CHECK(held.ids[1] == std::vector<std::int32_t>{2, 6, 6, 3, 5, 3});  // b b, and a c b without its last two
  CHECK(held.targets[0] == std::vector<std::int32_t>{2});
  CHECK(held.targets[1] == std::vector<std::int32_t>{0});
  CHECK(held.targets[5] == std::vector<std::int32_t>{1});
  for (const TaskFiles& files : setting.places()) {
    const TaskData data = setting.read(custom_task({}), many_rows(), files);
    CHECK(examples_of(data) == held);
    CHECK(data.train->encoded.token_ids.is_spilled() == !files.spill.directory.empty());
    CHECK(data.train->encoded.cut == 40);
    CHECK(data.train->dataset.examples.size() == 0);
    CHECK(data.labels.names() == std::vector<std::string>{"apple", "fig", "pear"});
  }
  CHECK(std::filesystem::is_empty(setting.place()));
}

TEST_CASE("scores and several labels a row are learnt as they are written") {
  const Setting setting;
  for (const TaskFiles& files : setting.places()) {
    const Examples scores =
        examples_of(setting.read(custom_task({.kind = Kind::regression}), "text\tlabel\na\t1.5\nb\t-0.25\n", files));
    CHECK(std::bit_cast<float>(scores.targets[0][0]) == 1.5f);
    CHECK(std::bit_cast<float>(scores.targets[1][0]) == -0.25f);
    const Examples several =
        examples_of(setting.read(custom_task({.kind = Kind::multi_label}), "text\tlabel\na\ty,x\nb\t\nc\ty\n", files));
    CHECK(several.targets == std::vector<std::vector<std::int32_t>>{{1, 1}, {0, 0}, {0, 1}});
  }
}

TEST_CASE("held-out rows keep texts, labels and lines and are gone from those to train on") {
  const Setting setting;
  for (TaskFiles files : setting.places()) {
    files.held_out = {.share = 0.2, .seed = 7};
    const TaskData data = setting.read(custom_task({}), many_rows(), files);
    const ExampleList& taken = data.evaluation->dataset.examples;
    const auto targets = data.evaluation->encoded.targets.all();
    REQUIRE(taken.size() == 8);
    CHECK(data.train->encoded.size() == 32);
    CHECK(data.evaluation->encoded.size() == 8);
    std::vector<std::int64_t> lines;
    taken.for_each([&](std::size_t, const Example& example) { lines.push_back(example.line); });
    CHECK(lines == std::vector<std::int64_t>{6, 9, 11, 25, 29, 37, 38, 41});  // which rows these are must never change
    taken.for_each([&](std::size_t number, const Example& example) {
      const auto i = static_cast<int>(example.line) - 2;
      CHECK(example.id == std::to_string(i));
      CHECK(example.text_a == std::string(1, "abc"[i % 3]) + " bd");
      CHECK(data.labels.name(static_cast<std::size_t>(targets[number])) == example.label);
    });
  }
}

TEST_CASE("a table to evaluate or to predict is spilled with its texts, and they are the same") {
  const Setting setting;
  struct Seen {
    std::vector<std::string> cells;
    std::vector<std::int32_t> ids, targets;
    bool operator==(const Seen&) const = default;
  };
  const auto see = [](const Split& split) {
    Seen seen;
    split.dataset.examples.for_each([&](std::size_t number, const Example& e) {
      CHECK(number * 4 == seen.cells.size());
      for (const std::string& cell : {e.id, e.text_a, e.text_b.value_or("none"), e.label.value_or("none")})
        seen.cells.push_back(cell);
    });
    for (const std::int32_t id : split.encoded.token_ids.all()) seen.ids.push_back(id);
    for (const std::int32_t target : split.encoded.targets.all()) seen.targets.push_back(target);
    return seen;
  };
  support::write_text(setting.directory / "dev.tsv", many_rows());
  support::write_text(setting.directory / "test.tsv", "text\ttext_pair\na\tb\n\"c\ta b\n");
  std::vector<Seen> evaluated, predicted;
  for (TaskFiles files : setting.places()) {
    files.evaluation = setting.directory / "dev.tsv";
    files.prediction = setting.directory / "test.tsv";
    const TaskData data = setting.read(custom_task({}), many_rows(), files);
    evaluated.push_back(see(*data.evaluation));
    predicted.push_back(see(*data.prediction));
    CHECK(evaluated.back() == evaluated.front());
    CHECK(predicted.back() == predicted.front());
    CHECK((data.text_bytes() == 0) == (files.spill.held_bytes == 1));
  }
  REQUIRE(evaluated[0].cells.size() == 160);
  CHECK(evaluated[0].cells[4] == "1");
  CHECK(evaluated[0].cells[5] == "b bd");
  CHECK(evaluated[0].cells[7] == "apple");
  CHECK(evaluated[0].targets.size() == 40);
  CHECK(evaluated[0].targets[5] == 1);
  CHECK(predicted[0].cells == std::vector<std::string>{"0", "a", "b", "none", "1", "\"c", "a b", "none"});
  CHECK(predicted[0].targets.empty());
}

TEST_CASE("a bad row to train on is named by its line, and all of them are if they are kept apart") {
  const Setting setting;
  const std::string file = (setting.directory / "train.tsv");
  const auto refusal = [&](const std::string& text, const TaskFiles& files) {
    return support::refusal(Failure::input, [&] { setting.read(named_task("sst2"), text, files); });
  };
  for (TaskFiles files : setting.places()) {
    CHECK(refusal("sentence\tlabel\na\t1\nb\t2\n", files) == file + ":3: label: expected one of {0,1}, got \"2\"");
    CHECK(refusal("sentence\tlabel\na\t1\nb\n", files) == file + ":3: columns: expected 2 as in line 1, got 1");
    CHECK(refusal("sentence\tlabel\na\t1\n \t1\n", files) == file + ":3: text: expected some text, got none");
    CHECK(refusal("sentence\tlabel\na\t1\n\xE2\x80\x8B\t1\n", files) ==
          file + ":3: text: expected at least one token, got none");
    files.on_bad = OnBadRow::keep;
    const TaskData data = setting.read(
        named_task("sst2"), "sentence\tlabel\n\xE2\x80\x8B\t1\nb\t2\n \t1\na\n\xE2\x80\x8B\t3\na\t1\nc\t0\n", files);
    CHECK(data.bad_rows() == std::vector<std::string>{file + ":2: text: expected at least one token, got none",
                                                      file + ":3: label: expected one of {0,1}, got \"2\"",
                                                      file + ":4: text: expected some text, got none",
                                                      file + ":5: columns: expected 2 as in line 1, got 1",
                                                      file + ":6: label: expected one of {0,1}, got \"3\""});
    CHECK(examples_of(data).targets == std::vector<std::vector<std::int32_t>>{{1}, {0}});
    CHECK(refusal("sentence\tlabel\n\xE2\x80\x8B\t1\nb\t2\n", files) ==
          file + ":2: text: expected at least one token, got none");
    CHECK(setting.read(named_task("sst2"), "sentence\tlabel\na\t1\nb\t2\n", files).train->encoded.size() == 1);
    CHECK(refusal("sentence\tlabel\n \t1\n\t0\n", files) == file + ":2: text: expected some text, got none");
  }
}

TEST_CASE("a model of three outputs is refused for a task of two labels, also if it names none") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "dev.tsv",
                      "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t0\t0\ta\tb\n0\t0\t0\tb\tc\n");
  for (const char* name : {"LABEL_", ""})
    CHECK(support::refusal(Failure::model, [&] {
            std::vector<std::string> labels;
            for (int i = 0; i < 3; ++i) labels.push_back(name + std::to_string(i));
            read_task_data(named_task("mrpc"), {.evaluation = directory / "dev.tsv"},
                           {.config = "model/config.json", .problem_type = "", .labels = labels}, tokenizer(), 8);
          }) == "model/config.json: id2label: expected the 2 labels of --task mrpc, got 3");
}

TEST_CASE("data of other labels than a model's is refused with the file that names the model's") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "dev.csv", "text,label\na,x\nb,y\n");
  const ModelOutputs model{.config = "model/config.json", .problem_type = "", .labels = {"LABEL_0"}};
  CHECK(support::refusal(Failure::model, [&] {
          read_task_data(custom_task({.columns = {.text = "text", .label = "label"}}),
                         {.evaluation = directory / "dev.csv"}, model, tokenizer(), 8);
        }) == "model/config.json: id2label: expected the data's labels {x,y}, got {LABEL_0}");
}

TEST_CASE("pairs of texts in any file need a model that tells the texts apart") {
  const support::TemporaryDirectory directory;
  const std::filesystem::path pairs = directory / "pairs.tsv", single = directory / "one.csv";
  support::write_text(pairs, "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t1\t2\ta\tb\n0\t1\t2\tb\ta\n");
  support::write_text(single, "text,label\na,0\nb,1\n");
  const auto refusal = [&](const Task& task, const TaskFiles& files) {
    const ModelOutputs model{.config = "model/config.json", .problem_type = "", .labels = {"0", "1"}, .token_types = 1};
    return support::refusal(Failure::model, [&] { read_task_data(task, files, model, tokenizer(), 8); });
  };
  for (const TaskFiles& files : {TaskFiles{.train = pairs}, {.evaluation = pairs}, {.prediction = pairs}})
    CHECK(refusal(named_task("mrpc"), files) ==
          "model/config.json: type_vocab_size: expected 2 for pairs of texts, got 1");
  CHECK(refusal(custom_task({.columns = {.text = "text", .label = "label"}}), {.evaluation = single}) == "");
}

TEST_CASE("F1 is of the task's second label whatever its number is in the model") {
  const support::TemporaryDirectory directory;
  support::write_text(directory / "dev.tsv",
                      "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t0\t0\ta\tb\n0\t0\t0\tb\tc\n");
  const auto read = [&](const std::vector<std::string>& labels) {
    return read_task_data(named_task("mrpc"), {.evaluation = directory / "dev.tsv"},
                          {.config = "model/config.json", .problem_type = "", .labels = labels}, tokenizer(), 8);
  };
  CHECK(read({"1", "0"}).task.positive == 0);
  CHECK(read({"0", "1"}).task.positive == 1);
  CHECK(read({"1", "0"}).evaluation->encoded.targets_at(0, 2)[0] == 0);  // the row whose Quality is 1
}

TEST_CASE("rows are held out of those that are as they should be, and QQP's broken rows are left out of both") {
  const Setting setting;
  TaskFiles files;
  files.on_bad = OnBadRow::keep;
  files.held_out = {.share = 0.4, .seed = 1};
  const TaskData data = setting.read(custom_task({}), "text\tlabel\na\t\na\tx\nb\tx\n \tx\nc\ty\na\ty\nb\tx\n", files);
  CHECK(data.bad_rows().size() == 2);
  CHECK(data.train->encoded.size() == 3);
  CHECK(data.evaluation->encoded.size() == 2);
  const TaskData pairs =
      setting.read(named_task("qqp"),
                   "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\n4\t8\t9\ta\tb\t0\n5\t8\t9\ta\tb\t1\n",
                   {.on_bad = OnBadRow::keep});
  CHECK(pairs.bad_rows().empty());
  CHECK(pairs.train->dataset.skipped.size() == 1);
  CHECK(pairs.warnings().find("train.tsv:2: columns: left out 1 row with a wrong number of them") != std::string::npos);
  CHECK(pairs.train->encoded.size() == 2);
}

TEST_CASE("labels that columns are named after are learnt though no row has them") {
  const Setting setting;
  const TaskData data = setting.read(custom_task({.kind = Kind::multi_label, .columns = {.label = "x,y,z"}}),
                                     "text\tz\ty\tx\na\t0\t0\t1\nb\t1\t0\t1\n");
  CHECK(data.labels.names() == std::vector<std::string>{"x", "y", "z"});
  CHECK(examples_of(data).targets == std::vector<std::vector<std::int32_t>>{{1, 0, 0}, {1, 0, 1}});
}

TEST_CASE(
    "bad rows to predict, also those with other columns, are numbered among the others in the order of the file") {
  const Setting setting;
  TaskFiles files{.prediction = setting.directory / "new.tsv", .on_bad_prediction = OnBadRow::keep};
  support::write_text(files.prediction, "text\na\nb\tc\n \nc\n");
  const TaskData data = setting.read(custom_task({}), "text\tlabel\na\tx\nb\ty\n", files);
  const std::vector<BadRow>& bad = data.prediction->dataset.bad_rows;
  REQUIRE(bad.size() == 2);
  CHECK(bad[0].line == 3);
  CHECK(bad[0].id == "1");
  CHECK(bad[1].line == 4);
  CHECK(bad[1].id == "2");
  std::vector<std::string> ids;
  data.prediction->dataset.examples.for_each([&](std::size_t, const Example& example) { ids.push_back(example.id); });
  CHECK(ids == std::vector<std::string>{"0", "3"});
}

TEST_CASE("a file of bad rows alone is refused with what is wrong with the first one") {
  const Setting setting;
  for (const OnBadRow on_bad : {OnBadRow::fail, OnBadRow::hint, OnBadRow::keep}) {
    TaskFiles files{.prediction = setting.directory / "new.tsv", .on_bad_prediction = on_bad};
    support::write_text(files.prediction, "text\nb\tc\n\tc\n");
    CHECK(support::refusal(Failure::input, [&] {
            setting.read(custom_task({}), "text\tlabel\na\tx\nb\ty\n", files);
          }) == files.prediction.string() + ":2: columns: expected 1 as in line 1, got 2");
  }
}

TEST_CASE("labels that are few for their rows are not doubted, and one byte or one cut text is told") {
  const Setting setting;
  const auto read = [&](const std::string& rows) { return setting.read(custom_task({}), "text\tlabel\n" + rows); };
  const TaskData two = read("a\tx\nb\ty\n");
  CHECK(two.warnings() == "");
  CHECK(two.remarks() == "");
  CHECK(read("a\tx\nb\ty\nc\tz\na\tx\nb\ty\nc\tz\n").warnings() == "");
  CHECK(read("a\tx\nb\ty\nc\tz\na\tx\nb\ty\n").warnings().find("3 labels in 5 rows") != std::string::npos);
  CHECK(read("a\t1.5 mg\nb\t2 mg\n").warnings() == "");  // no numbers
  CHECK(setting.read(custom_task({.kind = Kind::multi_label}), "text\tlabel\na\tx\nb\ty\nc\tz\n").warnings() == "");
  const CustomColumns numbered{.text = "0", .label = "1", .header = false};
  CHECK(setting.read(custom_task({.columns = numbered}), "\"\"\"a\"\"\"\tx\nb\ty\n")
            .warnings()
            .find("train.tsv:1: a cell is quoted") != std::string::npos);
  CHECK(read("a\xFF\tx\nb\ty\n").warnings().find(":2: text: dropped 1 byte") != std::string::npos);
  const TaskData kept =
      setting.read(custom_task({}), "text\tlabel\na\tx\nb\ty\nc\tz\xFF\n", {.on_bad = OnBadRow::keep});
  CHECK(kept.warnings().find(":4: text: found 1 byte") != std::string::npos);
  CHECK(read("a b c a b\tx\nb\ty\n").remarks().find(": 1 of 2 examples cut") != std::string::npos);
}

TEST_CASE("rows of each class that are trained on are counted, the most frequent first and ten of them at most") {
  const Setting setting;
  std::string rows = "text\tlabel\n";
  for (int label = 0; label < 12; ++label)
    for (int row = 0; row < (label == 7 ? 3 : label == 11 ? 2 : 1); ++row)
      rows += "a\tl" + std::to_string(label + 10) + "\n";
  CHECK(setting.read(custom_task({}), rows).rows_of_classes() ==
        "l17 3, l21 2, l10 1, l11 1, l12 1, l13 1, l14 1, l15 1, l16 1, l18 1, … 2 more");
  const std::string two = "text\tlabel\na\t1\na\t1\na\t1\na\t1\nb\t0\n";
  CHECK(setting.read(custom_task({}), two, {.held_out = {.share = 0.25}}).rows_of_classes() == "1 3, 0 1");
  CHECK(setting.read(custom_task({.kind = Kind::regression}), two).rows_of_classes() == "");
}

TEST_CASE("a number that is no class of classes that are numbers may be a score") {
  const Setting setting;
  const auto refusal = [&](const Task& task, const std::string& dev) {
    support::write_text(setting.directory / "dev.tsv", "text\tlabel\nc\t" + dev + "\n");
    const std::string line = support::refusal(Failure::input, [&] {
      setting.read(task, "text\tlabel\na\t0.5\nb\t-2\n", {.evaluation = setting.directory / "dev.tsv"});
    });
    return line.substr(line.rfind(": label: "));
  };
  const std::string expected = ": label: expected one of {-2,0.5}, got ";
  CHECK(refusal(custom_task({}), "4.800") == expected + "\"4.800\"; hint: --kind regression learns numbers");
  CHECK(refusal(custom_task({}), "high") == expected + "\"high\"");
  CHECK(refusal(custom_task({.kind = Kind::multi_label}), "3") ==
        expected + "\"3\"; hint: --label-separator is what stands between the labels of a row");
}

TEST_CASE("a model whose labels are only numbered gets the names of the task or of the file to evaluate") {
  const support::TemporaryDirectory directory;
  using Names = std::vector<std::string>;
  const Names numbered = {"LABEL_0", "LABEL_1"};
  const auto names_of = [&](const Task& task, const TaskFiles& files, const Names& labels) {
    return read_task_data(task, files, {.config = "model/config.json", .problem_type = "", .labels = labels},
                          tokenizer(), 8)
        .labels.names();
  };
  support::write_text(directory / "pairs.tsv", "index\tsentence1\tsentence2\n0\ta\tb\n");
  CHECK(names_of(named_task("rte"), {.prediction = directory / "pairs.tsv"}, numbered) ==
        Names{"entailment", "not_entailment"});
  support::write_text(directory / "new.tsv", "text\na\n");
  CHECK(names_of(custom_task({}), {.prediction = directory / "new.tsv"}, numbered) == numbered);
  support::write_text(directory / "dev.tsv", "text\tlabel\na\ty\nb\tx\n");
  CHECK(names_of(custom_task({}), {.evaluation = directory / "dev.tsv"}, numbered) == Names{"x", "y"});
  support::write_text(directory / "one.tsv", "text\tlabel\na\ty\n");  // enough for a model that has names
  CHECK(names_of(custom_task({}), {.evaluation = directory / "one.tsv"}, {"y", "x"}) == Names{"y", "x"});
}

TEST_CASE("a last row with other columns is kept with its number, and rows that leave too few labels are named") {
  const Setting setting;
  TaskFiles files{.prediction = setting.directory / "new.tsv", .on_bad_prediction = OnBadRow::keep};
  support::write_text(files.prediction, "text\na\nb\tc\n");
  const TaskData data = setting.read(custom_task({}), "text\tlabel\na\tx\nb\ty\n", files);
  const std::vector<BadRow>& bad = data.prediction->dataset.bad_rows;
  REQUIRE(bad.size() == 1);
  CHECK(bad[0].line == 3);
  CHECK(bad[0].id == "1");
  CHECK(support::refusal(Failure::input, [&] {
          setting.read(custom_task({}), "text\tlabel\na\t\nb\tx\n", {.on_bad = OnBadRow::keep});
        }) == (setting.directory / "train.tsv").string() + ":2: label: expected one, got an empty cell");
}

TEST_CASE("reading a table ends when the process is asked to leave, and so does a walk over its rows") {
  const Setting setting;
  const std::filesystem::path file = setting.directory / "table.tsv";
  support::write_text(file, many_rows());
  const Task task = custom_task({});
  const auto read = [&] { return read_rows(task, file, OnBadRow::fail); };
  const Table table = read();
  const io::LeaveRequest leave;
  const std::string reason = "interrupted while reading a table: nothing was written";
  CHECK(support::refusal(Failure::interrupted, read).starts_with(reason));
  CHECK(support::refusal(Failure::interrupted, [&] {
          walk_examples(task, table, true, OnBadRow::fail, [](const Example&) {});
        }).starts_with(reason));
}
