#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bit>

#include "bert/tasks/walked_table.h"
#include "io/error.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

using Names = std::vector<std::string>;
using Numbers = std::vector<std::int32_t>;

WalkedTable dataset_of(const Task& task, std::string_view bytes, bool needs_label = true,
                       TableFormat format = TableFormat::tsv) {
  const TableOptions options{.header = task.layouts.empty() && task.columns.header,
                             .skip_bad_rows = task.skip_ragged_rows};
  return walk_table(task, parse_table(bytes, "data", format, options), needs_label);
}

template <class Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

void check_example(const Example& example, const std::string& id, const std::string& a, const std::string& b,
                   const std::string& label) {
  CHECK(example.id == id);
  CHECK(example.text_a == a);
  CHECK(example.text_b.value_or("") == b);
  CHECK(example.label.value_or("") == label);
}

}  // namespace

TEST_CASE("CoLA's training file has no header, its test file has one and no labels") {
  const Task task = named_task("cola");
  const WalkedTable train = dataset_of(task, "gj04\t1\t\tFirst.\ngj04\t0\t*\tSecond.\n");
  REQUIRE(train.examples.size() == 2);
  check_example(train.examples[1], "1", "Second.", "", "0");
  CHECK(train.dataset.labelled);
  const WalkedTable test = dataset_of(task, "index\tsentence\n0\tFirst.\n7\tSecond.\n", false);
  REQUIRE(test.examples.size() == 2);
  check_example(test.examples[1], "7", "Second.", "", "");
  CHECK_FALSE(test.dataset.labelled);
}

TEST_CASE("the columns of each GLUE task, with labels and in its test form") {
  struct Case {
    const char *task, *labelled, *unlabelled, *id, *a, *b, *label;
  };
  const std::vector<Case> cases = {
      {"sst2", "sentence\tlabel\nA\t1\n", "index\tsentence\n0\tA\n", "0", "A", "", "1"},
      {"mrpc", "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n1\t8\t9\tA\tB\n",
       "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n0\t8\t9\tA\tB\n", "0", "A", "B", "1"},
      {"stsb", "index\tg\tf\ty\to\ts\ts\tsentence1\tsentence2\tscore\n4\t-\t-\t-\t-\t-\t-\tA\tB\t3.25\n",
       "index\tg\tf\ty\to\ts\ts\tsentence1\tsentence2\n4\t-\t-\t-\t-\t-\t-\tA\tB\n", "4", "A", "B", "3.25"},
      {"rte", "index\tsentence1\tsentence2\tlabel\n4\tA\tB\tentailment\n", "index\tsentence1\tsentence2\n4\tA\tB\n",
       "4", "A", "B", "entailment"},
      {"qnli", "index\tquestion\tsentence\tlabel\n4\tA\tB\tnot_entailment\n", "index\tquestion\tsentence\n4\tA\tB\n",
       "4", "A", "B", "not_entailment"},
      {"wnli", "index\tsentence1\tsentence2\tlabel\n4\tA\tB\t1\n", "index\tsentence1\tsentence2\n4\tA\tB\n", "4", "A",
       "B", "1"},
      {"mnli",
       "index\ti\ti\tg\tp\tp\tp\tp\tsentence1\tsentence2\tlabel1\tgold_label\n4\t-\t-\t-\t-\t-\t-\t-"
       "\tA\tB\tx\tneutral\n",
       "index\ti\ti\tg\tp\tp\tp\tp\tsentence1\tsentence2\n4\t-\t-\t-\t-\t-\t-\t-\tA\tB\n", "4", "A", "B", "neutral"},
      {"qqp", "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n4\t8\t9\tA\tB\t0\n",
       "id\tquestion1\tquestion2\n4\tA\tB\n", "4", "A", "B", "0"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.task);
    const Task task = named_task(c.task);
    const WalkedTable labelled = dataset_of(task, c.labelled);
    REQUIRE(labelled.examples.size() == 1);
    check_example(labelled.examples[0], c.id, c.a, c.b, c.label);
    CHECK(labelled.examples[0].line == 2);
    const WalkedTable unlabelled = dataset_of(task, c.unlabelled, false);
    REQUIRE(unlabelled.examples.size() == 1);
    check_example(unlabelled.examples[0], c.id, c.a, c.b, "");
    CHECK(message_of([&] { dataset_of(task, c.unlabelled); }) ==
          fmt::format("data:1: label: expected a file of task {} with labels, got its test form without them", c.task));
  }
}

