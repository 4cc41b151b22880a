// Frozen parts and layer-wise decay in a whole BERT, against PyTorch.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "autograd/engine.h"
#include "bert/network/heads.h"
#include "bert/network/parts.h"
#include "optim/optimizer.h"
#include "support/refusal.h"
#include "tensor/backends.h"
#include "tensor/profiler.h"
#include "training/run/part_rates.h"

using namespace bertrand;

namespace {

const bert::Config kConfig{.vocab_size = 13,
                           .hidden_size = 8,
                           .num_hidden_layers = 3,
                           .num_attention_heads = 2,
                           .intermediate_size = 16,
                           .hidden_dropout_prob = 0,
                           .attention_probs_dropout_prob = 0,
                           .max_position_embeddings = 10};

/// Weights that PyTorch can make too: 0.3 sin(0.37 i (1 + i / 50) + the sum of the name's letters), plus 1 for γ.
void fill(nn::ParameterSet& parameters) {
  for (const auto& segment : parameters.segments()) {
    const double phase = std::accumulate(segment.name.begin(), segment.name.end(), 0.0);
    std::vector<double> values(static_cast<std::size_t>(segment.count()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto x = static_cast<double>(i);
      values[i] =
          0.3 * std::sin(0.37 * x * (1 + x / 50) + phase) + (segment.name.ends_with("LayerNorm.weight") ? 1 : 0);
    }
    ops::copy_into(ops::from_host(values, segment.shape, parameters.backend()), parameters.master(segment));
  }
  parameters.round_masters();
}

std::vector<bert::Sequence> sequences() {
  std::vector<bert::Sequence> all;
  for (int s = 0; s < 3; ++s) {
    all.emplace_back();
    for (int t = 0; t < (s == 0 ? 5 : s == 1 ? 7 : 4); ++t) {
      all.back().token_ids.push_back(1 + (5 * s + 3 * t) % 12);  // transformers gives id 0 no gradient
      all.back().token_types.push_back(t >= 3);
    }
  }
  return all;
}

struct Trajectory {
  std::vector<double> losses, norms;
  double words = 0, last_dense = 0;  ///< sums of absolute weights of the first and the last table of the encoder
  std::string profile;               ///< of all ops
};

double absolute_sum(const nn::ParameterSet& parameters, const std::string& name) {
  double sum = 0;
  for (const double x : ops::to_host<double>(parameters.master(*parameters.find(name)))) sum += std::abs(x);
  return sum;
}

Trajectory train(const training::PartRates::Options& options, DType dtype = DType::f64) {
  const auto backend = open_cpu({.threads = 2});
  bert::ForSequenceClassification model(kConfig, 2);
  const training::PartRates rates(bert::parts_of(model), options);
  nn::ParameterSet parameters(model, *backend,
                              {.dtype = dtype, .rate = [&](const std::string& name) { return rates.of(name); }});
  fill(parameters);
  optim::Optimizer optimizer(parameters, {.method = optim::Method::adamw, .epsilon = 1e-8});
  const bert::PackedBatch batch = bert::pack(sequences(), *backend);
  const Tensor labels = ops::from_host(std::vector<std::int32_t>{0, 1, 1}, {3}, *backend);
  Trajectory trajectory;
  Profiler profiler;
  backend->profiler = &profiler;
  for (int step = 0; step < 10; ++step) {
    const Variable loss = softmax_cross_entropy(model(batch, {}), labels, 3);
    trajectory.losses.push_back(ops::item(loss.value()));
    parameters.zero_gradients();
    backward(loss);
    trajectory.norms.push_back(optimizer.step(0.02));
  }
  backend->profiler = nullptr;
  trajectory.profile = profiler.table();
  trajectory.words = absolute_sum(parameters, "bert.embeddings.word_embeddings.weight");
  trajectory.last_dense = absolute_sum(parameters, "bert.encoder.layer.2.output.dense.weight");
  return trajectory;
}

/// How often an op ran.
int calls(const std::string& table, const std::string& op) {
  const std::size_t at = table.find("\n" + op + " ");
  return at == std::string::npos ? 0 : std::stoi(table.substr(at + op.size() + 1));
}

/// Figures of PyTorch 2 and transformers 4 in double precision: BertForSequenceClassification with the weights of
/// fill(), no dropout, AdamW (rate 0.02 · d^below in a group for each parameter, betas 0.9 and 0.999, epsilon 1e-8,
/// decay 0.01 but for biases and LayerNorm), gradients that are not frozen divided by their norm if it is above 1.
struct Golden {
  training::PartRates::Options options;
  std::vector<double> losses, norms;
  double words, last_dense;
};
const Golden kGolden[] = {{{},
                           {0.790133651723, 0.570544842824, 0.459718141379, 0.329205046891, 0.232397811414,
                            0.168809286338, 0.121941544974, 0.089162092750, 0.066808656632, 0.051283184687},
                           {1.337561537313, 0.594465730043, 0.877073201657},
                           21.0629313,
                           24.867120966},
                          {{.freeze = "embeddings,0-1"},
                           {0.790133651723, 0.574156003748, 0.466979453075, 0.373940126578, 0.286081318415,
                            0.202945027616, 0.138909949416, 0.099121307043, 0.073972595171, 0.056825736743},
                           {1.080753653832, 0.685978002849, 0.633390510635},
                           20.048618304,
                           26.248231557},
                          {{.decay = 0.5},
                           {0.790133651723, 0.589723851774, 0.480462030326, 0.378348668753, 0.272722389328,
                            0.184117009492, 0.126446329915, 0.091604565525, 0.068656130207, 0.052745361676},
                           {1.337561537313, 0.814593982855, 0.912759978733},
                           20.17803058,
                           25.177359701},
                          {{.freeze = "1,pooler", .decay = 0.5},
                           {0.790133651723, 0.672835170830, 0.605228105775, 0.559359437107, 0.515392974942,
                            0.464726895311, 0.406054977908, 0.343358898571, 0.283547295041, 0.231742975900},
                           {1.078932441929, 0.698395702928, 0.596588943348},
                           20.169497391,
                           26.049617059}};

}  // namespace

TEST_CASE("frozen parts and layer-wise decay follow PyTorch for ten steps") {
  for (const Golden& golden : kGolden)
    for (const DType dtype : {DType::f64, DType::f32}) {
      INFO(golden.options.freeze << ", decay " << golden.options.decay << ", " << name_of(dtype));
      const Trajectory got = train(golden.options, dtype);
      const double tolerance = dtype == DType::f64 ? 1e-11 : 2e-6, total = dtype == DType::f64 ? 1e-9 : 4e-5;
      for (std::size_t i = 0; i < got.losses.size(); ++i)
        CHECK(std::abs(got.losses[i] - golden.losses[i]) <= tolerance);
      for (std::size_t i = 0; i < golden.norms.size(); ++i)
        CHECK(std::abs(got.norms[i] - golden.norms[i]) <= tolerance);
      CHECK(std::abs(got.words - golden.words) <= total);
      CHECK(std::abs(got.last_dense - golden.last_dense) <= total);
    }
}

TEST_CASE("backward ends above the lowest part that is trained") {
  const auto passes = [](const std::string& freeze, const std::string& op) {
    return calls(train({.freeze = freeze}).profile, op) / 10;
  };
  CHECK(passes("", "attention_backward") == 3);
  CHECK(passes("embeddings,0-1", "attention_backward") == 1);
  CHECK(passes("embeddings,0-2", "attention_backward") == 0);
  CHECK(passes("1", "attention_backward") == 3);  // the gradient passes through
  CHECK(passes("embeddings,0-2,pooler", "layer_norm_backward") == 0);
  CHECK(passes("embeddings", "scatter_add") < passes("", "scatter_add"));
}

TEST_CASE("a BERT has the parts that its parameters have and others are refused with a list") {
  bert::ForSequenceClassification with_pooler(kConfig, 2);
  bert::ForTokenClassification without(kConfig, 2);
  const auto refusal = [](const nn::Module& model, const std::string& freeze) {
    return support::refusal(Failure::usage, [&] { training::PartRates(bert::parts_of(model), {.freeze = freeze}); });
  };
  CHECK(refusal(with_pooler, "3") == "--freeze: expected some of embeddings, 0 to 2, pooler, got \"3\"");
  CHECK(refusal(with_pooler, "embeddings,0-7") == "--freeze: expected some of embeddings, 0 to 2, pooler, got \"0-7\"");
  CHECK(refusal(with_pooler, "embedings") ==
        "--freeze: expected some of embeddings, 0 to 2, pooler, got \"embedings\"; did you mean embeddings?");
  CHECK(refusal(without, "pooler") == "--freeze: expected some of embeddings, 0 to 2, got \"pooler\"");
  CHECK(refusal(with_pooler, "2-1") == "--freeze: expected a range that goes up, got \"2-1\"");
  for (const std::string text : {",", "0,", "-1", "0-", "0--1", "head", "1 "}) {
    CAPTURE(text);
    CHECK(refusal(with_pooler, text).starts_with("--freeze: expected some of embeddings, 0 to 2, pooler, got \""));
  }
  std::vector<nn::Part> twelve;
  for (int layer = 0; layer < 12; ++layer) twelve.push_back({.name = std::to_string(layer), .prefix = {}, .below = 1});
  CHECK(support::refusal(Failure::usage, [&] { training::PartRates(twelve, {.freeze = "12"}); }) ==
        "--freeze: expected some of 0 to 11, got \"12\"");
  CHECK(support::refusal(Failure::usage, [] { training::PartRates({}, {.decay = 0.9}); }) ==
        "--freeze, --layer-decay: expected a model with parts, got one without");
}

TEST_CASE("the plan names what is frozen and the share of each part") {
  bert::ForSequenceClassification model(kConfig, 2);
  const auto text = [&](const training::PartRates::Options& options) {
    return training::PartRates(bert::parts_of(model), options).text(model);
  };
  CHECK(text({}).empty());
  CHECK(text({.decay = 0.9}) == "  rates       times: head 1, 2 0.9, 1 0.81, 0 0.729, embeddings 0.6561\n");
  CHECK(text({.freeze = "1-1"}) == text({.freeze = "1"}));
  CHECK(text({.freeze = "embeddings,0-2"}) == "  frozen      embeddings, 0 to 2: 90 parameters are trained\n");
  CHECK(
      text({.freeze = "embeddings,0,pooler", .decay = 0.5}) ==
      "  frozen      embeddings, 0, pooler: 1218 parameters are trained\n  rates       times: head 1, 2 0.5, 1 0.25\n");
}
