#include "bert/tasks/token_file.h"

#include <doctest/doctest.h>

#include "io/error.h"
#include "support/paths.h"
#include "support/program.h"
#include "support/refusal.h"
#include "support/sentences.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

using Texts = std::vector<std::string>;

TokenFile read_as(const std::string& name, std::string_view text, const TokenColumns& columns, bool needs_label,
                  std::vector<std::string>* bad = nullptr) {
  const support::TemporaryDirectory directory;
  support::write_text(directory / name, std::string(text));
  return support::read_token_file(directory / name, columns, needs_label, bad);
}

TokenFile read(std::string_view text, const TokenColumns& columns = {}, bool needs_label = true) {
  return read_as("words.txt", text, columns, needs_label);
}

TokenFile read_json(std::string_view text, bool needs_label = true) {
  return read_as("words.jsonl", text, {}, needs_label);
}

/// From the name of the file on.
std::string refusal(std::string_view text, const TokenColumns& columns = {}) {
  const std::string line = support::refusal(Failure::input, [&] { read(text, columns); });
  return line.substr(std::min(line.find("words.txt"), line.size()));
}

constexpr TokenColumns kRows{.layout = TokenLayout::rows};

}  // namespace

TEST_CASE("columns are cut at TAB if the first word's line has one and else at runs of spaces") {
  const TokenFile file = read("New York\tB-LOC\nis \tO\n\nbig \t O\n");
  CHECK(read("is   O\n\nbig O\n").words == Texts{"is", "big"});
  CHECK(file.words == Texts{"New York", "is", "big"});
  CHECK(file.labels == Texts{"B-LOC", "O", "O"});
  CHECK(file.offsets == std::vector<std::size_t>{0, 2, 3});
  CHECK(file.lines == std::vector<std::int64_t>{1, 2, 4});
  CHECK(file.where(2).ends_with("words.txt:4"));
}

TEST_CASE("the label is the last column or the one of the number") {
  const std::string_view text = "1\tEU\tNNP\tB-ORG\n2\trejects\tVBZ\tO\n";
  CHECK(read(text, {.word = 1}).words == Texts{"EU", "rejects"});
  CHECK(read(text, {.word = 1}).labels == Texts{"B-ORG", "O"});
  CHECK(read(text, {.word = 1, .label = 2}).labels == Texts{"NNP", "VBZ"});
}

TEST_CASE("blank lines and document marks end sentences and no sentence is empty") {
  const TokenFile file = read("\n-DOCSTART- -X- O O\n\na O\n\t\n \n\nb O\n-DOCSTART- O\nc O");
  CHECK(file.words == Texts{"a", "b", "c"});
  CHECK(file.offsets == std::vector<std::size_t>{0, 1, 2, 3});
  CHECK(read("a O\n-DOCSTART- O\nb O\n").words == Texts{"a", "b"});
}

TEST_CASE("comments stand before the words of a sentence and a number sign within it is a word") {
  const TokenFile file = read("# newdoc\n# text = a\na\tO\n# \tO\n#\tO\n\n# text = b\n#\tO\n");
  CHECK(file.words == Texts{"a", "#", "#", "#"});
  CHECK(file.sentences() == 2);
}

TEST_CASE("a number sign that begins a sentence is a word in a file whose columns are cut at spaces") {
  const TokenFile file = read("# newdoc id = 3\n# B-TAG\n\nmetoo I-TAG\n\n# O\nnow O\n");
  CHECK(file.words == Texts{"#", "metoo", "#", "now"});
  CHECK(file.labels == Texts{"B-TAG", "I-TAG", "O", "O"});
  CHECK(file.lines == std::vector<std::int64_t>{2, 4, 6, 7});
  CHECK(file.offsets == std::vector<std::size_t>{0, 1, 2, 4});
  CHECK(refusal("# newdoc\n# text = a\n") == "words.txt:1: words: expected at least one, got none");
}

