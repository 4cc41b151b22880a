// A file of questions to train on, held in memory and on the disk.
#include "bert/tasks/squad_data.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::tasks;

namespace {

using Json = nlohmann::json;

struct Setting {
  support::TemporaryDirectory directory;
  text::Tokenizer tokenizer{text::Vocabulary::parse("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\nc\n", "vocab.txt")};
  SquadOptions options{.max_seq_length = 40, .doc_stride = 16, .max_query_length = 3, .threads = 2};

  std::filesystem::path file(const Json& paragraphs) const {
    const std::filesystem::path file = directory / "questions.json";
    support::write_text(file, Json{{"data", {{{"paragraphs", paragraphs}}}}}.dump());
    return file;
  }
};

Json question(const std::string& id, const std::string& answer, int start) {
  return {{"id", id}, {"question", "b c"}, {"answers", {{{"text", answer}, {"answer_start", start}}}}};
}

/// So many texts of words "a", one of them "b", which is asked for, and so many letters of one unknown word.
Json paragraphs(int count, int words = 200, int letters = 0) {
  Json all = Json::array();
  for (int i = 0; i < count; ++i) {
    const int place = i % (words * 3 / 4);
    std::string text;
    for (int word = 0; word < words; ++word) text += word == place ? "b " : "a ";
    text.append(static_cast<std::size_t>(letters), 'x');
    all.push_back({{"context", text}, {"qas", {question(std::to_string(i), "b", 2 * place)}}});
  }
  return all;
}

/// More than the 4 MiB of text that are handed over as one part, few of which are tokens.
constexpr int kMany = 4'000;
Json many_paragraphs() { return paragraphs(kMany, 60, 1'100); }

/// Outputs that find the "b" of each context.
Logits outputs_for(const SquadData& data, const io::SpillPlace& spill = {}) {
  Logits logits{.outputs = 2};
  for (const std::int32_t id : data.windows().token_ids.all()) {
    const float found = id == 6 ? 1 : 0;
    logits.values.append(std::vector<float>{found, found});
    logits.values.spill_if_due(spill);
  }
  logits.values.finish(spill);
  return logits;
}

}  // namespace

TEST_CASE("paragraphs that are not wanted are as if they were not there") {
  const Setting setting;
  const std::filesystem::path file = setting.file(paragraphs(5));
  const auto even = [](std::size_t number) { return number % 2 == 0; };
  const auto odd = [](std::size_t number) { return number % 2 != 0; };
  const SquadData train(file, SquadUse::training, setting.tokenizer, setting.options, nullptr, {}, even);
  const SquadData rest(file, SquadUse::evaluation, setting.tokenizer, setting.options, nullptr, {}, odd);
  CHECK(train.questions() == 3);
  std::vector<std::string> ids;
  rest.answer(outputs_for(rest), {},
              [&](const auto&, const SquadQuestion& question, const Answer&) { ids.push_back(question.id); });
  CHECK(ids == std::vector<std::string>{"1", "3"});
}

TEST_CASE("questions to train on give the same windows and answers from memory and from the disk") {
  const Setting setting;
  const std::filesystem::path place = setting.directory / "run", file = setting.file(many_paragraphs());
  std::filesystem::create_directory(place);
  const SquadData held(file, SquadUse::training, setting.tokenizer, setting.options);
  const SquadData unanswered(file, SquadUse::prediction, setting.tokenizer, setting.options);
  CHECK(held.questions() == kMany);
  CHECK(held.remarks() == unanswered.remarks());
  CHECK(held.bytes() == 0);
  CHECK(unanswered.bytes() > std::size_t{1} << 22);
  REQUIRE(held.windows().targets.size() == 2 * held.windows().size());
  CHECK(unanswered.windows().targets.size() == 0);
  for (const std::size_t most : {std::size_t{1'000}, std::size_t{1} << 20}) {
    const SquadData spilled(file, SquadUse::training, setting.tokenizer, setting.options, nullptr,
                            {.directory = place, .held_bytes = most});
    const EncodedDataset &a = held.windows(), &b = spilled.windows();
    CHECK(b.token_ids.is_spilled());
    CHECK(b.bytes() == 0);
    REQUIRE(a.size() == b.size());
    REQUIRE(a.size() == unanswered.windows().size());
    bool same = true;
    std::int64_t answers = 0;
    for (std::int64_t i = 0; i < a.size(); ++i) {
      same = same && std::ranges::equal(a.ids(i), b.ids(i)) && a.first_length(i) == b.first_length(i) &&
             std::ranges::equal(a.targets_at(2 * i, 2), b.targets_at(2 * i, 2)) &&
             std::ranges::equal(a.ids(i), unanswered.windows().ids(i));
      const auto answer = b.targets_at(2 * i, 2);
      if (answer[0] == 0) continue;
      ++answers;
      same = same && answer[0] == answer[1] && b.ids(i)[static_cast<std::size_t>(answer[0])] == 6;  // b
    }
    CHECK(same);
    CHECK(answers >= kMany);
  }
  CHECK(std::filesystem::is_empty(place));
}

TEST_CASE("questions have the same answers from memory and from the disk, also those of a later part of the file") {
  const Setting setting;
  const std::filesystem::path place = setting.directory / "run", file = setting.file(many_paragraphs());
  std::filesystem::create_directory(place);
  const auto answers_of = [&](const io::SpillPlace& spill) {
    const SquadData data(file, SquadUse::prediction, setting.tokenizer, setting.options, nullptr, spill);
    CHECK((data.bytes() == 0) == !spill.directory.empty());
    const Logits logits = outputs_for(data, spill);
    CHECK(logits.values.is_spilled() == !spill.directory.empty());
    std::vector<std::string> answers;
    bool are_of_their_paragraphs = true;
    data.answer(logits, {.n_best_size = 3},
                [&](const SquadParagraph& paragraph, const SquadQuestion& question, const Answer& answer) {
                  are_of_their_paragraphs &= paragraph.questions.front().id == question.id;
                  answers.push_back(fmt::format("{} {} {}", question.id, answer.text, answer.n_best[0].start_logit));
                });
    CHECK(are_of_their_paragraphs);
    return answers;
  };
  const std::vector<std::string> held = answers_of({});
  REQUIRE(held.size() == kMany);
  bool are_right = true;
  for (std::size_t i = 0; i < held.size(); ++i) are_right &= held[i] == fmt::format("{} b 1", i);
  CHECK(are_right);
  for (const std::size_t most : {std::size_t{1'000}, std::size_t{1} << 14})
    CHECK((answers_of({.directory = place, .held_bytes = most}) == held));
  CHECK(std::filesystem::is_empty(place));
}

TEST_CASE("an id that comes twice, far apart, is named where it comes again") {
  const Setting setting;
  Json all = paragraphs(12'000);
  all[11'999]["qas"][0]["id"] = "3";
  const std::filesystem::path file = setting.file(all);
  CHECK(support::refusal(Failure::input, [&] {
          SquadData(file, SquadUse::training, setting.tokenizer, setting.options);
        }) == file.string() + ": data[0].paragraphs[11999].qas[0].id: expected an id of its own, got \"3\" again");
}

TEST_CASE("questions that are left out are counted over the whole file, and the first ten are shown") {
  const Setting setting;
  Json all = paragraphs(12'000);
  for (int i = 0; i < 12; ++i) all[static_cast<std::size_t>(i) * 1'000]["qas"][0]["answers"][0]["text"] = "c";
  const SquadData data(setting.file(all), SquadUse::training, setting.tokenizer, setting.options);
  const std::string warnings = data.warnings();
  CHECK(data.questions() == 11'988);
  CHECK(warnings.find("question 9000: Could not find answer") != std::string::npos);
  CHECK(warnings.find("question 10000:") == std::string::npos);
  CHECK(warnings.find("left out 12 of 12000 questions") != std::string::npos);
}

TEST_CASE("a question to train on without one answer is named, and all of them if they are kept apart") {
  const Setting setting;
  Json all = paragraphs(4);
  all[1]["qas"][0]["answers"] = Json::array();
  all[3]["qas"][0]["answers"][0]["answer_start"] = 1'000;
  const std::filesystem::path file = setting.file(all);
  const std::string first = file.string() + ": question 1: answers: expected exactly one to train on, got 0";
  CHECK(support::refusal(Failure::input,
                         [&] { SquadData(file, SquadUse::training, setting.tokenizer, setting.options); }) == first);
  std::vector<std::string> bad;
  const SquadData data(file, SquadUse::training, setting.tokenizer, setting.options, &bad);
  REQUIRE(bad.size() == 2);
  CHECK(bad[0] == first);
  CHECK(bad[1].find("question 3: answer_start: expected an answer within the context's 400 characters") !=
        std::string::npos);
  CHECK(data.questions() == 2);
}

TEST_CASE("questions to train on whose answer has no word are kept and counted and the first one is named") {
  const Setting setting;
  Json all = paragraphs(4);
  all[1]["qas"][0]["answers"][0]["text"] = "";
  all[3]["qas"][0]["answers"][0]["text"] = " ";
  all[3]["qas"][0]["answers"][0]["answer_start"] = 1;
  const std::filesystem::path file = setting.file(all);
  const SquadData data(file, SquadUse::training, setting.tokenizer, setting.options);
  CHECK(data.questions() == 4);
  CHECK(data.warnings() ==
        "warning: " + file.string() + ": questions whose answer has no word, kept all the same: 2, the first 1\n");
  CHECK(SquadData(file, SquadUse::prediction, setting.tokenizer, setting.options).warnings().empty());
}

TEST_CASE("a question that is cut is counted also if its text has one window") {
  const Setting setting;
  Json all = paragraphs(1);
  all[0]["context"] = "a b c";
  all[0]["qas"][0]["question"] = "a b c a";
  const SquadData data(setting.file(all), SquadUse::prediction, setting.tokenizer, setting.options);
  REQUIRE(data.windows().size() == 1);
  CHECK(data.windows().cut == 1);
  CHECK(data.remarks().find(": 1 question cut to --max-query-length\n") != std::string::npos);
}

TEST_CASE("one question that is left out is counted, and that nothing was cut is not said") {
  const Setting setting;
  Json all = paragraphs(2);
  all[1]["qas"][0]["answers"][0]["text"] = "c";
  const SquadData data(setting.file(all), SquadUse::training, setting.tokenizer, setting.options);
  CHECK(data.warnings().find("left out 1 of 2 questions") != std::string::npos);
  CHECK(data.remarks().find(" questions cut") == std::string::npos);
}

TEST_CASE("a file of bad questions alone is refused with the first, and options before the file is read") {
  const Setting setting;
  Json all = paragraphs(2);
  for (Json& paragraph : all) paragraph["qas"][0]["answers"] = Json::array();
  const std::filesystem::path file = setting.file(all);
  std::vector<std::string> bad;
  CHECK(support::refusal(Failure::input, [&] {
          SquadData(file, SquadUse::training, setting.tokenizer, setting.options, &bad);
        }) == file.string() + ": question 0: answers: expected exactly one to train on, got 0");
  SquadOptions options = setting.options;
  options.doc_stride = 0;
  CHECK(support::refusal(Failure::usage, [&] {
          SquadData(setting.directory / "none.json", SquadUse::training, setting.tokenizer, options);
        }) == "--doc-stride: expected at least 1, got 0");
}

TEST_CASE("the memory of questions to answer is that of all their texts until they go to the disk") {
  const Setting setting;
  const auto bytes_of = [&](const std::string& context, const std::string& id, const std::string& text,
                            const std::string& answer) {
    Json all = paragraphs(1);
    all[0]["context"] = context;
    Json& one = all[0]["qas"][0];
    one["id"] = id;
    one["question"] = text;
    one["answers"][0]["text"] = answer;
    return SquadData(setting.file(all), SquadUse::prediction, setting.tokenizer, setting.options).bytes();
  };
  const std::size_t least = bytes_of("a b c", "1", "b", "a");
  CHECK(least < 5'000);
  const std::string x(100'000, 'x'), blank(100'000, ' ');
  for (const std::size_t bytes : {bytes_of("a b" + blank + "c", "1", "b", "a"), bytes_of("a b c", x, "b", "a"),
                                  bytes_of("a b c", "1", "b" + blank, "a"), bytes_of("a b c", "1", "b", x)}) {
    CHECK(bytes >= least + 99'000);
    CHECK(bytes < least + 300'000);
  }
}
