#include "bert/tasks/token_data.h"

#include <doctest/doctest.h>

#include <cmath>

#include "bert/tasks/word_rows.h"
#include "io/error.h"
#include "support/program.h"
#include "support/refusal.h"
#include "support/sentences.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

using Labels = std::vector<std::int32_t>;

struct Setting {
  support::TemporaryDirectory directory;
  text::Tokenizer tokenizer{text::Vocabulary::parse("[UNK]\n[MASK]\n[CLS]\n[SEP]\na\nb\nc\nd\ne\n##s\n", "vocab.txt")};
  TokenOptions options{.task = TokenTask::ner, .windows = {.max_length = 6, .overlap = 2}};
  std::vector<std::string> model_labels = {};

  std::filesystem::path file(const std::string& name, const std::string& text) const {
    support::write_text(directory / name, text);
    return directory / name;
  }
  TokenData read(const TaskFiles& files) const {
    return read_token_data(options, files, {.config = "model/config.json", .problem_type = "", .labels = model_labels},
                           tokenizer);
  }
};

constexpr const char* kTrain = "a B-X\nbss B-X\nc O\n\nd I-X\n\xE2\x80\x8B O\n";

Labels targets_of(const TokenData& data) {
  const auto targets = data.train->windows.targets.all();
  return {targets.begin(), targets.end()};
}

}  // namespace

TEST_CASE("the first piece of a word has its label and the labels are those of the training file in order") {
  const Setting setting;
  const TokenData data = setting.read({.train = setting.file("train", kTrain)});
  CHECK(data.labels.names() == std::vector<std::string>{"B-X", "I-X", "O"});
  CHECK(data.train->common.share == 0.4F);
  // [CLS] a b ##s ##s [SEP], [CLS] ##s ##s c [SEP], [CLS] d [SEP]
  CHECK(targets_of(data) == Labels{-1, 0, 0, -1, -1, -1, -1, -1, -1, 2, -1, -1, 1, -1});
  CHECK(data.common()->label == 0);
  CHECK(data.train->without_pieces == 1);
  CHECK(data.train->words == 5);
  CHECK(data.train->sentences == 2);
  CHECK(data.remarks().find("sentences longer than --max-seq-length, cut into windows: 1 of 2\n") != std::string::npos);
  CHECK(data.remarks().find("words without a token: 1 of 5; nothing is learnt of them") != std::string::npos);
}

TEST_CASE("labels of entities that continue nothing are counted with the first line and the most frequent pair") {
  Setting setting;
  const std::filesystem::path train = setting.file("train", "a I-X\nb I-X\nc O\n\nd B-X\ne I-Y\n\na O\nb I-X\n"),
                              dev = setting.file("dev", "a B-X\nb I-Y\n");
  const std::string of_train = train.string() +
                               ":1: labels: 3 of the file continue no entity of their type, the first here, most often "
                               "O before I-X (2); each counts as the beginning of one\n";
  CHECK(setting.read({.train = train, .evaluation = dev}).remarks() ==
        of_train + dev.string() +
            ":2: labels: 1 of the file continue no entity of their type, the first here, most often B-X before I-Y "
            "(1); each counts as the beginning of one\n");
  CHECK(setting.read({.train = train, .held_out = {.share = 0.4}}).remarks() == of_train);  // of both parts, once
  CHECK(setting.read({.train = setting.file("legal", "a B-X\nb I-X\nc O\n")}).remarks() == "");
  setting.options.task = TokenTask::pos;
  CHECK(setting.read({.train = train, .evaluation = dev}).remarks() == "");
}

TEST_CASE("all pieces of a word may have its label where no second entity begins") {
  Setting setting;
  setting.options.label_all_pieces = true;
  const TokenData data = setting.read({.train = setting.file("train", kTrain)});
  // Each piece has it once, in the window where it has most context.
  CHECK(targets_of(data) == Labels{-1, 0, 0, 1, -1, -1, -1, -1, 1, 2, -1, -1, 1, -1});
  const TokenData other = setting.read({.train = setting.file("other", "as B-Y\nb B-X\n")});
  CHECK(targets_of(other) == Labels{-1, 1, 1, 0, -1});  // there is no I-Y
}

