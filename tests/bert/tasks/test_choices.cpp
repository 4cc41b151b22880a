// Multiple choice: which columns are read, what their labels mean, and what the model reads.
#include "bert/tasks/choices.h"

#include <doctest/doctest.h>

#include "bert/tasks/task_data.h"
#include "bert/tasks/walked_table.h"
#include "support/program.h"
#include "support/refusal.h"
#include "support/small_choices.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

using Names = std::vector<std::string>;

WalkedTable rows_of(const Task& task, std::string_view bytes, TableFormat format, bool needs_label = true) {
  const TableOptions options{.header = task.layouts.empty() && task.columns.header,
                             .list_separator = task.label_separator};
  return walk_table(task, parse_table(bytes, "data", format, options), needs_label);
}

std::string refused(const Task& task, std::string_view bytes, TableFormat format, Failure failure = Failure::input) {
  return support::refusal(failure, [&] { rows_of(task, bytes, format); });
}

Task custom(const CustomColumns& columns) { return custom_task({.columns = columns}); }

Names labels_of(const WalkedTable& walked) {
  Names labels;
  for (const Example& example : walked.examples) labels.push_back(example.label.value_or("none"));
  return labels;
}

struct Setting {
  support::TemporaryDirectory directory;
  text::Tokenizer tokenizer{text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\nd\n", "vocab")};

  TaskData read(const Task& task, const TaskFiles& files, int max_length = 16) const {
    return read_task_data(task, files, {.config = "model/config.json", .problem_type = "", .labels = {}}, tokenizer,
                          max_length);
  }
  std::string file(const std::string& name, const std::string& text) const {
    support::write_text(directory / name, text);
    return directory / name;
  }
};

}  // namespace

TEST_CASE("SWAG's columns, with labels and in its test form") {
  const Task task = named_task("swag");
  CHECK(task.has_choices());
  const WalkedTable walked = rows_of(task, support::small_choices(3), TableFormat::csv);
  REQUIRE(walked.examples.size() == 3);
  const Example& example = walked.examples[1];
  CHECK(example.id == "1");
  CHECK(example.text_a == "the bird");
  CHECK(example.text_b == "one");
  CHECK(example.choices == Names{"green fish.", "blue fish.", "green bird.", "red bird."});
  CHECK(labels_of(walked) == Names{"ending0", "ending3", "ending2"});
  CHECK(walked.dataset.labels == task.labels);
  CHECK(example.second_text() == "one | green fish. | blue fish. | green bird. | red bird.");
  const WalkedTable test = rows_of(task, support::small_choices(3, false), TableFormat::csv, false);
  REQUIRE(test.examples.size() == 3);
  CHECK(test.examples[1].choices == example.choices);
  CHECK_FALSE(test.dataset.labelled);
}

TEST_CASE("SWAG is read without its numbers of rows too, as it is on the hub") {
  std::string table = support::small_choices(3), without;
  for (std::size_t at = 0; at < table.size(); at = table.find('\n', at) + 1)
    without += table.substr(table.find(',', at) + 1, table.find('\n', at) - table.find(',', at));
  const Task task = named_task("swag");
  const WalkedTable whole = rows_of(task, table, TableFormat::csv), hub = rows_of(task, without, TableFormat::csv);
  REQUIRE(hub.examples.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(hub.examples[i].text_a == whole.examples[i].text_a);
    CHECK(hub.examples[i].text_b == whole.examples[i].text_b);
    CHECK(hub.examples[i].choices == whole.examples[i].choices);
    CHECK(hub.examples[i].label == whole.examples[i].label);
  }
}

TEST_CASE("a table of choices whose first row would be lost as a header is refused") {
  const std::string table = support::small_choices(3);
  CHECK(refused(named_task("swag"), table.substr(table.find('\n') + 1), TableFormat::csv) ==
        "data:1: header: expected the names of columns, got the label \"0\"; hint: --task custom --no-header reads a "
        "table that has none");
  CHECK(refused(custom({.text = "0", .choices = "1,2", .label = "3"}), "a,b,c,A\nd,e,f,B\n", TableFormat::csv)
            .starts_with("data:1: header: expected the names of columns, got the label \"A\"; hint: --no-header"));
}