TEST_CASE("comments of CoNLL-U are no words though they have as many columns as a word's line") {
  CHECK(read("# sent_id = 1\na DT B-NP O\n\n# text = b\n# NN B-NP O\n").words == Texts{"a", "#"});
  CHECK(read("# newdoc\n# newpar\na O\n\n# newpar\n# O\n").words == Texts{"a", "#"});
  CHECK(read("# text =\na DT O\n").words == Texts{"a"});
}

TEST_CASE("lines of CoNLL-U for several words together and for empty nodes are no words") {
  const auto line = [](const std::string& id, const std::string& word, const std::string& label) {
    return id + '\t' + word + '\t' + word + '\t' + label + "\t_\t_\t_\t_\t_\t_\n";
  };
  const std::string text = "# text = du fish\n" + line("1-2", "du", "_") + line("1", "de", "ADP") +
                           line("2", "le", "DET") + line("2.1", "some", "PRON") + line("3", "fish", "NOUN");
  const TokenFile file = read(text, {.word = 1, .label = 3});
  CHECK(file.words == Texts{"de", "le", "fish"});
  CHECK(file.labels == Texts{"ADP", "DET", "NOUN"});
  CHECK(file.lines == std::vector<std::int64_t>{3, 4, 6});
  // Nothing of the kind is in other files.
  CHECK(read(text, {.word = 0, .label = 3}).words == Texts{"1-2", "1", "2", "2.1", "3"});
  CHECK(read("3-2\ta\tO\n1.5\tb\tO\n", {.word = 1}).words == Texts{"a", "b"});
  CHECK(read(line("1-", "a", "O") + line("-2", "b", "O") + line("1-2-3", "c", "O"), {.word = 1, .label = 3}).words ==
        Texts{"a", "b", "c"});
}

TEST_CASE("CRLF and a byte order mark are dropped and what is no UTF-8 is counted") {
  const TokenFile file = read(
      "\xEF\xBB\xBF"
      "a\tO\r\n\r\nb\xFF\tO\r\n");
  CHECK(file.words == Texts{"a", "b"});
  CHECK(file.labels == Texts{"O", "O"});
  CHECK(file.sentences() == 2);
  CHECK(file.invalid.count == 1);
  CHECK(file.invalid.first_line == 3);
}

TEST_CASE("a label that is not UTF-8 is refused, and of its sentence no word is taken") {
  const std::string refused = ": label: expected UTF-8, got other bytes; hint: iconv turns other encodings into UTF-8";
  CHECK(refusal("a O\nb B-caf\xE9\n") == "words.txt:2" + refused);
  std::vector<std::string> bad;
  const TokenFile file = read_as("words.txt", "a b\tO B-\xE9\nc\xFF d\tO P\n", kRows, true, &bad);
  CHECK(file.words == Texts{"c", "d"});
  REQUIRE(bad.size() == 1);
  CHECK(bad[0].ends_with(":1" + refused));
}

TEST_CASE("a label of words that is not UTF-8 is none where labels are not needed") {
  const TokenFile words = read("a\tDT\tO\nb\tN\xE9\tB-\xE9\nc\tN\t\xFF\n", {}, false);
  CHECK(words.words == Texts{"a", "b", "c"});
  CHECK(words.labels == Texts{"O", "", ""});
  CHECK(words.invalid.count == 3);
  TokenColumns rows = kRows;
  rows.label = 1;
  CHECK(read("a b\tO B-\xE9\n", rows, false).labels == Texts{"O", ""});
}

TEST_CASE("bytes that are not UTF-8 part neither words nor sentences") {
  const TokenFile file = read("\xFF# a comment\n\xFF-DOCSTART- O\na \xA0 O\n\xA0\nb\xA0 O \xA0\n");
  CHECK(file.words == Texts{"a", "b"});
  CHECK(file.labels == Texts{"O", "O"});
  CHECK(file.sentences() == 2);
  CHECK(file.invalid.count == 6);
}