TEST_CASE("the labels of a model stay and a label that is none of them is refused") {
  Setting setting;
  setting.model_labels = {"O", "B-X", "I-X", "B-Y"};
  CHECK(setting.read({.train = setting.file("train", kTrain)}).labels.names() == setting.model_labels);
  const auto refusal = [&](const TaskFiles& files) {
    const std::string line = support::refusal(Failure::input, [&] { setting.read(files); });
    return line.substr(line.rfind('/') + 1);
  };
  CHECK(refusal({.evaluation = setting.file("dev", "a O\nb B-Z\n")}) ==
        "dev:2: label: expected one of {O,B-X,I-X,B-Y}, got \"B-Z\"");
  CHECK(refusal({.evaluation = setting.file("dev", "a\nb\n")})
            .starts_with("dev:1: columns: expected a word and a label"));
  CHECK(setting.read({.prediction = setting.file("new", "a B-Z\n")}).prediction->labels.size() == 0);
  CHECK(refusal({.prediction = setting.file("new", "\n\xE2\x80\x8B\n")}) ==
        "new:2: words: expected at least one of which the tokenizer leaves a token, got none");
  setting.model_labels = {};
  CHECK(refusal({.train = setting.file("one", "a O\nb O\n")}) ==
        "one:1: label: expected at least 2 different ones in the file, got {O}");
  CHECK(refusal({.evaluation = setting.file("dev", "a O\nb O\n")}) ==
        "dev:1: label: expected at least 2 different ones in the file, got {O}");
  CHECK(refusal({.train = setting.file("nothing", "\n\xE2\x80\x8B O\n\xE2\x80\x8B B\n")}) ==
        "nothing:2: words: expected at least one of which the tokenizer leaves a token, got none");
  CHECK(support::refusal(Failure::model, [&] { setting.read({.prediction = setting.file("new", "a\n")}); }) ==
        "model/config.json: id2label: expected the names of the labels or a file to --train, got none");
  setting.model_labels = {"LABEL_0"};
  CHECK(support::refusal(Failure::model, [&] { setting.read({.evaluation = setting.file("dev", "a O\nb B\n")}); }) ==
        "model/config.json: id2label: expected the data's labels {B,O}, got {LABEL_0}");
}

TEST_CASE("the loss of an evaluation is the mean over the labelled pieces") {
  const Setting setting;
  const TokenData data =
      setting.read({.train = setting.file("train", kTrain), .evaluation = setting.file("dev", "as O\nb B-X\n")});
  // [CLS] a ##s b [SEP]
  const Logits logits{.outputs = 3, .values = {9, 9, 9, 0, 0, 0, 9, 0, 0, 1, 0, 0, 9, 0, 0}};
  CHECK(mean_token_loss(*data.evaluation, logits) ==
        doctest::Approx((std::log(3.0) + std::log(2 + std::exp(1.0)) - 1) / 2));
}

TEST_CASE("words without labels are not trained on, and a bad line is named where what is left has too few labels") {
  const Setting setting;
  const std::filesystem::path train = setting.file("train", "a\nb\n");
  CHECK(support::refusal(Failure::input, [&] { setting.read({.train = train}); }) ==
        train.string() + ":1: columns: expected a word and a label, got 1 column");
  setting.file("train", "a O\nb\n");
  CHECK(support::refusal(Failure::input, [&] { setting.read({.train = train, .on_bad = OnBadRow::keep}); }) ==
        train.string() + ":2: columns: expected 2 as in line 1, got 1");
}

TEST_CASE("what is no UTF-8 is told of each file of words that has some") {
  const Setting setting;
  const auto warnings = [&](const std::string& mark) {
    return setting
        .read({.train = setting.file("train", "a" + mark + " O\nb B-X\n"),
               .evaluation = setting.file("dev", "a" + mark + " O\n"),
               .prediction = setting.file("new", "a" + mark + "\n")})
        .warnings();
  };
  CHECK(warnings("") == "");
  const std::string all = warnings("\xFF");
  for (const char* name : {"train", "dev", "new"})
    CHECK(all.find((setting.directory / name).string() + ":1: text: dropped 1 byte") != std::string::npos);
  const auto train = setting.file("train", "a O\nb B-X\nb B-\xFF\n");
  CHECK(setting.read({.train = train, .on_bad = OnBadRow::keep}).warnings().find(":3: text: found 1 byte") !=
        std::string::npos);
}