TEST_CASE("choices stand in columns of one's own, and the label is a name, a number from 0 or a letter") {
  const Task task = custom({.text = "q", .choices = "x,y,z", .label = "right"});
  CHECK(labels_of(rows_of(task, "q,x,y,z,right\na,1,2,3,y\nb,4,5,6,2\nc,7,8,9,A\n", TableFormat::csv)) ==
        Names{"y", "z", "x"});
  // A name comes first.
  const Task numbers = custom({.text = "q", .choices = "1,2", .label = "right"});
  CHECK(labels_of(rows_of(numbers, "q,1,2,right\na,b,c,1\n", TableFormat::csv)) == Names{"1"});
  const Task letters = custom({.text = "q", .choices = "B,A", .label = "right"});
  CHECK(labels_of(rows_of(letters, "q,A,B,right\na,b,c,A\n", TableFormat::csv)) == Names{"A"});
  // Then numbers, or letters, that are none of them mean nothing: they may count from 1.
  for (const auto& [choices, label] : {std::pair("1,2", "0"), {"C,D", "A"}})
    CHECK(refused(custom({.text = "q", .choices = choices, .label = "right"}),
                  std::string("q,") + choices + ",right\na,b,c," + label + "\n", TableFormat::csv)
              .starts_with("data:2: label: expected one of {"));
  const Task without_names = custom({.text = "0", .choices = "1,2", .label = "3", .header = false});
  const WalkedTable walked = rows_of(without_names, "a\tb\tc\t1\n", TableFormat::tsv);
  CHECK(walked.dataset.labels == Names{"0", "1"});
  CHECK(labels_of(walked) == Names{"1"});
}

TEST_CASE("choices are the items of a list in JSON") {
  const Task task = custom({.choices = "choices"});
  const WalkedTable walked = rows_of(task,
                                     "{\"text\": \"q\", \"choices\": [\"a, b\", \"c\", \"d\"], \"label\": 1}\n"
                                     "{\"text\": \"r\", \"choices\": [\"e\", \"f\", \"g\"], \"label\": \"C\"}\n",
                                     TableFormat::jsonl);
  CHECK(walked.dataset.labels == Names{"0", "1", "2"});
  CHECK(walked.examples[0].choices == Names{"a, b", "c", "d"});
  CHECK(labels_of(walked) == Names{"1", "2"});
}

TEST_CASE("choices are read as CommonsenseQA and ARC have them, with labels of their own") {
  const Task task = custom({.choices = "choices"});
  const WalkedTable walked =
      rows_of(task,
              R"({"question": "q", "choices": {"label": ["A", "B"], "text": ["x", "y"]}, "answerKey": "B"})"
              "\n"
              R"({"question": "r", "choices": {"label": ["1", "2"], "text": ["z", "w"]}, "answerKey": "1"})"
              "\n",
              TableFormat::jsonl);
  CHECK(walked.dataset.labels == Names{"0", "1"});
  CHECK(walked.examples[1].choices == Names{"z", "w"});
  CHECK(labels_of(walked) == Names{"1", "0"});
  CHECK(refused(task, R"({"question": "q", "choices": {"label": ["A"], "text": ["x", "y"]}, "answerKey": "A"})",
                TableFormat::jsonl) == "data:1: choices: label: expected one for each of 2 texts, got [\"A\"]");
  CHECK(refused(task, R"({"question": "q", "choices": {"label": ["A", "A"], "text": ["x", "y"]}, "answerKey": "A"})",
                TableFormat::jsonl) ==
        "data:1: choices: label: expected a different one for each text, got [\"A\",\"A\"]");
  CHECK(refused(task, R"({"question": "q", "choices": {"text": ["x", 5]}, "answerKey": "A"})", TableFormat::jsonl) ==
        "data:1: choices: text: expected a list of texts, got [\"x\",5]");
  CHECK(refused(task, R"({"question": "q", "choices": [["x"], "y"], "answerKey": "A"})", TableFormat::jsonl) ==
        "data:1: choices: expected a list of texts, or {\"text\": [], \"label\": []}, got \"[[\\\"x\\\"],\\\"y\\\"]\"");
}