TEST_CASE("rows hold words and labels with a space between them") {
  const TokenFile file = read("a b  c\tO P O\nd\tQ\n\n", kRows);
  CHECK(file.words == Texts{"a", "b", "c", "d"});
  CHECK(file.labels == Texts{"O", "P", "O", "Q"});
  CHECK(file.offsets == std::vector<std::size_t>{0, 3, 4});
  CHECK(file.lines == std::vector<std::int64_t>{1, 1, 1, 2});
  CHECK(read("# a\tO P\nb\tQ\n", kRows).words == Texts{"#", "a", "b"});  // it is no comment there
}

TEST_CASE("JSON lines hold lists of words and labels, whatever is said of columns") {
  const std::string_view text =
      "{\"id\": 7, \"tokens\": [\"EU\", \"New York\"], \"ner_tags\": [\"B-ORG\", \"O\"]}\n"
      "{\"tokens\": [\"ran\"], \"ner_tags\": [\"O\"]}\n\n";
  for (const char* name : {"words.jsonl", "words.NDJSON", "words.json"}) {
    const TokenFile file = read_as(name, text, {.layout = TokenLayout::rows, .word = 4}, true);
    CHECK(file.words == Texts{"EU", "New York", "ran"});
    CHECK(file.labels == Texts{"B-ORG", "O", "O"});
    CHECK(file.offsets == std::vector<std::size_t>{0, 2, 3});
    CHECK(file.lines == std::vector<std::int64_t>{1, 1, 2});
  }
  for (const std::string key : {"tags", "pos_tags", "labels"})
    CHECK(read_json("{\"tokens\": [\"a\"], \"" + key + "\": [\"X Y\"]}").labels == Texts{"X Y"});
  CHECK(read_json("{\"tokens\": [\"a\"]}\n{\"tokens\": [\"b\"], \"tags\": [1]}\n", false).labels.empty());
  CHECK(read_json("{\"tokens\": [\"a\"], \"tags\": [\"X\"]}\n", false).labels == Texts{"X"});
}

TEST_CASE("of several keys of labels that of the task is taken, and a file to predict needs none") {
  const std::string several = "{\"tokens\": [\"a\"], \"pos_tags\": [\"X\"], \"ner_tags\": [\"O\"]}\n";
  CHECK(read_as("words.jsonl", several, {.label_key = "ner_tags"}, true).labels == Texts{"O"});
  CHECK(read_as("words.jsonl", several, {.label_key = "pos_tags"}, true).labels == Texts{"X"});
  CHECK(read_json(several, false).labels.empty());
  CHECK(read_json("{\"tokens\": [\"a\"], \"tags\": [3]}\n{\"tokens\": [\"b\"], \"tags\": [1]}\n", false).words ==
        Texts{"a", "b"});
}