TEST_CASE("XNLI trains on three columns and evaluates on the rows of one language") {
  const Task task = named_task("xnli");
  const WalkedTable train = dataset_of(task, "premise\thypo\tlabel\nA\tB\tcontradictory\n");
  check_example(train.examples.at(0), "0", "A", "B", "contradiction");
  const WalkedTable dev =
      dataset_of(task,
                 "language\tgold_label\t-\t-\t-\t-\tsentence1\tsentence2\tx\nfr\tneutral\t-\t-\t-\t-\tX\tY\tx\n"
                 "zh\tentailment\t-\t-\t-\t-\tA\tB\tx\n");
  REQUIRE(dev.examples.size() == 1);
  check_example(dev.examples[0], "0", "A", "B", "entailment");
}

TEST_CASE("QQP's broken rows are left out and counted") {
  const WalkedTable train =
      dataset_of(named_task("qqp"), "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\n4\t8\t9\tA\tB\t0\n");
  CHECK(train.examples.size() == 1);
  REQUIRE(train.dataset.skipped.size() == 1);
  CHECK(train.dataset.skipped[0].line == 2);
}

TEST_CASE("an empty question of QQP is one, as everywhere") {
  const WalkedTable train = dataset_of(
      named_task("qqp"), "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n1\t2\t3\tA\t\t0\n4\t8\t9\tA\tB\t0\n");
  REQUIRE(train.examples.size() == 2);
  check_example(train.examples[0], "1", "A", "", "0");
}

TEST_CASE("a table of another width says which widths the task knows") {
  CHECK(message_of([] { dataset_of(named_task("mrpc"), "a\tb\n1\t2\n"); }) ==
        "data:1: columns: expected 5 for task mrpc, got 2; hint: --task custom reads other tables");
  CHECK(message_of([] {
          dataset_of(named_task("mnli"), "a\tb\n1\t2\n");
        }).starts_with("data:1: columns: expected 11 and more or 10 for task mnli, got 2;"));
}

TEST_CASE("a table of GLUE's width with columns in another order is refused") {
  for (const char* task : {"rte", "qnli", "wnli"})
    CHECK(
        message_of([&] { dataset_of(named_task(task), "sentence1\tsentence2\tlabel\tidx\nA\tB\t1\t0\n", false); }) ==
        fmt::format("data:1: columns: expected those of GLUE for task {}, the first of them index, got \"sentence1\"; "
                    "hint: --task custom reads other tables",
                    task));
}

TEST_CASE("a label outside the set names file, line and the set") {
  const Task task = named_task("sst2");
  const WalkedTable data = dataset_of(task, "sentence\tlabel\nA\t1\nB\t2\n");
  const LabelSet labels(task.labels);
  CHECK(message_of([&] { data.targets(task, labels, 1); }) == "data:3: label: expected one of {0,1}, got \"2\"");
  CHECK(data.targets(task, labels, 0) == Numbers{1});
}

TEST_CASE("an empty text, an empty label and a file without rows are refused") {
  const Task task = named_task("sst2");
  CHECK(message_of([&] { dataset_of(task, "sentence\tlabel\n \t1\n"); }) ==
        "data:2: text: expected some text, got none");
  CHECK(message_of([&] { dataset_of(task, "sentence\tlabel\nA\t\n"); }) ==
        "data:2: label: expected one, got an empty cell");
  CHECK(message_of([&] { dataset_of(task, "sentence\tlabel\n"); }) ==
        "data:1: rows: expected at least one example, got none");
  CHECK(message_of([&] { dataset_of(task, ""); }) == "data:1: rows: expected at least one example, got none");
}