TEST_CASE("what is wrong with choices is said with its line") {
  const Task task = custom({.text = "q", .choices = "x,y", .label = "right"}), lists = custom({.choices = "choices"});
  const std::string header = "q,x,y,right\na,b,c,0\n";
  CHECK(refused(task, header + "a,b,c,2\n", TableFormat::csv) ==
        "data:3: label: expected one of {x,y}, its number from 0 or its letter, got \"2\"");
  CHECK(refused(task, header + "a,b,c,\n", TableFormat::csv) == "data:3: label: expected one, got an empty cell");
  CHECK(refused(task, header + "a,b,,1\n", TableFormat::csv) == "data:3: choice: expected some text, got none");
  const std::string first = "{\"text\": \"q\", \"choices\": [\"a\", \"b\"], \"label\": 1}\n";
  CHECK(refused(lists, first + "{\"text\": \"q\", \"choices\": [\"a\"], \"label\": 0}\n", TableFormat::jsonl) ==
        "data:2: choices: expected 2 as in the first row, got 1");
  CHECK(refused(lists, first + "{\"text\": \"q\", \"choices\": [\"a\", \" \"], \"label\": 0}\n", TableFormat::jsonl) ==
        "data:2: choices: expected some text in each, got none");
  CHECK(refused(lists, first + "{\"text\": \"q\", \"choices\": [\"\", \"a\"], \"label\": 0}\n", TableFormat::jsonl) ==
        "data:2: choices: expected some text in each, got none");
  CHECK(refused(lists, "{\"text\": \"q\", \"choices\": [\"a\"], \"label\": 0}\n", TableFormat::jsonl) ==
        "data:1: --choice-columns: expected a list of at least two texts, got 1");
  for (const char* none : {"[]", "null", "{\"text\": []}"})
    CHECK(refused(lists, std::string("{\"text\": \"q\", \"choices\": ") + none + ", \"label\": 0}\n",
                  TableFormat::jsonl) == "data:1: --choice-columns: expected a list of at least two texts, got 0");
  CHECK(refused(lists, first + "{\"text\": \"q\", \"choices\": [\"a\", \"\\n\"], \"label\": 0}\n",
                TableFormat::jsonl) == "data:2: choices: expected some text in each, got none");
  CHECK(refused(lists, first + "{\"text\": \"q\", \"choices\": \"a\\u001fb\", \"label\": 0}\n", TableFormat::jsonl) ==
        "data:2: choices: expected 2 as in the first row, got 1");
  CHECK(refused(lists, first + "{\"text\": \"q\", \"choices\": [\"a\", \"b\"], \"label\": [0]}\n",
                TableFormat::jsonl) == "data:2: label: expected one label, got a list");
  CHECK(rows_of(lists, "{\"text\": \"q\", \"choices\": [\"a\", \"b\\u001fc\"], \"label\": 0}\n", TableFormat::jsonl)
            .examples[0]
            .choices == Names{"a",
                              "b\x1f"
                              "c"});
  CHECK(
      refused(custom({.text = "q", .choices = "1,2", .label = "right"}), "q,e,e,right\na,b,c,0\n", TableFormat::csv) ==
      "data:1: --choice-columns: expected columns with different names, got \"e\" twice");
  CHECK(refused(custom({.text = "q", .choices = "x,w", .label = "right"}), header, TableFormat::csv) ==
        "data:1: --choice-columns: expected a column \"w\", got {q,x,y,right}");
}

TEST_CASE("a column is read as one thing, and choices are of one kind") {
  const std::string rows = "q,x,y,right\na,b,c,0\n";
  for (const char* choices : {"x,x", "q,x", "x,right", "p,x"})
    CHECK(
        refused(
            custom(
                {.text = "q", .pair = choices == std::string("p,x") ? "x" : "", .choices = choices, .label = "right"}),
            choices == std::string("p,x") ? "q,x,p,right\na,b,c,0\n" : rows, TableFormat::csv, Failure::usage)
            .starts_with("--choice-columns: expected different columns, got "));
  CHECK(support::refusal(Failure::usage, [] {
          custom_task({.kind = Kind::regression, .columns = {.choices = "x,y"}});
        }) == "--choice-columns: expected with --kind classification, got another kind");
}

