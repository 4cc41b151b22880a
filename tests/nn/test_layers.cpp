// Each layer is the ops that it stands for; the source of its random numbers.
#include <doctest/doctest.h>

#include <cmath>

#include "nn/layers.h"
#include "nn/leaf_names.h"
#include "nn/parameter_set.h"
#include "tensor/backends.h"
#include "tensor/random.h"

using namespace bertrand;

namespace {

struct Model : nn::Module {
  Model()
      : dense(in("dense"), {.in_features = 6, .out_features = 4}),
        norm(in("norm"), 6, .25),
        table(in("table"), {.rows = 9, .hidden = 6}),
        attention(in("attention"), {.hidden = 6, .heads = 2, .dropout = .3}) {}
  nn::Linear dense;
  nn::LayerNorm norm;
  nn::Embedding table;
  nn::SelfAttention attention;
};

/// A model with values on a backend, every one of them drawn.
struct Placed {
  std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  Model model;
  nn::ParameterSet parameters{model, *backend};

  Placed() { ops::copy_into(noise(parameters.values().shape(), 1), parameters.values()); }
  Tensor noise(const Shape& shape, std::uint64_t key) const {
    Random random(key);
    std::vector<float> values(static_cast<std::size_t>(shape.elements()));
    for (float& v : values) v = static_cast<float>(2 * random.uniform() - 1);
    return ops::from_host(values, shape, *backend);
  }
  nn::Randomness randomness() const {
    return {.training = true,
            .key = 12,
            .row_keys = ops::from_host(std::vector<std::int64_t>{4, 9, -1, 1000, 7}, {5}, *backend)};
  }
};

std::vector<float> values(const Variable& x) { return ops::to_host<float>(x.value()); }

}  // namespace

TEST_CASE("layers are the ops they stand for with their own parameters") {
  const Placed p;
  const Model& m = p.model;
  const Variable x(p.noise({5, 6}, 2)), residual(p.noise({5, 6}, 3));
  CHECK(values(m.dense(x)) == values(linear(x, m.dense.weight, m.dense.bias)));
  CHECK(values(m.dense(x, Activation::gelu)) == values(linear(x, m.dense.weight, m.dense.bias, Activation::gelu)));
  CHECK(values(m.norm(x)) == values(layer_norm(x, m.norm.weight, m.norm.bias, .25)));
  const Dropout dropout = p.randomness().dropout(.5, 3);
  CHECK(values(m.norm(x, residual, dropout)) ==
        values(dropout_add_layer_norm(x, residual, m.norm.weight, m.norm.bias, {.epsilon = .25, .dropout = dropout})));
  const Tensor ids = ops::from_host(std::vector<std::int32_t>{8, 0, 8}, {3}, *p.backend);
  CHECK(values(m.table(ids)) == values(embedding(m.table.weight, ids)));
}

TEST_CASE("self-attention projects once splits into heads and drops under the name of its module") {
  const Placed p;
  const Model& m = p.model;
  const Variable x(p.noise({5, 6}, 2));
  const nn::SelfAttention::Packing packing{
      .offsets = ops::from_host(std::vector<std::int32_t>{0, 2, 5}, {3}, *p.backend), .longest = 3};
  const Variable projected = linear(x, m.attention.weight, m.attention.bias);
  CHECK(values(m.attention(x, packing, {})) ==
        values(attention(projected, {.offsets = packing.offsets, .heads = 2, .longest = 3})));
  const Dropout dropout = p.randomness().dropout(.3, hash_name("attention."));
  CHECK(values(m.attention(x, packing, p.randomness())) ==
        values(attention(projected, {.offsets = packing.offsets, .heads = 2, .longest = 3, .dropout = dropout})));
}

TEST_CASE("nothing is dropped outside training or with probability 0") {
  const Placed p;
  CHECK_FALSE(nn::Randomness{}.dropout(.5, 1));
  CHECK_FALSE(p.randomness().dropout(0, 1));
  CHECK(p.randomness().dropout(.1, 1).threshold == 6554);  // .1 · 65536, rounded
}

TEST_CASE("a dropout is keyed by the pass and by the site and keeps the row keys") {
  const Placed p;
  nn::Randomness other_pass = p.randomness();
  other_pass.key = 13;
  const std::uint64_t key = p.randomness().dropout(.5, 1).key;
  CHECK(p.randomness().dropout(.5, 1).key == key);
  CHECK(p.randomness().dropout(.5, 2).key != key);
  CHECK(other_pass.dropout(.5, 1).key != key);
  CHECK(p.model.dense.site() != p.model.norm.site());
  CHECK(ops::to_host<std::int64_t>(p.randomness().dropout(.5, 1).row_keys) ==
        std::vector<std::int64_t>{4, 9, -1, 1000, 7});
}

TEST_CASE("the randomness of a selection of rows keeps their keys") {
  const Placed p;
  const Tensor picked = ops::from_host(std::vector<std::int32_t>{3, 0}, {2}, *p.backend);
  const nn::Randomness some = p.randomness().rows(picked);
  CHECK(some.key == 12);
  CHECK(ops::to_host<std::int64_t>(some.row_keys) == std::vector<std::int64_t>{1000, 4});
  CHECK_FALSE(nn::Randomness{}.rows(picked).training);
}

TEST_CASE("leaves of a graph have the names of parameters and stacked ones have all of theirs") {
  const auto backend = open_cpu({.threads = 1});
  nn::SelfAttention layer({}, {.hidden = 4, .heads = 2});
  const nn::ParameterSet parameters(layer, *backend);
  const LeafNames names = nn::leaf_names(layer);
  REQUIRE(names.size() == 2);
  CHECK(names[0].first == "query.weight+key.weight+value.weight");
  CHECK(graph(sum(layer.bias), names).find("label=\"query.bias+key.bias+value.bias\\n[12]\"") != std::string::npos);
}
