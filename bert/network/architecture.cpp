// Names of networks, and networks made by name.
#include "bert/network/architecture.h"

#include <algorithm>

#include "bert/network/heads.h"
#include "io/error.h"

namespace bertrand::bert {

const io::Choices<Architecture>& architectures() {
  static const io::Choices<Architecture> choices{
      {"BertForSequenceClassification", Architecture::sequence_classification},
      {"BertForMultipleChoice", Architecture::multiple_choice},
      {"BertForTokenClassification", Architecture::token_classification},
      {"BertForQuestionAnswering", Architecture::question_answering},
      {"BertForMaskedLM", Architecture::masked_lm},
      {"BertForPreTraining", Architecture::pretraining},
      {"BertModel", Architecture::encoder}};
  return choices;
}

std::optional<Architecture> architecture_of(const Config& config) {
  for (const auto& [name, architecture] : architectures())
    if (std::ranges::find(config.architectures, name) != config.architectures.end()) return architecture;
  return std::nullopt;
}

std::unique_ptr<nn::Module> make_network(Architecture architecture, const Config& config,
                                         const NetworkOptions& options) {
  switch (architecture) {
    case Architecture::sequence_classification:
      return std::make_unique<ForSequenceClassification>(config, options.outputs);
    case Architecture::multiple_choice: return std::make_unique<ForSequenceClassification>(config, 1);
    case Architecture::token_classification: return std::make_unique<ForTokenClassification>(config, options.outputs);
    case Architecture::question_answering: return std::make_unique<ForQuestionAnswering>(config);
    case Architecture::masked_lm: return std::make_unique<ForMaskedLm>(config);
    case Architecture::pretraining: return std::make_unique<ForPretraining>(config);
    case Architecture::encoder: return std::make_unique<EncoderAlone>(config, options.pooler_layer);
  }
  fail(Failure::bug, "network: expected an architecture that is known, got number {}", static_cast<int>(architecture));
}

}  // namespace bertrand::bert