TEST_CASE("a score must be a finite number") {
  const Task task = named_task("stsb");
  const std::string row = "i\tg\tf\ty\to\ts\ts\ta\tb\tscore\n0\t-\t-\t-\t-\t-\t-\tA\tB\t";
  for (const auto& [text, value] :
       {std::pair("4.750", 4.75f), std::pair("1e-50", 0.0f), std::pair("+1.5", 1.5f), std::pair("-1e-400", 0.0f)}) {
    const Numbers targets = dataset_of(task, row + text + "\n").targets(task, {}, 0);
    REQUIRE(targets.size() == 1);
    CHECK(std::bit_cast<float>(targets[0]) == value);
  }
  for (const char* bad : {"nan", "inf", "4,5", "high", "1e50", "+-1", "++1", "1e-50x"}) {
    const WalkedTable data = dataset_of(task, row + bad + "\n");
    CHECK(message_of([&] { data.targets(task, {}, 0); }) ==
          fmt::format("data:2: label: expected a finite number, got \"{}\"", bad));
  }
}

TEST_CASE("a custom table is read by the usual names, by given names, and by numbers") {
  check_example(dataset_of(custom_task({}), "category,text\nc,A\n", true, TableFormat::csv).examples.at(0), "0", "A",
                "", "c");
  check_example(dataset_of(custom_task({}), "id\tsentence1\tsentence2\tlabel\n9\tA\tB\tc\n").examples.at(0), "9", "A",
                "B", "c");
  check_example(dataset_of(custom_task({}), "gloss\tlabel\nA\tc\n").examples.at(0), "0", "A", "", "c");
  for (const char* second : {"sentence", "passage"})
    check_example(dataset_of(custom_task({}), fmt::format("{}\tquestion\tlabel\nB\tA\tc\n", second)).examples.at(0),
                  "0", "A", "B", "c");
  check_example(dataset_of(custom_task({.columns = {.text = "x", .pair = "y", .label = "z"}}), "y\tz\tx\nB\tc\tA\n")
                    .examples.at(0),
                "0", "A", "B", "c");
  const Task numbered = custom_task({.columns = {.text = "3", .label = "1", .id = "0", .header = false}});
  check_example(dataset_of(numbered, "7\tc\ta\tA\n").examples.at(0), "7", "A", "", "c");
}

TEST_CASE("a column is there once, and is not two things at a time") {
  CHECK(message_of([] { dataset_of(custom_task({}), "text\tlabel\ttext\nA\tx\tB\n"); }) ==
        "data:1: columns: expected one of the name \"text\", got two; hint: a number names one of them");
  CHECK(dataset_of(custom_task({}), "text\tlabel\tother\tother\nA\tx\t\t\n").examples.size() == 1);
  const auto message = [](const CustomColumns& columns) {
    return message_of([&] { dataset_of(custom_task({.columns = columns}), "text\tlabel\tmore\nA\tx\tB\n"); });
  };
  CHECK(message({.text = "label"}) ==
        "--text-column, --label-column: expected different columns, got label of data for both");
  CHECK(message({.text = "2", .label = "more"}) ==
        "--text-column, --label-column: expected different columns, got more of data for both");
  CHECK(message({.pair = "label"}) ==
        "--text-pair-column, --label-column: expected different columns, got label of data for both");
  CHECK(message({.text = "text", .pair = "0"}) ==
        "--text-column, --text-pair-column: expected different columns, got text of data for both");
  CHECK(message({.text = "text", .pair = "more", .label = "label", .id = "text"}) == "no error");
  CHECK(message_of([] {
          dataset_of(custom_task({.columns = {.text = "1", .label = "1", .header = false}}), "A\tx\n");
        }) == "--text-column, --label-column: expected different columns, got 1 of data for both");
}