TEST_CASE("words and labels of columns that no one means are doubted") {
  Setting setting;
  const auto warnings = [&](const std::string& text, const TokenColumns& columns = {}) {
    setting.options.columns = columns;
    TaskFiles files{.train = setting.file("train", text)};
    files.held_out = {.share = 0.5};
    const std::string all = setting.read(files).warnings();
    const std::string file = "warning: " + files.train.string() + ": ";
    std::string own;
    for (std::size_t begin = 0; begin < all.size(); begin = all.find('\n', begin) + 1)
      own += all.substr(begin + file.size(), all.find('\n', begin) + 1 - begin - file.size());
    return own;
  };
  const std::string columns = "1\ta\tB-PER\t-\tx\n\n1\tb\tO\t-\t-\n";
  CHECK(warnings(columns) ==
        "all words are whole numbers; hint: --text-column 1 --label-column 2\n"
        "labels: expected O, or some as B-PER, got {-,x}: is --label-column the right one?\n");
  CHECK(warnings(columns, {.word = 1, .label = 2}) == "");
  CHECK(warnings("1 O\n\na B-X\n") == "");
  CHECK(warnings("a tag\n\na B-X\nb O\n") ==
        "labels: expected O, or one with a prefix as B-X, got \"tag\": is the first line a header?\n");
  CHECK(warnings("a PER\n\nb O\n") ==
        "labels: expected O, or those of entities as B-PER, got \"PER\"; hint: --task pos, punct or tokens has the "
        "figures of other labels\n");
  CHECK(warnings("a X\n\nb O\n").starts_with("labels: expected O, or those of entities as B-PER, got \"X\"; "));
  CHECK(warnings("a S-X\n\nb E-X\n") == "");
  CHECK(warnings("a B\n\nb I\nc O\n") == "");  // entities without a type
  setting.options.task = TokenTask::pos;
  CHECK(warnings("a X\n\nb Y\n") == "");
  CHECK(warnings("1 X\n\n2 Y\n") != "");
  setting.model_labels = {"O", "X"};
  const std::filesystem::path numbers = setting.file("new", "1 O\n2 X\n"), words = setting.file("dev", "1 O\n\na X\n");
  const std::string doubt =
      "warning: " + numbers.string() + ": all words are whole numbers; hint: --text-column 1 --label-column 2\n";
  for (const auto file : {&TaskFiles::evaluation, &TaskFiles::prediction}) {
    TaskFiles alone;
    alone.*file = numbers;
    CHECK(setting.read(alone).warnings() == doubt);
    alone.*file = words;
    CHECK(setting.read(alone).warnings() == "");
  }
}

TEST_CASE("the memory of words is that of their texts and labels until they go to the disk") {
  const auto bytes_of = [](std::size_t count, const std::string& word) {
    TokenSplit split;
    split.list = support::sentence_list({std::vector<std::string>(count, word)});
    return split.bytes();
  };
  CHECK(bytes_of(1000, "a") >= 1000);
  CHECK(bytes_of(1000, "a") < 1000 * 32);
  CHECK(bytes_of(1000, std::string(100, 'x')) >= 100'000);
  const Setting setting;
  const TokenData data =
      setting.read({.train = setting.file("train", kTrain), .evaluation = setting.file("dev", "a O\nb B-X\n")});
  CHECK(data.bytes() > 0);
  CHECK(data.bytes() == data.evaluation->bytes());
}

TEST_CASE(
    "words to evaluate and to predict give the same figures, rows and predictions from memory and from the disk") {
  Setting setting;
  setting.model_labels = {"O", "B-X", "I-X"};
  std::string text;
  for (int s = 0; s < 40; ++s) {
    for (int w = 0; w <= s % 7; ++w)
      text += (w == 3 ? "\xE2\x80\x8B" : std::string(1, "abcde"[(s + w) % 5]) + (w % 2 == 0 ? "s" : "")) +
              (w == 1 ? " B-X\n" : " O\n");
    text += "\n";
  }
  const std::filesystem::path file = setting.file("words", text), place = setting.directory / "run";
  std::filesystem::create_directory(place);
  const auto said_of = [&](const io::SpillPlace& spill) {
    const TokenData data = setting.read({.evaluation = file, .prediction = file, .spill = spill});
    CHECK((data.bytes() == 0) == !spill.directory.empty());
    const TokenSplit& split = *data.evaluation;
    Logits logits{.outputs = 3};
    for (std::int64_t token = 0; token < split.windows.token_ids.size(); ++token) {
      logits.values.append(std::vector<float>{static_cast<float>(token % 5), static_cast<float>(token % 3), 1});
      logits.values.spill_if_due(spill);
    }
    logits.values.finish(spill);
    CHECK(logits.values.is_spilled() == !spill.directory.empty());
    const WordPredictions words = predict_words(split.tokens.all(), logits, data.common(), spill);
    CHECK(words.labels.is_spilled() == !spill.directory.empty());
    const JudgedWords judged{split.list, data.labels, split.labels.all(), words.labels.all()};
    std::string said = data.remarks() + token_report(data.task, judged) + illegal_tags_report(judged) +
                       std::to_string(mean_token_loss(split, logits));
    for (const auto& [name, value] : token_figures(data.task, judged)) said += name + std::to_string(value);
    const auto write = [&](std::string_view part) { said += part; };
    write_word_rows(data.task, judged, words, write);
    write_token_predictions_tsv(data.prediction->list, data.labels, words, write);
    return said;
  };
  const std::string held = said_of({});
  CHECK(held.find("\"id\":\"39\"") != std::string::npos);
  CHECK(held.find("39\t") != std::string::npos);
  for (const std::size_t most : {1, 100}) CHECK((said_of({.directory = place, .held_bytes = most}) == held));
  CHECK(std::filesystem::is_empty(place));
}