TEST_CASE("JSON lines that are no sentences are refused with file and line and what was expected") {
  const auto refusal_of = [](std::string_view text, bool needs_label = true) {
    const std::string line = support::refusal(Failure::input, [&] { read_json(text, needs_label); });
    return line.substr(std::min(line.find("words.jsonl"), line.size()));
  };
  const std::string good = "{\"tokens\": [\"a\"], \"tags\": [\"X\"]}\n", keys = "tags, ner_tags, pos_tags, labels";
  CHECK(refusal_of(good + "{\"tokens\": [\"a\", \"b\"], \"tags\": [\"X\"]}\n") ==
        "words.jsonl:2: labels: expected 2, one for each word, got 1");
  CHECK(refusal_of("{\"tokens\": [\"a\"], \"ner_tags\": [3]}\n") ==
        "words.jsonl:1: ner_tags: expected strings, got 3; hint: write the names of the labels in place of numbers");
  CHECK(refusal_of("{\"tokens\": [1], \"tags\": [\"X\"]}\n") == "words.jsonl:1: tokens: expected strings, got 1");
  CHECK(refusal_of("{\"tokens\": [\"\"], \"tags\": [\"X\"]}\n") ==
        "words.jsonl:1: tokens: expected some text in each, got an empty one");
  CHECK(refusal_of("{\"tokens\": [], \"tags\": []}\n") == "words.jsonl:1: tokens: expected at least one, got none");
  CHECK(refusal_of("{\"tokens\": \"a b\", \"tags\": []}\n") == "words.jsonl:1: tokens: expected a list, got \"a b\"");
  CHECK(refusal_of("{\"tokens\": [\"a\"]}\n") == "words.jsonl:1: labels: expected one of " + keys + ", got none");
  CHECK(refusal_of(good + "{\"tokens\": [\"a\"]}\n") == "words.jsonl:2: tags: expected a list, got none");
  CHECK(refusal_of("{\"tokens\": [\"a\"], \"pos_tags\": [\"X\"], \"ner_tags\": [\"O\"]}\n") ==
        "words.jsonl:1: labels: expected one of " + keys +
            ", got ner_tags and pos_tags; hint: jq -c 'del(.pos_tags)' FILE leaves one out");
  CHECK(refusal_of("\n" + good + " \n[]\n") == "words.jsonl:4: expected a JSON object, got []");
  CHECK(refusal_of("[" + good + "]").starts_with("words.jsonl:1: expected a JSON object in each line, got a list"));
  CHECK(refusal_of("EU B-ORG\n", false).starts_with("words.jsonl:1: "));
}

TEST_CASE("a table of texts is no file of words") {
  CHECK(refusal("text\tlabel\na good film\tpos\na bad one\tneg\n") ==
        "words.txt: words: expected one in each line and blank lines between sentences, got no blank line and texts as "
        "\"a good film\"; hint: is it a table? --task custom; for words and labels in cells --layout rows");
  CHECK(read("1 000\tO\nof\tO\nthem\tO\n").words.size() == 3);
  CHECK(read("1 000\tO\nof\tO\n").words.size() == 2);
  CHECK(read("1 000\tO\n\n2 000\tO\n").words.size() == 2);
}

TEST_CASE("a file to predict may have words alone") {
  CHECK(read("a\n\nb\n", {}, false).labels.empty());
  CHECK(read("a b\n", kRows, false).words == Texts{"a", "b"});
  CHECK(read("a O\n", {.label = 3}, false).labels.empty());
  CHECK(read("1\ta\n2\tb\n", {.word = 1}, false).words == Texts{"a", "b"});
}

TEST_CASE("broken lines are refused with file and line and what was expected") {
  CHECK(refusal("a\tO\nb\n") == "words.txt:2: columns: expected 2 as in line 1, got 1");
  CHECK(refusal("a\tO\nb\tO\tX\n") == "words.txt:2: columns: expected 2 as in line 1, got 3");
  CHECK(refusal("a N O\nb O\n") == "words.txt:2: columns: expected 3 as in line 1, got 2");
  CHECK(refusal("a\tO\nNew YorkB-LOC\n") == "words.txt:2: columns: expected TAB between them as in line 1, got spaces");
  CHECK(refusal("a O\nNew York\tB-LOC\n") ==
        "words.txt:2: columns: expected spaces between them as in line 1, got TAB");
  CHECK(refusal("\nO\n") == "words.txt:2: columns: expected a word and a label, got 1 column");
  CHECK(refusal("a\tO\n\tO\n") == "words.txt:2: word: expected one in column 0, got none");
  CHECK(refusal("a\tO\nb\t\n") == "words.txt:2: label: expected one in column 1, got none");
  CHECK(refusal("a\tB-X O\n") ==
        "words.txt:1: label: expected one without spaces, got \"B-X O\"; hint: TAB alone separates the columns of a "
        "line with "
        "TAB");
  CHECK(refusal("a O\n", {.word = 2}) == "words.txt:1: columns: expected at least 3 for --text-column 2, got 2");
  CHECK(refusal("a O\n", {.word = 1}) ==
        "words.txt:1: columns: expected the label in the last, got the word there, in column 1; hint: --label-column");
  CHECK(refusal("a O\n", {.label = 2}) == "words.txt:1: columns: expected at least 3 for --label-column 2, got 2");
  CHECK(support::refusal(Failure::usage, [] { read("a O\n", {.word = 1, .label = 1}); }) ==
        "--label-column: expected another column than --text-column, got 1 for both");
  CHECK(refusal("# only\n\n") == "words.txt:1: words: expected at least one, got none");
  CHECK(refusal(std::string_view("a\0O\n", 4)).starts_with("words.txt:1:"));
}