TEST_CASE("a list of JSON is several labels, and neither one nor a text") {
  const auto message = [](const CustomOptions& options, std::string_view line) {
    return message_of([&] { dataset_of(custom_task(options), line, true, TableFormat::jsonl); });
  };
  const std::string lists = R"({"text": "A", "label": ["x", "z"], "more": ["y"]})";
  CHECK(message({.kind = Kind::multi_label}, lists) == "no error");
  const std::string one = "data:1: label: expected one label, got a list; hint: --kind multi-label takes several";
  CHECK(message({}, lists) == one);
  CHECK(message({.kind = Kind::regression}, R"({"text": "A", "label": [1]})") == one);
  CHECK(message({.kind = Kind::multi_label}, R"({"text": ["A"], "label": ["x"]})") ==
        "data:1: text: expected a text, got a list");
  CHECK(message_of([] { custom_task({.kind = Kind::multi_label, .label_separator = ""}); }) ==
        "--label-separator: expected some text, got none");
  CHECK(message_of([] { custom_task({.kind = Kind::multi_label, .label_separator = "\xA6"}); }) ==
        "--label-separator: expected UTF-8, got \"\xA6\"");
  CHECK(message_of([] { custom_task({.label_separator = ";"}); }) ==
        "--label-separator: expected with --kind multi-label, got another kind");
}

