// The networks of this library by the names that transformers gives them in config.json.
#pragma once
#include <memory>
#include <optional>

#include "bert/network/bert.h"
#include "io/choices.h"

namespace bertrand::bert {

enum class Architecture {
  sequence_classification,
  multiple_choice,  ///< a score for each of several texts, of which one is right
  token_classification,
  question_answering,
  masked_lm,
  pretraining,
  encoder  ///< no head
};
/// Of texts or of tokens.
inline bool has_labels(Architecture architecture) {
  return architecture == Architecture::sequence_classification || architecture == Architecture::token_classification;
}
/// BertForSequenceClassification, ….
const io::Choices<Architecture>& architectures();

/// The first of architectures() that `config` names; none if it names none of them.
std::optional<Architecture> architecture_of(const Config& config);

struct NetworkOptions {
  Dim outputs = 2;                                  ///< of a classifier
  PoolerLayer pooler_layer = PoolerLayer::present;  ///< of an encoder
};
/// The network without memory: a ParameterSet gives it some.
std::unique_ptr<nn::Module> make_network(Architecture architecture, const Config& config,
                                         const NetworkOptions& options);

}  // namespace bertrand::bert
