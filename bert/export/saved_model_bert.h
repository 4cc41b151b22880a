// BERT and its heads as a TensorFlow graph, with the names of google-research/bert.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "bert/export/tf_graph.h"
#include "bert/network/architecture.h"

namespace bertrand::exporting {

/// What the graph is made of.
struct SavedModelBert {
  const bert::Config& config;
  bert::Architecture architecture;
  bert::PoolerLayer pooler_layer;           ///< of an encoder alone
  std::filesystem::path source;             ///< the model's, for messages
  std::map<std::string, tf::Dims> weights;  ///< the shape of each by Google's name
};

/// The bytes of saved_model.pb. Two signatures give the same outputs:
///   serving_default  input_ids, input_mask, segment_ids: i32 [batch, length], padded by zeros
///   examples         examples: string [batch], each a tf.Example with lists of these names, of any length
/// Outputs are f32:
///   sequences        logits [batch, n], and of classes and labels their probabilities [batch, n]
///   words            logits and probabilities [batch, length, n]
///   answers          start_logits, end_logits [batch, length]
///   masks            logits [batch, length, vocabulary]
///   pre-training     prediction_logits [batch, length, vocabulary], seq_relationship_logits [batch, 2]
///   no head          last_hidden_state [batch, length, hidden], and of the pooler pooler_output [batch, hidden]
std::string saved_model_of(const SavedModelBert& bert);

}  // namespace bertrand::exporting
