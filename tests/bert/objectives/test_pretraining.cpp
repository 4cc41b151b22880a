// Pre-training on made-up examples: what the plan makes room for, and what is said of held-out ones.
#include "bert/objectives/pretraining.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "autograd/engine.h"
#include "cuda_emulated/emulated_gpu.h"
#include "distributed/replica_group.h"
#include "nn/parameter_set.h"
#include "optim/optimizer.h"
#include "tensor/backends.h"
#include "tensor/profiler.h"
#include "training/run/part_rates.h"

using namespace bertrand;
using namespace bertrand::objectives;

namespace {

const bert::Config kConfig{.vocab_size = 40,
                           .hidden_size = 32,
                           .num_hidden_layers = 2,
                           .num_attention_heads = 2,
                           .intermediate_size = 64,
                           .max_position_embeddings = 16};

/// Examples of these sizes. The first token of each is its own: 7 times its number. The masked ones follow it.
class MadeUp : public data::PretrainingExamples {
 public:
  MadeUp(std::vector<data::ExampleSize> sizes, std::size_t bytes) : sizes_(std::move(sizes)), bytes_(bytes) {}

  std::int64_t examples(std::int64_t epoch) override {
    CHECK(epoch == 0);
    return std::ssize(sizes_);
  }
  data::PretrainingExample example(std::int64_t epoch, std::int64_t number) override {
    CHECK(epoch == 0);
    data::PretrainingExample example;
    for (std::int64_t t = 0; t < tokens(epoch, number); ++t) {
      example.token_ids.push_back(static_cast<std::int32_t>((7 * number + 3 * t) % kConfig.vocab_size));
      example.token_types.push_back(t < 3 ? 0 : 1);
    }
    for (std::int64_t m = 1; m <= masked(epoch, number); ++m) {
      example.masked_positions.push_back(static_cast<std::int32_t>(m));
      example.masked_ids.push_back(static_cast<std::int32_t>((5 * number + m) % kConfig.vocab_size));
    }
    example.next_sentence_label = static_cast<std::int32_t>(number % 2);
    return example;
  }
  std::int64_t tokens(std::int64_t, std::int64_t number) override {
    asked.insert(number);
    return size(number).tokens;
  }
  std::int64_t masked(std::int64_t, std::int64_t number) override { return size(number).masked; }
  std::int64_t longest() const override { return largest(1).at(0).tokens; }
  std::vector<data::ExampleSize> largest(std::int64_t count) const override {
    std::vector<data::ExampleSize> sorted = sizes_;
    std::ranges::sort(sorted, std::greater(), &data::ExampleSize::tokens);
    sorted.resize(static_cast<std::size_t>(std::min(count, std::ssize(sorted))));
    return sorted;
  }
  std::size_t bytes() const override { return bytes_; }

  std::set<std::int64_t> asked;  ///< numbers of the examples that were drawn, or whose tokens were counted

 private:
  const data::ExampleSize& size(std::int64_t number) const { return sizes_.at(static_cast<std::size_t>(number)); }

  std::vector<data::ExampleSize> sizes_;
  std::size_t bytes_;
};

std::string words() {
  std::string lines;
  for (int i = 0; i < kConfig.vocab_size; ++i) lines += "w" + std::to_string(i) + "\n";
  return lines;
}

/// A model to be evaluated on held-out examples.
struct Evaluated {
  Evaluated(MadeUp& held_out, std::int64_t batch, const bert::Config& config = kConfig, bool next_sentence = true)
      : objective(config,
                  {.training = training,
                   .evaluation = &held_out,
                   .evaluation_batch = batch,
                   .vocabulary = words(),
                   .next_sentence = next_sentence},
                  self),
        parameters(objective.model(), *backend, {.seed = 5}) {}

  MadeUp training{{{4, 1}, {4, 1}, {4, 1}, {4, 1}}, 1000};
  std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  distributed::Replica self{*backend};
  PretrainingObjective objective;
  nn::ParameterSet parameters;
  NoGrad no_grad;
};

}  // namespace

TEST_CASE("the plan's evaluation takes the memory of the held-out examples though those to train on are shorter") {
  MadeUp held_out({{16, 5}, {16, 5}, {16, 5}, {16, 5}}, 70);
  Evaluated real(held_out, 2);
  CHECK(!real.objective.evaluate().empty());
  const std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  const auto largest = real.objective.largest(self, 2);
  const nn::ParameterSet parameters(largest->model(), *backend, {.seed = 5});
  CHECK(!largest->evaluate().empty());
  CHECK(backend->memory().peak >= real.backend->memory().peak);
}

