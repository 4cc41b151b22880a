// What is said of masked tokens of held-out examples.
#include "bert/objectives/pretraining_samples.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tensor/backends.h"
#include "tensor/ops.h"

using namespace bertrand;

TEST_CASE("each masked token has its probability and the three likeliest tokens with theirs, the first of them first") {
  data::PretrainingExample first, second;
  first.token_ids = {0, 3, 1, 5};
  first.masked_positions = {1, 2};
  first.masked_ids = {2, 4};
  second.token_ids = {0};  // nothing is masked
  data::PretrainingExample third;
  third.token_ids = {1};
  third.masked_positions = {0};
  third.masked_ids = {0};
  const std::vector<float> logits = {0, 1, 2, 3, 4, 9, 0, 0, 0, 0, 3, 0, 0, 0, 0};
  const auto backend = open_cpu({.threads = 1});
  const training::Samples samples = objectives::samples_of(std::vector{first, second, third},
                                                           ops::from_host(logits, {3, 5}, *backend), "a\r\nb\nc\nd\ne");
  const auto json = nlohmann::json::parse(samples.json);
  REQUIRE(json.size() == 3);
  CHECK(json[0]["tokens"] == nlohmann::json({"a", "d", "b", "[UNK]"}));
  REQUIRE(json[0]["masked"].size() == 2);
  CHECK(json[1]["masked"].empty());
  REQUIRE(json[2]["masked"].size() == 1);
  const auto share = [](double of, std::initializer_list<double> all) {
    double sum = 0;
    for (const double x : all) sum += std::exp(x);
    return doctest::Approx(std::exp(of) / sum).scale(0).epsilon(1e-3);
  };
  const auto check = [](const nlohmann::json& mask, int position, const std::string& truth,
                        const std::vector<std::string>& guesses) {
    CHECK(mask["position"] == position);
    CHECK(mask["truth"] == truth);
    REQUIRE(mask["guesses"].size() == 3);
    for (std::size_t g = 0; g < guesses.size(); ++g) CHECK(mask["guesses"][g][0] == guesses[g]);
  };
  const auto& mask = json[0]["masked"];
  check(mask[0], 1, "c", {"e", "d", "c"});
  CHECK(mask[0]["probability"].get<double>() == share(2, {0, 1, 2, 3, 4}));
  CHECK(mask[0]["guesses"][1][1].get<double>() == share(3, {0, 1, 2, 3, 4}));
  check(mask[1], 2, "e", {"a"});
  CHECK(mask[1]["guesses"][0][1].get<double>() == share(9, {9, 0, 0, 0, 0}));
  check(json[2]["masked"][0], 0, "a", {"a"});
  const std::string head = "| example | place | is | taken for |\n|---|---|---|---|\n";
  CHECK(samples.markdown.starts_with(head + "| 1 | 1 | c | e 63.6 %, d 23.4 %, c 8.6 % |\n| 1 | 2 | e | a "));
  CHECK(samples.markdown.find("\n| 3 | 0 | a | a 83.4 %, ") != std::string::npos);
  CHECK(json[2]["masked"][0]["probability"].get<double>() == share(3, {3, 0, 0, 0, 0}));
}

TEST_CASE("of tokens that are as likely as each other the first ones are named") {
  data::PretrainingExample example;
  example.token_ids = {0};
  example.masked_positions = {0};
  example.masked_ids = {3};
  const auto backend = open_cpu({.threads = 1});
  const Tensor logits = ops::from_host(std::vector<float>{0, 1, 1, 1, 1}, {1, 5}, *backend);
  const training::Samples samples = objectives::samples_of(std::vector{example}, logits, "a\nb\nc\nd\ne");
  const auto guesses = nlohmann::json::parse(samples.json)[0]["masked"][0]["guesses"];
  REQUIRE(guesses.size() == 3);
  const std::vector<std::string> first = {"b", "c", "d"};
  for (std::size_t g = 0; g < first.size(); ++g) CHECK(guesses[g][0] == first[g]);
}
