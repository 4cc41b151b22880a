// The very small BERT with a head, for programs that predict.
#pragma once
#include "bert/network/heads.h"
#include "support/small_model.h"

namespace support {

struct SmallHead {
  std::string architecture;
  std::vector<std::string> labels = {};
  std::string problem_type = "";
  bertrand::Dim positions = 24;
  bertrand::Dim types = 2;
  bertrand::Dim rows = 15;  ///< of the word embeddings, for a vocabulary of 15 tokens
};

/// Writes a model directory whose network is `Network(config, arguments...)`. Its initial weights are 20 times larger
/// than usual, so that its answers differ from text to text.
template <class Network, class... Arguments>
void write_small_head(const std::filesystem::path& directory, const SmallHead& head, const Arguments&... arguments) {
  using namespace bertrand;
  std::filesystem::create_directories(directory);
  bert::Config config{.vocab_size = head.rows,
                      .hidden_size = 16,
                      .num_hidden_layers = 1,
                      .num_attention_heads = 2,
                      .intermediate_size = 32,
                      .max_position_embeddings = head.positions,
                      .type_vocab_size = head.types};
  config.initializer_range = 0.4;
  config.labels = head.labels;
  config.problem_type = head.problem_type;
  if (!head.architecture.empty()) config.architectures = {head.architecture};
  const auto backend = open_cpu({.threads = 1});
  Network model(config, arguments...);
  const nn::ParameterSet parameters(model, *backend);
  bert::write_directory(io::Files::system(), directory,
                        {.config = config, .vocabulary = kSmallVocabulary, .tokenizer = {}}, parameters);
}

inline void write_small_classifier(const std::filesystem::path& directory,
                                   const std::vector<std::string>& labels = {"fish", "bird", "none"}) {
  write_small_head<bertrand::bert::ForSequenceClassification>(
      directory, {.architecture = "BertForSequenceClassification", .labels = labels},
      static_cast<bertrand::Dim>(labels.size()));
}

inline void write_small_labeller(const std::filesystem::path& directory, const std::vector<std::string>& labels) {
  write_small_head<bertrand::bert::ForTokenClassification>(
      directory, {.architecture = "BertForTokenClassification", .labels = labels},
      static_cast<bertrand::Dim>(labels.size()));
}

}  // namespace support