TEST_CASE("the plan counts all examples that are held and those of three steps") {
  MadeUp held_out({{16, 5}}, 70);
  const Evaluated both(held_out, 2);
  CHECK(both.objective.data_bytes() == 1070);
  MadeUp training({{16, 5}, {9, 2}, {16, 5}, {16, 5}}, 1000);
  const PretrainingObjective alone(kConfig, {.training = training, .vocabulary = ""}, both.self);
  CHECK(alone.data_bytes() == 1000);
  // Of each token its id and type, and of a masked one its place and id.
  CHECK(alone.bytes_of_steps(3) >= 3 * 3 * (sizeof(data::PretrainingExample) + (16 + 5) * 8));
}

TEST_CASE("a replica draws its own examples alone and knows the tokens of the whole step") {
  std::vector<std::unique_ptr<Backend>> backends;
  for (int i = 0; i < 2; ++i) backends.push_back(open_cpu({.threads = 1}));
  std::array<std::set<std::int64_t>, 2> asked;
  std::array<std::int64_t, 2> tokens{};
  distributed::ReplicaGroup(std::move(backends)).run([&](const distributed::Replica& self) {
    MadeUp training({{16, 5}, {9, 2}, {12, 7}, {5, 1}, {7, 3}}, 0);
    PretrainingObjective objective(kConfig, {.training = training, .vocabulary = words()}, self);
    const auto rank = static_cast<std::size_t>(self.rank());
    tokens[rank] = objective.begin_step({.numbers = {4, 0, 2, 3}}, {.first = 2 * self.rank(), .count = 2});
    asked[rank] = training.asked;
  });
  CHECK(tokens == std::array<std::int64_t, 2>{40, 40});
  CHECK(asked == std::array<std::set<std::int64_t>, 2>{{{0, 4}, {2, 3}}});
}

TEST_CASE("what dropout hides of an example follows from its number and not from its company") {
  const std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  const NoGrad no_grad;
  MadeUp training(std::vector<data::ExampleSize>(48, {9, 2}), 0);
  for (const double dropout : {0.0, 0.5}) {
    CAPTURE(dropout);
    bert::Config config = kConfig;
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = dropout;
    PretrainingObjective objective(config, {.training = training, .vocabulary = words()}, self);
    const nn::ParameterSet parameters(objective.model(), *backend, {.seed = 5});
    const auto loss = [&](std::int64_t first, std::int64_t count, std::uint64_t key) {
      double sum = 0;
      for (const training::LossPart& part : objective.loss(first, count, key)) sum += ops::item(part.value.value());
      return sum;
    };
    objective.begin_step({.numbers = {3, 20, 43, 7}}, {.first = 0, .count = 4});
    const double of_3 = loss(0, 1, 1), of_43 = loss(2, 1, 1);
    CHECK(loss(0, 4, 1) == doctest::Approx(of_3 + loss(1, 1, 1) + of_43 + loss(3, 1, 1)).epsilon(1e-6));
    CHECK((of_3 == of_43) == (dropout == 0));  // their tokens are the same
    CHECK((of_3 == loss(0, 1, 2)) == (dropout == 0));
  }
}

TEST_CASE("the figures of an evaluation are the same however many examples are evaluated at once") {
  MadeUp held_out({{16, 5}, {9, 2}, {12, 7}, {3, 1}, {7, 3}}, 0);
  const training::Metrics expected = Evaluated(held_out, 1).objective.evaluate();
  REQUIRE(expected.size() == 5);
  CHECK(expected[0].value == doctest::Approx(expected[1].value + expected[3].value));
  for (const std::int64_t batch : {2, 3, 5, 9}) {
    CAPTURE(batch);
    const training::Metrics got = Evaluated(held_out, batch).objective.evaluate();
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].name == expected[i].name);
      CHECK(got[i].value == doctest::Approx(expected[i].value).epsilon(1e-5));
    }
  }
}

TEST_CASE("where no token is masked the loss is that of the pairs") {
  MadeUp held_out({{6, 0}, {9, 0}}, 0);
  Evaluated model(held_out, 2);
  const training::Metrics metrics = model.objective.evaluate();
  CHECK(metrics[0].value == metrics[3].value);
  CHECK(metrics[1].value == 0);
  PretrainingObjective objective(kConfig, {.training = held_out, .vocabulary = words()}, model.self);
  const nn::ParameterSet parameters(objective.model(), *model.backend, {.seed = 5});
  objective.begin_step({.numbers = {0, 1}}, {.first = 0, .count = 2});
  CHECK(ops::item(objective.loss(0, 2, 1).at(0).value.value()) == 0);
}

