// The columns of a table of the user's own that are found by their usual names.
#include <doctest/doctest.h>

#include "bert/tasks/walked_table.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

const std::string kNoLabel =
    "data:1: --label-column: expected a column named label, labels, class, category, intent, target, score, gold_label "
    "or the flag, got ";
const std::string kNoText =
    "data:1: --text-column: expected a column named text, question, sentence, sentence1, text_a, question1, premise or "
    "the flag, got ";

WalkedTable walk(const Task& task, std::string_view bytes, bool needs_label = true) {
  return walk_table(task, parse_table(bytes, "data", TableFormat::tsv, {.header = task.columns.header}), needs_label);
}

template <class Body>
std::string refusal(const Body& body) {
  return support::refusal(Failure::input, body);
}

}  // namespace

TEST_CASE("usual names of columns are found in any case, and in their own first") {
  const auto first = [](std::string_view bytes) { return walk(custom_task({}), bytes).examples.at(0); };
  const Example example = first("ID\tText\tLABEL\tmore\n7\tA\tx\tm\n");
  CHECK(example.id == "7");
  CHECK(example.text_a == "A");
  CHECK(example.label == "x");
  const Example pair = first("Sentence2\tGold_Label\tSentence1\nB\tx\tA\n");
  CHECK(pair.text_a == "A");
  CHECK(pair.text_b == "B");
  CHECK(first("Text\tsentence\tLabel\tlabel\nA\tB\tx\ty\n").text_a == "B");
  CHECK(first("Text\tsentence\tLabel\tlabel\nA\tB\tx\ty\n").label == "y");
}

TEST_CASE("a custom file to predict needs no label column, one to train on does") {
  const Task task = custom_task({});
  CHECK_FALSE(walk(task, "text\nA\n", false).dataset.labelled);
  const std::string_view of_labels = "Category\tClass\nA\tB\n";
  for (const CustomColumns& columns : {CustomColumns{.text = "Class"}, {.text = "Category", .pair = "1"}})
    CHECK_FALSE(walk(custom_task({.columns = columns}), of_labels, false).dataset.labelled);
  CHECK(walk(custom_task({.columns = {.text = "Category"}}), of_labels, false).dataset.labelled);
  CHECK(refusal([&] { walk(task, "text\tfoo\nA\tB\n"); }) == kNoLabel + "{text,foo}");
  CHECK(refusal([&] { walk(custom_task({.columns = {.text = "txt"}}), "text\tlabel\nA\tB\n"); }) ==
        "data:1: --text-column: expected a column \"txt\", got {text,label}; did you mean text?");
  CHECK(refusal([&] { walk(task, "a\tb\tlabel\nA\tB\tC\n"); }) == kNoText + "{a,b,label}");
}

TEST_CASE("a table with other marks between its cells than its name says is told what they should be") {
  for (const std::string row : {"text;label", "text,label"})
    CHECK(refusal([&] { walk(custom_task({}), row + "\nA;B\n"); }) ==
          kNoLabel + "{" + row + "}; hint: a .csv has commas between its cells, a .tsv or .txt has tabs");
  CHECK(refusal([] { walk(custom_task({}), "text\nA\n"); }) == kNoLabel + "{text}");
  CHECK(refusal([] { walk(custom_task({.columns = {.text = "0", .label = "2", .header = false}}), "A\tx\n"); }) ==
        "data:1: --label-column: expected a column \"2\", got 2 columns without names");
}
