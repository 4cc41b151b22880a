// Labels of words: where words stand, which entities the labels name, and texts that have several windows.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>

#include "bert/inference/opened.h"
#include "support/refusal.h"
#include "support/small_heads.h"

using namespace bertrand;
using inference::Head;
using support::ask;
using support::open;
using support::refusal;
using support::refused;

namespace {

using Ids = std::vector<std::int32_t>;

}  // namespace

TEST_CASE("words are cut as the tokenizer cuts them and say where they stand") {
  const support::TemporaryDirectory directory;
  support::write_small_labeller(directory / "model", {"O", "B-A", "I-A"});
  const auto predictor = open(directory / "model", Head::tokens);
  const auto words = [&](const std::string& text) {
    std::vector<std::string> found;
    const io::Json answer = ask(*predictor, {{"text", text}});
    for (const io::Json& word : answer.at("words"))
      found.push_back(fmt::format("{} {}-{}", word.at("word").get<std::string>(), word.at("start").get<int>(),
                                  word.at("end").get<int>()));
    return found;
  };
  using Words = std::vector<std::string>;
  CHECK(words("  Réd fishs.") == Words{"Réd 2-5", "fishs 6-11", ". 11-12"});
  CHECK(words("red漢字\tfish") == Words{"red 0-3", "漢 3-4", "字 4-5", "fish 6-10"});
  CHECK(words("\u200Bre\u00ADd\u200B fish") == Words{"re\u00ADd 1-5", "fish 7-11"});  // what is dropped
  CHECK(words("e\u0301 red") == Words{"e\u0301 0-2", "red 3-6"});

  const io::Json given = ask(*predictor, {{"words", {"the", "réd fish", "\u200B", "."}}}).at("words");
  REQUIRE(given.size() == 4);
  CHECK(given[1].at("word") == "réd fish");
  CHECK(given[1].at("start") == 4);
  CHECK(given[1].at("end") == 12);
  CHECK(given[3].at("start") == 15);
  CHECK(given[2].at("label") == "O");  // nothing is left of it
  CHECK(given[2].at("score") == 0);

  CHECK(refused(*predictor, {{"text", "\u200B"}}) == "t:3: text: expected at least one token, got none");
  CHECK(refused(*predictor, {{"words", io::Json::array()}}) == "t:3: words: expected at least one token, got none");
  CHECK(refused(*predictor, {{"words", {"red", 5}}}) == "t:3: words: expected a list of strings, got 5");
  CHECK(refused(*predictor, {{"words", "red"}}) == "t:3: words: expected a list, got \"red\"");
  CHECK(refused(*predictor, {{"word", "red"}}) == "t:3: text: expected a string, got none");
}

TEST_CASE("tags name entities that score as their words do on average") {
  const support::TemporaryDirectory directory;
  support::write_small_labeller(directory / "model", {"O", "B-A", "I-A", "B-B"});
  support::write_small_labeller(directory / "pos", {"NOUN", "VERB"});
  const auto predictor = open(directory / "model", Head::tokens);
  const inference::Query query = predictor->encode({{"text", "Réd fishs. the two birds"}}, "");
  REQUIRE(query.sequences[0].token_ids == Ids{2, 5, 8, 13, 14, 12, 11, 9, 13, 3});
  // Labels of [CLS] Réd fish ##s . the two bird ##s [SEP]: the first piece of a word speaks for it.
  inference::Outputs outputs{.width = 4, .values = {}};
  for (const std::size_t label : {1, 1, 2, 3, 0, 2, 3, 2, 0, 1})
    for (std::size_t i = 0; i < 4; ++i) outputs.values.push_back(i == label ? 2.0F : i == 3 ? 0.5F : 0.0F);
  const io::Json entities = inference::answer(query, std::vector{outputs}).at("entities");
  REQUIRE(entities.size() == 4);
  const auto check_entity = [&](std::size_t i, const char* type, const char* text, int start) {
    CHECK(entities[i].at("type") == type);
    CHECK(entities[i].at("text") == text);
    CHECK(entities[i].at("start") == start);
  };
  check_entity(0, "A", "Réd fishs", 0);
  CHECK(entities[0].at("end") == 9);
  check_entity(1, "A", "the", 11);
  check_entity(2, "B", "two", 15);
  check_entity(3, "A", "birds", 19);
  const double apart = std::exp(2) / (std::exp(2) + 2 + std::exp(0.5)), last = std::exp(2) / (std::exp(2) + 3);
  CHECK(entities[0].at("score").get<double>() == doctest::Approx(apart));
  CHECK(entities[2].at("score").get<double>() == doctest::Approx(last));

  const inference::Query of_words = predictor->encode({{"words", {"the", "réd fish", "two"}}}, "");
  REQUIRE(of_words.sequences[0].token_ids.size() == 6);
  outputs.values.clear();
  for (const std::size_t label : {0, 1, 2, 0, 3, 0})
    for (std::size_t i = 0; i < 4; ++i) outputs.values.push_back(i == label ? 2.0F : 0.0F);
  const io::Json joined = inference::answer(of_words, std::vector{outputs}).at("entities");
  REQUIRE(joined.size() == 2);
  CHECK(joined[0].at("text") == "the réd fish");
  CHECK(joined[1].at("text") == "two");
  CHECK(joined[1].at("start") == 13);

  const io::Json pos = ask(*open(directory / "pos", Head::tokens), {{"text", "red fish"}});
  CHECK(pos.at("entities").empty());
  CHECK(pos.at("words").size() == 2);

  support::write_small_labeller(directory / "last", {"B-A", "O"});
  const io::Json none =
      ask(*open(directory / "last", Head::tokens), {{"words", {"red", "\xE2\x80\x8B"}}}).at("words")[1];
  CHECK(none.at("label") == "O");  // of a word without a token
  CHECK(none.at("score") == 0);
}