TEST_CASE("what was read ahead is of no other step") {
  MadeUp training({{16, 5}, {9, 2}}, 0), held_out({{4, 1}}, 0);
  const Evaluated model(held_out, 1);
  PretrainingObjective objective(kConfig, {.training = training, .vocabulary = words()}, model.self);
  objective.read_ahead({.numbers = {0}}, {.first = 0, .count = 1});
  CHECK(objective.begin_step({.numbers = {1}}, {.first = 0, .count = 1}) == 9);
  for (int begun = 0; begun < 2; ++begun) CHECK(objective.begin_step({.numbers = {0}}, {.first = 0, .count = 1}) == 16);
}

TEST_CASE("nothing is dropped from what is evaluated or sampled") {
  MadeUp held_out({{16, 5}, {9, 2}, {12, 7}}, 0);
  bert::Config dropping = kConfig;
  dropping.hidden_dropout_prob = dropping.attention_probs_dropout_prob = 0.5;
  bert::Config whole = kConfig;
  whole.hidden_dropout_prob = whole.attention_probs_dropout_prob = 0;
  Evaluated one(held_out, 3, dropping), other(held_out, 3, whole);
  CHECK(one.objective.evaluate()[0].value == other.objective.evaluate()[0].value);
  CHECK(one.objective.samples()->json == other.objective.samples()->json);
}

TEST_CASE("the accuracy of an evaluation is the share of masked tokens whose likeliest word is the true one") {
  MadeUp held_out({{16, 9}, {9, 5}, {12, 9}, {5, 3}}, 0);
  Evaluated model(held_out, 9);
  const training::Metrics metrics = model.objective.evaluate();
  const auto samples = model.objective.samples();
  REQUIRE(samples);
  int right = 0, all = 0;
  for (const auto& example : nlohmann::json::parse(samples->json))
    for (const auto& masked : example.at("masked")) {
      right += masked.at("guesses").at(0).at(0) == masked.at("truth");
      ++all;
    }
  CHECK(all == 26);
  const auto accuracy = std::ranges::find(metrics, "eval_masked_lm_accuracy", &training::Metric::name);
  REQUIRE(accuracy != metrics.end());
  CHECK(accuracy->value == doctest::Approx(right / 26.0));
}

TEST_CASE("a model that takes all words for one and all pairs for neighbours is right where that is so") {
  MadeUp held_out({{16, 9}, {9, 5}, {12, 9}, {5, 3}, {4, 0}}, 0);
  Evaluated model(held_out, 9);
  const auto prefer = [&](const char* bias, std::size_t output) {
    model.parameters.value(*model.parameters.find(bias)).span<float>()[output] = 1000;
  };
  prefer("cls.predictions.bias", 1);  // what stood at the first of all masked places, and at no other
  prefer("cls.seq_relationship.bias", 0);
  const training::Metrics metrics = model.objective.evaluate();
  const auto figure = [&](const char* name) {
    return std::ranges::find(metrics, name, &training::Metric::name)->value;
  };
  CHECK(figure("eval_masked_lm_accuracy") == doctest::Approx(1 / 26.0));
  CHECK(figure("eval_next_sentence_accuracy") == doctest::Approx(3 / 5.0));
}

TEST_CASE("samples are at most five held-out examples, spread evenly, and no more than are evaluated at once") {
  MadeUp held_out(std::vector<data::ExampleSize>(12, {6, 1}), 0);
  const auto sampled = [&](std::int64_t batch) {
    std::vector<std::string> first_words;
    const Evaluated model(held_out, batch);
    for (const auto& example : nlohmann::json::parse(model.objective.samples()->json))
      first_words.push_back(example.at("tokens").at(0));
    return first_words;
  };
  const auto word_of = [](int number) { return "w" + std::to_string(7 * number % 40); };
  CHECK(sampled(20) == std::vector{word_of(0), word_of(2), word_of(4), word_of(7), word_of(9)});
  CHECK(sampled(3) == std::vector{word_of(0), word_of(4), word_of(8)});
  CHECK(sampled(1) == std::vector{word_of(0)});
  MadeUp none({}, 0);
  CHECK_FALSE(Evaluated(none, 3).objective.samples());
}

