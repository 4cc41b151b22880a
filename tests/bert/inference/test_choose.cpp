// Which of several texts a model takes.
#include <doctest/doctest.h>

#include <cmath>

#include "bert/inference/opened.h"
#include "bert/network/heads.h"
#include "support/small_heads.h"

using namespace bertrand;
using inference::Head;
using support::ask, support::refused;

namespace {

using Ids = std::vector<std::int32_t>;

void write_small_chooser(const std::filesystem::path& directory, Dim types = 2) {
  support::write_small_head<bert::ForSequenceClassification>(
      directory, {.architecture = "BertForMultipleChoice", .types = types}, Dim{1});
}

}  // namespace

TEST_CASE("each choice is read behind its text, and a text pair comes before each") {
  const support::TemporaryDirectory directory;
  write_small_chooser(directory / "model");
  CHECK(inference::head_of(bert::read_config(directory / "model"), directory / "model") == Head::choose);
  const auto predictor = support::open(directory / "model", Head::choose);
  const inference::Query query =
      predictor->encode({{"text", "red fish"}, {"text_pair", "the"}, {"choices", {"bird", "two birds"}}}, "");
  REQUIRE(query.sequences.size() == 2);
  CHECK(query.sequences[0].token_ids == Ids{2, 5, 8, 3, 12, 9, 3});
  CHECK(query.sequences[1].token_ids == Ids{2, 5, 8, 3, 12, 11, 9, 13, 3});
  CHECK(query.sequences[1].token_types == Ids{0, 0, 0, 0, 1, 1, 1, 1, 1});
  CHECK_FALSE(query.cut);
  CHECK(predictor->encode({{"text", "red"}, {"text_pair", nullptr}, {"choices", {"fish", "bird"}}}, "")
            .sequences[1]
            .token_ids == Ids{2, 5, 3, 9, 3});
  std::string long_choice;
  for (int i = 0; i < 21; ++i) long_choice += "fish ";
  CHECK(predictor->encode({{"text", "red"}, {"choices", {"fish", long_choice}}}, "").cut);
  CHECK(predictor->request("red ||| fish ||| two birds", "t:1") ==
        io::Json{{"text", "red"}, {"choices", {"fish", "two birds"}}});
  for (const auto& [line, got] : {std::pair("red fish", "no |||"), {"red ||| fish", "one choice"}})
    CHECK(support::refusal(Failure::input, [&] { predictor->request(line, "t:1"); }) ==
          std::string("t:1: expected text ||| choice ||| choice, got ") + got);

  CHECK(refused(*predictor, {{"text", "red"}}) == "t:3: choices: expected a list, got none");
  CHECK(refused(*predictor, {{"text", "red"}, {"choices", {"fish"}}}) == "t:3: choices: expected at least two, got 1");
  CHECK(refused(*predictor, {{"text", "red"}, {"choices", {"fish", 5}}}) ==
        "t:3: choices: expected texts, got [\"fish\",5]");
  CHECK(refused(*predictor, {{"text", "red"}, {"choices", {"fish", " "}}}) ==
        "t:3: choices: expected at least one token, got none");
  CHECK(refused(*predictor, {{"choices", {"fish", "bird"}}}) == "t:3: text: expected a string, got none");
}

TEST_CASE("the scores of choices are shares of the logits that a model gives to each") {
  const support::TemporaryDirectory directory;
  write_small_chooser(directory / "model");
  const auto predictor = support::open(directory / "model", Head::choose);
  const std::vector<std::string> choices = {"fish", "two birds", "red"};
  std::vector<double> logits;
  for (const std::string& choice : choices) {
    const inference::Query one = predictor->encode({{"text", "blue"}, {"choices", {choice, "the"}}}, "");
    const inference::Query ids = predictor->encode_ids({.sequence = one.sequences[0]}, "here");
    logits.push_back(inference::answer(ids, predictor->run(ids.sequences)).at("logits").at(0));
  }
  const io::Json request{{"text", "blue"}, {"choices", choices}};
  const io::Json answer = ask(*predictor, request);
  const std::size_t best = answer.at("choice");
  CHECK(answer.at("answer") == choices[best]);
  double sum = 0;
  for (const double logit : logits) sum += std::exp(logit);
  for (std::size_t i = 0; i < choices.size(); ++i) {
    CHECK(logits[i] <= logits[best]);
    CHECK(std::abs(answer.at("scores").at(i).get<double>() - std::exp(logits[i]) / sum) <= 1e-6);
  }
  CHECK(answer.at("score") == answer.at("scores").at(best));
  io::Json raw = request;
  raw["raw_scores"] = true;
  CHECK(ask(*predictor, raw).at("scores") == io::Json(logits));
}

TEST_CASE("a model that cannot tell text and choice apart, or has no room for both, is refused") {
  const support::TemporaryDirectory directory;
  write_small_chooser(directory / "one-type", 1);
  CHECK(support::refusal(Failure::model, [&] {
          support::open(directory / "one-type", Head::choose);
        }).find("type_vocab_size: expected 2") != std::string::npos);
  write_small_chooser(directory / "model");
  CHECK(support::refusal(Failure::usage, [&] {
          support::open(directory / "model", Head::choose, {.max_seq_length = 4});
        }) == "--max-seq-length: expected at least 5 for a text and a choice, got 4");
  support::write_small_classifier(directory / "classifier", {"a", "b"});
  CHECK(support::refusal(Failure::model, [&] {
          support::open(directory / "classifier", Head::choose);
        }).find("expected a model for --task choose") != std::string::npos);
}