TEST_CASE("members of JSON lines that are no cells are refused if they are read") {
  const auto message = [](std::string_view line) {
    return message_of([&] { dataset_of(custom_task({.kind = Kind::multi_label}), line, true, TableFormat::jsonl); });
  };
  CHECK(message(R"({"text": "A", "label": ["x"], "meta": {"b": 1}, "by": ["Smith, J."], "spans": [[1, 2]]})") ==
        "no error");
  const std::string expected = ": expected a string, a number or a list of them without the label separator, got ";
  CHECK(message(R"({"text": {"b": 1}, "label": ["x"]})") == "data:1: text" + expected + R"("{\"b\":1}")");
  CHECK(message(R"({"text": "A", "label": [["x"]]})") == "data:1: label" + expected + R"("[[\"x\"]]")");
  CHECK(message(R"({"text": "A", "label": ["x,y"]})") == "data:1: label" + expected + R"("[\"x,y\"]")");
  CHECK(message(R"({"text": "A", "label": ["x"], "id": {}})") == "data:1: id" + expected + R"("{}")");
}

TEST_CASE("columns of 0 and 1 are labels with their names") {
  const Task task = custom_task({.kind = Kind::multi_label, .columns = {.label = "toxic, insult,threat"}});
  const WalkedTable data = dataset_of(task, "id\ttext\ttoxic\tthreat\tinsult\n7\tA\t1\t0\t1.0\n8\tB\t0\t0\tFalse\n");
  const LabelSet labels = data.labels(task);
  CHECK(labels.names() == Names{"insult", "threat", "toxic"});
  CHECK(data.targets(task, labels, 0) == Numbers{1, 0, 1});
  CHECK(data.targets(task, labels, 1) == Numbers{0, 0, 0});
  CHECK(data.examples.front().id == "7");
  CHECK(dataset_of(task, "text\nA\n", false).examples.size() == 1);
  check_example(dataset_of(task, "text\ttoxic\tthreat\tinsult\nA\t0\t1\t0\n", false).examples.at(0), "0", "A", "",
                "threat");  // a file to predict may have them, too
  const auto message = [&](const Task& of, std::string_view bytes) {
    return message_of([&] { dataset_of(of, bytes).labels(of); });
  };
  CHECK(message(task, "text\ttoxic\tthreat\tinsult\nA\t1\t-1\t0\n") == "data:2: threat: expected 0 or 1, got \"-1\"");
  CHECK(message(task, "text\ttoxic\tthreat\nA\t1\t1\n") ==
        "data:1: --label-column: expected a column \"insult\", got {text,toxic,threat}");
  CHECK(message(custom_task({.kind = Kind::multi_label}), "text\tlabel\nA\t1,0\nB\t0,0\n") ==
        "data:1: label: expected the names of the labels that a text has, got {0,1}; hint: --label-column A,B takes "
        "columns of 0 and 1 with these names; labels that are called so need other names");
  CHECK(message(custom_task({.kind = Kind::multi_label}), "text\tlabel\nA\t\n") ==
        "data:1: label: expected at least 1 different ones in the file, got {}");
}

TEST_CASE("labels are learnt from the training file in order, integers by value") {
  const Task task = custom_task({});
  CHECK(dataset_of(task, "text\tlabel\nA\tpear\nB\tapple\nC\tpear\n").labels(task).names() == Names{"apple", "pear"});
  CHECK(dataset_of(task, "text\tlabel\nA\t10\nB\t9\nC\t1\n").labels(task).names() == Names{"1", "9", "10"});
  CHECK(message_of([&] { dataset_of(task, "text\tlabel\nA\tx\nB\tx\n").labels(task); }) ==
        "data:1: label: expected at least 2 different ones in the file, got {x}");
  CHECK(learn_labels(named_task("rte"), {}, "data").names() == Names{"entailment", "not_entailment"});
  CHECK(learn_labels(named_task("stsb"), {}, "data").empty());
}

TEST_CASE("several labels a row, none among them") {
  const Task task = custom_task({.kind = Kind::multi_label, .label_separator = ";"});
  const WalkedTable data = dataset_of(task, "text\tlabels\nA\tb; a\nB\t\nC\tc\n");
  const LabelSet labels = data.labels(task);
  CHECK(labels.names() == Names{"a", "b", "c"});
  CHECK(data.targets(task, labels, 0) == Numbers{1, 1, 0});
  CHECK(data.targets(task, labels, 1) == Numbers{0, 0, 0});
}

TEST_CASE("a label set finds names, knows placeholders, and is shortened in messages") {
  const LabelSet labels(Names{"b", "a"});
  CHECK(labels.find("a") == 1);
  CHECK_FALSE(labels.find("c"));
  CHECK(labels.same_names(LabelSet(Names{"a", "b"})));
  CHECK_FALSE(labels.same_names(LabelSet(Names{"a", "c"})));
  CHECK(LabelSet(Names{"LABEL_0", "LABEL_1"}).placeholders());
  CHECK_FALSE(LabelSet(Names{"LABEL_0", "LABEL_x"}).placeholders());
  CHECK_THROWS_AS(LabelSet(Names{"a", "a"}), Error);
  CHECK(in_braces({"1", "2", "3", "4", "5", "6", "7", "8", "9", "10"}) == "{1,2,3,4,5,6,7,8,… 2 more}");
}

TEST_CASE("a model's label names stay if they cover the data's, and placeholders give way") {
  const LabelSet data(Names{"a", "b"}), reversed(Names{"b", "a"}), more(Names{"c", "b", "a"}), other(Names{"x", "y"});
  const LabelSet placeholders(Names{"LABEL_0", "LABEL_1"}), numbers(Names{"0", "1"});
  const auto choose_labels = [](const LabelSet& names, const LabelSet& model, bool training) {
    return tasks::choose_labels(names, model, training, "m/config.json");
  };
  CHECK(choose_labels(data, reversed, true).names() == reversed.names());
  CHECK(choose_labels(data, more, false).names() == more.names());
  CHECK(choose_labels(data, placeholders, false).names() == data.names());
  CHECK(choose_labels(data, {}, true).names() == data.names());
  CHECK(choose_labels(data, other, true).names() == data.names());
  CHECK(choose_labels(numbers, other, false).names() == numbers.names());
  const LabelSet twelve(Names{"LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3", "LABEL_4", "LABEL_5", "LABEL_6", "LABEL_7",
                              "LABEL_8", "LABEL_9", "LABEL_10", "LABEL_11"});
  CHECK(choose_labels(LabelSet::sorted(twelve.names()), twelve, false).names() == twelve.names());
  CHECK(choose_labels(LabelSet(Names{"LABEL_0"}), placeholders, false).names() == placeholders.names());
  CHECK(choose_labels(LabelSet(Names{"0", "2"}), more, false).names() == Names{"0", "1", "2"});
  CHECK(message_of([&] { choose_labels(LabelSet(Names{"a"}), placeholders, false); }) ==
        "m/config.json: id2label: expected the data's labels {a}, got {LABEL_0,LABEL_1}");
  CHECK(choose_labels({}, placeholders, false).names() == placeholders.names());
  CHECK(message_of([&] { choose_labels(data, other, false); }) ==
        "m/config.json: id2label: expected the data's labels {a,b}, got {x,y}");
}

TEST_CASE("an unknown task is answered with the known ones") {
  CHECK(message_of([] { named_task("mprc"); }) ==
        "--task: expected one of cola, sst2, mrpc, stsb, rte, qnli, wnli, mnli, qqp, xnli, swag or custom, got mprc; "
        "did you "
        "mean mrpc?");
}

TEST_CASE("labels that only begin with a number, or are numbers in part, are in order of their bytes") {
  CHECK(LabelSet::sorted({"2nd", "10th", "1st"}).names() == Names{"10th", "1st", "2nd"});
  CHECK(LabelSet::sorted({"b", "2", "10"}).names() == Names{"10", "2", "b"});
  CHECK(LabelSet::sorted({"b", "a", "b"}).names() == Names{"a", "b"});
}

TEST_CASE("outputs are renamed where the data has other names than a model that has names of its own") {
  const LabelSet data(Names{"a", "b"}), other(Names{"x", "y"}), placeholders(Names{"LABEL_0", "LABEL_1"});
  CHECK(renames_outputs(data, other));
  CHECK(renames_outputs(LabelSet(Names{"1", "2"}), other));
  CHECK_FALSE(renames_outputs(data, LabelSet(Names{"b", "a"})));
  CHECK_FALSE(renames_outputs(data, placeholders));
  CHECK_FALSE(renames_outputs(LabelSet(Names{"0", "1"}), other));
  CHECK_FALSE(renames_outputs(placeholders, other));
  CHECK_FALSE(renames_outputs(LabelSet(Names{"a", "b", "c"}), other));
  CHECK(choose_labels(data, {}, false, "m/config.json").names() == data.names());  // a model without names
}

TEST_CASE("two columns of 0 and 1 are two labels, and the column that is left is the text") {
  const Task task = custom_task({.kind = Kind::multi_label, .columns = {.label = "toxic,insult"}});
  const WalkedTable data = dataset_of(task, "insult\tgloss\ttoxic\n1\tA\t0\n");
  check_example(data.examples.at(0), "0", "A", "", "insult");
  CHECK(data.targets(task, data.labels(task), 0) == Numbers{1, 0});
}

TEST_CASE("one label that rows have or not can be learnt") {
  const Task several = custom_task({.kind = Kind::multi_label});
  CHECK(dataset_of(several, "text\tlabel\nA\tx\nB\t\n").labels(several).names() == Names{"x"});
}

TEST_CASE("several label columns are of several labels alone, and must have names that the separator does not cut") {
  const auto message = [](const CustomOptions& options, const char* bytes) {
    return message_of([&] { dataset_of(custom_task(options), bytes); });
  };
  CHECK(message({.columns = {.label = "a,b"}}, "text\ta\tb\nA\t1\t0\n") ==
        "data:1: --label-column: expected a column \"a,b\", got {text,a,b}");
  CHECK(message({.kind = Kind::multi_label, .columns = {.text = "0", .label = "1,2", .header = false}}, "A\t1\t0\n") ==
        "--label-column: expected one for a table without a header, got 1,2");
  CHECK(message({.kind = Kind::multi_label, .columns = {.label = "1,2"}}, "text\tx,y\tz\nA\t1\t0\n")
            .starts_with("data:1: --label-column: expected names without the label separator, got "));
}

TEST_CASE("a score is no label") {
  LabelNames names;
  add_labels(named_task("stsb"), {.text_a = "A", .label = "1.5"}, names);
  CHECK(names.empty());
}
