// The shape of a model, and what its heads are for.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "tensor/kernels.h"

namespace bertrand::bert {

/// Names and defaults of transformers' BertConfig.
struct Config {
  Dim vocab_size = 30522;
  Dim hidden_size = 768;
  Dim num_hidden_layers = 12;
  Dim num_attention_heads = 12;
  Dim intermediate_size = 3072;
  Activation hidden_act = Activation::gelu;  ///< gelu, gelu_tanh ("gelu_new") or relu
  double hidden_dropout_prob = 0.1;
  double attention_probs_dropout_prob = 0.1;
  double classifier_dropout = -1;  ///< below 0: hidden_dropout_prob
  Dim max_position_embeddings = 512;
  Dim type_vocab_size = 2;
  double initializer_range = 0.02;
  double layer_norm_eps = 1e-12;

  std::vector<std::string> labels;  ///< id2label in order; empty: none
  std::string problem_type;         ///< single_label_classification, regression, multi_label_classification or ""
  std::vector<std::string> architectures;
  std::string others = "{}";  ///< keys of a config.json that this program does not use, as a JSON object

  double head_dropout() const { return classifier_dropout < 0 ? hidden_dropout_prob : classifier_dropout; }

  /// tiny, mini, small, medium, base or large (Turc et al. 2019; Devlin et al. 2018). Throws Error(Failure::usage).
  static Config preset(std::string_view name);
  static bool is_preset(std::string_view name);
  static std::vector<std::string> preset_names();
};

}  // namespace bertrand::bert