TEST_CASE("each choice becomes a sequence behind its text, and the targets are their numbers") {
  const Setting setting;
  const Task task = custom({.text = "q", .pair = "begins", .choices = "x,y", .label = "right"});
  const std::string train = setting.file("train.csv", "q,begins,x,y,right\na,b,c,d,y\nb,a,d,c c c c c c,x\n");
  const TaskData data = setting.read(task, {.train = train}, 10);
  CHECK(data.outputs() == 1);
  CHECK(data.sequences() == 2);
  CHECK(data.labels.names() == Names{"x", "y"});
  const EncodedDataset& encoded = data.train->encoded;
  const auto ids = [&](std::int64_t i) { return std::vector(encoded.ids(i).begin(), encoded.ids(i).end()); };
  REQUIRE(encoded.size() == 4);
  CHECK(ids(0) == std::vector<std::int32_t>{2, 5, 3, 6, 7, 3});  // [CLS] a [SEP] b c [SEP]
  CHECK(ids(1) == std::vector<std::int32_t>{2, 5, 3, 6, 8, 3});
  CHECK(encoded.first_length(1) == 3);
  CHECK(ids(3) == std::vector<std::int32_t>{2, 6, 3, 5, 7, 7, 7, 7, 7, 3});  // one c less
  CHECK(std::vector(encoded.targets.all().begin(), encoded.targets.all().end()) == std::vector<std::int32_t>{1, 0});
  CHECK(data.remarks() == train + ": 1 of 4 choices cut to --max-seq-length\n");
  CHECK(data.columns() == "q, begins, x, y; right");
  CHECK(data.rows_of_classes() == "x 1, y 1");
}

TEST_CASE("the files of a run have as many choices, and a model tells their texts apart") {
  const Setting setting;
  const Task task = custom({.choices = "choices"});
  const std::string two = setting.file("two.jsonl", "{\"text\": \"a\", \"choices\": [\"b\", \"c\"], \"label\": 0}\n"),
                    three = setting.file("three.jsonl",
                                         "{\"text\": \"a\", \"choices\": [\"b\", \"c\", \"d\"], \"label\": 0}\n");
  CHECK(support::refusal(Failure::input, [&] { setting.read(task, {.train = two, .evaluation = three}); }) ==
        three + ":1: --choice-columns: expected the choices {0,1} as in " + two + ", got {0,1,2}");
  // Choices have their numbers by their places, so files that name them in another order do not go together.
  const Task numbers = custom({.text = "0", .choices = "1,2", .label = "3"});
  const std::string ab = setting.file("ab.csv", "q,a,b,label\na,b,c,0\n"),
                    ba = setting.file("ba.csv", "q,b,a,label\na,b,c,0\n");
  CHECK(support::refusal(Failure::input, [&] { setting.read(numbers, {.train = ab, .prediction = ba}); }) ==
        ba + ":1: --choice-columns: expected the choices {a,b} as in " + ab + ", got {b,a}");
  CHECK(setting.read(task, {.prediction = three}).sequences() == 3);
  CHECK(support::refusal(Failure::model, [&] {
          read_task_data(task, {.train = two},
                         {.config = "model/config.json", .problem_type = "", .labels = {}, .token_types = 1},
                         setting.tokenizer, 16);
        }) == "model/config.json: type_vocab_size: expected 2 for pairs of texts, got 1");
}

TEST_CASE("a row of which one choice cannot be read is left out with all its choices") {
  const Setting setting;
  const Task task = custom({.text = "q", .choices = "x,y", .label = "right"});
  const std::string file = setting.file("rows.csv", "q,x,y,right\na,b,\xC2\xAD,0\nb,c,d,1\n");  // a soft hyphen alone
  const TaskData data = setting.read(task, {.prediction = file, .on_bad_prediction = OnBadRow::keep});
  CHECK(data.prediction->encoded.size() == 2);
  CHECK(data.prediction->dataset.examples.size() == 1);
  CHECK(data.bad_rows() == Names{file + ":2: choices: expected at least one token, got none"});
  // What is wrong with the first row says nothing of the others.
  const std::string list = setting.file(
      "rows.jsonl", "{\"text\": \"a\", \"choices\": null}\n{\"text\": \"a\", \"choices\": [\"b\", \"c\"]}\n");
  const TaskData lists =
      setting.read(custom({.choices = "choices"}), {.prediction = list, .on_bad_prediction = OnBadRow::keep});
  CHECK(lists.prediction->encoded.size() == 2);
  CHECK(lists.bad_rows() == Names{list + ":1: --choice-columns: expected a list of at least two texts, got 0"});
}

TEST_CASE("a part of the rows is held out with all choices of each") {
  const Setting setting;
  const std::string file = setting.file("train.csv", support::small_choices(20));
  const TaskData data = setting.read(named_task("swag"), {.train = file, .held_out = {.share = 0.25, .seed = 1}});
  REQUIRE(data.evaluation);
  CHECK(data.train->encoded.size() == 4 * 15);
  CHECK(data.evaluation->encoded.size() == 4 * 5);
  std::size_t kept = 0;
  data.evaluation->dataset.examples.for_each([&](std::size_t, const Example& example) {
    kept += example.choices.size();
    CHECK(example.label);
  });
  CHECK(kept == 20);
}
