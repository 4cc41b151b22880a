// The layers that BERT is made of. Their parameters have the names that files on disk use.
#pragma once
#include "nn/module.h"

namespace bertrand::nn {

/// y [rows, out] = activation(x [rows, in] · weightᵀ + bias)
class Linear : public Module {
 public:
  struct Sizes {
    Dim in_features = 0, out_features = 0;
    double initializer_range = 0.02;
  };
  Linear(const Scope& scope, const Sizes& sizes);
  Variable operator()(const Variable& x, Activation activation = Activation::identity) const {
    return linear(x, weight, bias, activation);
  }

  Parameter weight;  // [out, in]
  Parameter bias;    // [out]
};

/// layer_norm() and dropout_add_layer_norm() of autograd/ops.h, over x's last axis (Ba et al. 2016)
class LayerNorm : public Module {
 public:
  LayerNorm(const Scope& scope, Dim hidden, double epsilon);
  Variable operator()(const Variable& x) const;
  /// norm(dropout(x) + residual)
  Variable operator()(const Variable& x, const Variable& residual, const Dropout& dropout) const;

  Parameter weight;  // [hidden], γ
  Parameter bias;    // [hidden], β
  const double epsilon;
};

/// y [n, hidden] = the rows of weight that ids, i32 [n], name
class Embedding : public Module {
 public:
  struct Sizes {
    Dim rows = 0, hidden = 0;
    double initializer_range = 0.02;
  };
  Embedding(const Scope& scope, const Sizes& sizes);
  Variable operator()(const Tensor& ids) const { return embedding(weight, ids); }

  Parameter weight;  // [rows, hidden]
};

/// x [tokens, hidden] → [tokens, hidden]: query, key and value of every head in one product, then attention within each
/// sequence (Vaswani et al. 2017).
class SelfAttention : public Module {
 public:
  struct Sizes {
    Dim hidden = 0;
    int heads = 1;
    double dropout = 0;
    double initializer_range = 0.02;
  };
  /// The places of the sequences among packed tokens.
  struct Packing {
    Tensor offsets;  // i32 [sequences + 1]
    Dim longest = 0;
  };
  SelfAttention(const Scope& scope, const Sizes& sizes);
  Variable operator()(const Variable& x, const Packing& packing, const Randomness& randomness) const;

  Parameter weight;  // [3 · hidden, hidden]: query.weight, key.weight, value.weight
  Parameter bias;    // [3 · hidden]: query.bias, key.bias, value.bias

 private:
  int heads_;
  double dropout_;
};

}  // namespace bertrand::nn