TEST_CASE("masked words alone have the loss that they have beside next sentences, and no pooler is computed for it") {
  const std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  const distributed::Replica self(*backend);
  MadeUp training({{16, 5}, {9, 2}, {12, 7}, {5, 1}}, 0);
  bert::Config config = kConfig;
  config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.5;
  const auto computed = [&](bool next_sentence) {
    PretrainingObjective objective(config,
                                   {.training = training, .vocabulary = words(), .next_sentence = next_sentence}, self);
    const nn::ParameterSet parameters(objective.model(), *backend, {.seed = 5});
    objective.begin_step({.numbers = {3, 0, 2, 1}}, {.first = 0, .count = 4});
    Profiler profiler;
    backend->profiler = &profiler;
    const std::vector<training::LossPart> parts = objective.loss(0, 3, 7);
    backend->profiler = nullptr;
    CHECK(parts.size() == (next_sentence ? 2 : 1));
    CHECK(parts[0].name == "masked_lm_loss");
    CHECK((profiler.table().find("\nunary ") == std::string::npos) != next_sentence);  // the pooler's tanh
    return ops::item(parts[0].value.value());
  };
  CHECK(computed(true) == computed(false));
}

TEST_CASE("an evaluation of masked words alone has the figures of words that it has beside next sentences") {
  MadeUp held_out({{16, 5}, {9, 2}, {12, 7}, {3, 1}, {7, 3}}, 0);
  Evaluated both(held_out, 2), alone(held_out, 2, kConfig, false);
  const training::Metrics expected = both.objective.evaluate(), got = alone.objective.evaluate();
  REQUIRE(got.size() == 3);
  CHECK(got[0].name == "eval_loss");
  CHECK(got[0].value == got[1].value);
  for (std::size_t i = 1; i < 3; ++i) {
    CHECK(got[i].name == expected[i].name);
    CHECK(got[i].value == expected[i].value);
  }
  CHECK(alone.objective.samples()->json == both.objective.samples()->json);
}

TEST_CASE("where words are learnt alone the pooler and the head of next sentences keep every bit, in the plan too") {
  MadeUp training({{16, 5}, {9, 2}, {12, 7}, {5, 1}}, 0);
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const optim::Method method : {optim::Method::adamw_google, optim::Method::lamb, optim::Method::lamb_decayed}) {
      const std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
      const distributed::Replica self(*backend);
      PretrainingObjective objective(kConfig, {.training = training, .vocabulary = words(), .next_sentence = false},
                                     self);
      const training::PartRates rates(objective.parts(), {.decay = 0.9});
      nn::ParameterSet parameters(
          objective.model(), *backend,
          {.dtype = dtype, .seed = 5, .rate = [&](const std::string& name) { return rates.of(name); }});
      optim::Optimizer optimizer(parameters, {.method = method, .weight_decay = 0.1});
      const auto values = [&] {
        std::map<std::string, std::vector<float>> all;
        for (const auto& segment : parameters.segments())
          all[segment.name] = ops::to_host<float>(parameters.master(segment));
        return all;
      };
      const auto before = values();
      objective.begin_step({.numbers = {3, 0, 2, 1}}, {.first = 0, .count = 4});
      for (int step = 0; step < 3; ++step) {
        parameters.zero_gradients();
        backward(objective.loss(0, 4, 7).at(0).value);
        parameters.complete_gradients();
        optimizer.step(0.1);
      }
      std::set<std::string> kept;
      for (const auto& [name, now] : values())
        if (now == before.at(name)) kept.insert(name);
      CHECK(kept == std::set<std::string>{"bert.pooler.dense.bias", "bert.pooler.dense.weight",
                                          "cls.seq_relationship.bias", "cls.seq_relationship.weight"});
      Dim trained = 0;
      for (const auto& segment : parameters.segments()) trained += segment.rate == 0 ? 0 : segment.count();
      const std::string frozen = fmt::format("  frozen      pooler, nsp: {} parameters are trained\n", trained);
      CHECK(training::PartRates(objective.largest(self, 2)->parts(), {}).text(objective.model()) == frozen);
    }
}

TEST_CASE("where no token is masked, words alone have neither a loss nor a gradient, on a GPU too") {
  MadeUp unmasked({{6, 0}, {9, 0}}, 0);
  CHECK(Evaluated(unmasked, 2, kConfig, false).objective.evaluate()[0].value == 0);
  for (const bool on_gpu : {false, true}) {
    CAPTURE(on_gpu);
    const std::unique_ptr<Backend> backend = on_gpu ? testing::emulated_gpu() : open_cpu({.threads = 1});
    const distributed::Replica self(*backend);
    PretrainingObjective objective(kConfig, {.training = unmasked, .vocabulary = words(), .next_sentence = false},
                                   self);
    nn::ParameterSet parameters(objective.model(), *backend, {.seed = 5});
    objective.begin_step({.numbers = {0, 1}}, {.first = 0, .count = 2});
    const Variable loss = objective.loss(0, 2, 7).at(0).value;
    CHECK(ops::item(loss.value()) == 0);
    parameters.zero_gradients();
    backward(loss);
    CHECK(ops::item(ops::norm(parameters.gradients())) == 0);
  }
}