TEST_CASE("beside O, neighbours with the same label without a prefix are one entity") {
  const support::TemporaryDirectory directory;
  support::write_small_labeller(directory / "model", {"O", "PER", "b-day", "I-LOC"});
  const auto predictor = open(directory / "model", Head::tokens);
  const inference::Query query = predictor->encode({{"text", "red fish two bird blue one green"}}, "");
  inference::Outputs outputs{.width = 4, .values = {}};
  for (const std::size_t label : {0, 1, 1, 2, 0, 2, 3, 1, 0})
    for (std::size_t i = 0; i < 4; ++i) outputs.values.push_back(i == label ? 2.0F : 0.0F);
  REQUIRE(query.sequences[0].token_ids.size() == 9);
  const io::Json answer = inference::answer(query, std::vector{outputs});
  std::vector<std::string> found;
  for (const io::Json& entity : answer.at("entities"))
    found.push_back(entity.at("type").get<std::string>() + ": " + entity.at("text").get<std::string>());
  CHECK(found == std::vector<std::string>{"PER: red fish", "b-day: two", "b-day: blue", "LOC: one", "PER: green"});
}

TEST_CASE("tags of any scheme name entities, also beside a label that is no tag") {
  const support::TemporaryDirectory directory;
  support::write_small_labeller(directory / "model", {"O", "B-o", "M-o", "E-o", "X"});
  const auto predictor = open(directory / "model", Head::tokens);
  const inference::Query query = predictor->encode({{"text", "red fish two bird blue"}}, "");
  inference::Outputs outputs{.width = 5, .values = {}};
  for (const std::size_t label : {0, 1, 2, 3, 4, 0, 0})
    for (std::size_t i = 0; i < 5; ++i) outputs.values.push_back(i == label ? 2.0F : 0.0F);
  REQUIRE(query.sequences[0].token_ids.size() == 7);
  const io::Json entities = inference::answer(query, std::vector{outputs}).at("entities");
  REQUIRE(entities.size() == 2);
  CHECK(entities[0].at("text") == "red fish two");
  CHECK(entities[0].at("type") == "o");
  CHECK(entities[1].at("text") == "bird");
  CHECK(entities[1].at("type") == "X");
  support::write_small_labeller(directory / "few", {"O", "A-o", "B-"});
  const auto few = open(directory / "few", Head::tokens);
  const inference::Outputs of_few{.width = 3, .values = {1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0}};
  const io::Json two = inference::answer(few->encode({{"text", "red fish"}}, ""), std::vector{of_few}).at("entities");
  REQUIRE(two.size() == 2);
  CHECK(two[0].at("type") == "o");   // a prefix is any capital
  CHECK(two[1].at("type") == "B-");  // and stands before something
}

TEST_CASE("a text beyond the model's length has windows, and each of its words the label of its own token") {
  const support::TemporaryDirectory directory;
  support::write_small_labeller(directory / "model", {"O", "B-A"});
  const auto predictor = open(directory / "model", Head::tokens, {.max_seq_length = 8, .overlap = 2});
  std::string text;
  for (int i = 0; i < 20; ++i) text += i % 2 ? "red " : "fishs ";
  const inference::Query query = predictor->encode({{"text", text}}, "");
  REQUIRE(query.sequences.size() == 7);  // of 6 of 30 pieces, 4 of them new
  CHECK(inference::answer(query, predictor->run(query.sequences)).at("words").size() == 20);
  std::vector<inference::Outputs> outputs;
  for (const bert::Sequence& window : query.sequences) {
    outputs.push_back({.width = 2, .values = {}});
    for (const std::int32_t id : window.token_ids)
      for (const float logit : {id == 5 ? 0.0F : 1.0F, id == 5 ? 1.0F : 0.0F}) outputs.back().values.push_back(logit);
  }
  const io::Json words = inference::answer(query, outputs).at("words");
  REQUIRE(words.size() == 20);
  for (std::size_t i = 0; i < words.size(); ++i) CHECK(words[i].at("label") == (i % 2 ? "B-A" : "O"));
  CHECK(refusal(Failure::usage, [&] {
          open(directory / "model", Head::tokens, {.max_seq_length = 8, .overlap = 6});
        }).starts_with("--doc-stride: expected "));
}