TEST_CASE("lines that cannot be used do not say what columns the others have, and nothing but them is refused") {
  const support::TemporaryDirectory directory;
  const std::string path = directory / "words.txt",
                    first = path + ":1: columns: expected a word and a label, got 1 column";
  std::vector<std::string> bad = {"of another file"};
  const auto read_all = [&](const std::string& text) {
    support::write_text(path, text);
    return support::read_token_file(path, {}, true, &bad);
  };
  const TokenFile file = read_all("fish\nred\tO\nblue\tB-X\n");
  CHECK(file.words == Texts{"red", "blue"});
  CHECK(file.labels == Texts{"O", "B-X"});
  CHECK(bad == Texts{"of another file", first});
  bad.pop_back();
  CHECK(support::refusal(Failure::input, [&] { read_all("fish\nred\n"); }) == first);
  CHECK(bad.size() == 3);
  CHECK(support::refusal(Failure::input, [&] { read_all(""); }) == path + ":1: words: expected at least one, got none");
}

TEST_CASE("broken rows are refused with file and line and what was expected") {
  CHECK(refusal("a b\tO O\nc d\tO\n", kRows) == "words.txt:2: labels: expected 2, one for each word, got 1");
  CHECK(refusal("a\tO\n\nb\tO\n", kRows) == "words.txt:2: words: expected a sentence, got an empty line");
  CHECK(refusal("a\tO\n \tO\n", kRows) == "words.txt:2: words: expected at least one in column 0, got none");
  CHECK(refusal("a O\n", kRows) == "words.txt:1: columns: expected a word and a label, got 1 column");
}

TEST_CASE("real files of words have the sentences and words that grep counts") {
  const std::string data = paths::shared + "/data/";
  if (!std::filesystem::exists(data + "ner")) {
    MESSAGE("SKIPPED: no data in " << data);
    return;
  }
  const TokenFile wnut = support::read_token_file(data + "ner/wnut17/train.conll", {}, true);
  CHECK(wnut.sentences() == 3394);
  CHECK(wnut.words.size() == 62730);
  const TokenFile uner =
      support::read_token_file(data + "ner/uner_ewt/en_ewt-ud-dev.iob2", {.word = 1, .label = 2}, true);
  CHECK(uner.sentences() == 2001);
  CHECK(uner.words.size() == 25149);
  const TokenFile wikigold = support::read_token_file(data + "ner/wikigold/wikigold.conll.txt", {}, true);
  CHECK(wikigold.words.size() == 39007);
}

TEST_CASE("a table between commas is no file of words, and a word with a comma is one") {
  CHECK(support::refusal(Failure::input, [] { read_as("words.csv", "word,tag\nEU,B-ORG\n", {}, true); })
            .ends_with("words.csv:1: columns: expected TAB or spaces between word and label, got commas; hint: write a "
                       "word TAB its label a line and a blank line after each sentence"));
  CHECK(read_as("words.csv", ", O\n", {}, true).words == Texts{","});
  CHECK(read_json(R"({"words": ["EU"], "tags": ["O"]})").words == Texts{"EU"});
}
