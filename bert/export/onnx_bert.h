// BERT and its heads as an ONNX model.
#pragma once
#include "bert/export/onnx_file.h"
#include "bert/network/architecture.h"
#include "nn/parameter_set.h"

namespace bertrand::exporting {

/// What the model is made of.
struct OnnxBert {
  const bert::Config& config;
  bert::Architecture architecture;
  bert::PoolerLayer pooler_layer;      ///< of an encoder alone
  const nn::ParameterSet& parameters;  ///< f32, in the memory of the host
};

/// Inputs, as of transformers: input_ids, attention_mask (1: a token, 0: padding) and token_type_ids, i64 [batch_size,
/// sequence_length]. Outputs are f32:
///   sequences        logits [batch_size, n]
///   words            logits [batch_size, sequence_length, n]
///   answers          start_logits, end_logits [batch_size, sequence_length]
///   masks            logits [batch_size, sequence_length, vocabulary]
///   pre-training     prediction_logits as of masks, seq_relationship_logits [batch_size, 2]
///   no head          last_hidden_state [batch_size, sequence_length, hidden], and of the pooler pooler_output
///                    [batch_size, hidden]
/// The shape of every part is one that the optimizer of ONNX Runtime fuses: change none of it without bench/peers/
/// check_onnx.py. Weights have the names of the model directory; those of dense layers are stored as [in, out].
onnx::Graph onnx_graph_of(const OnnxBert& bert);

/// Writes model.onnx, and model.onnx.data if the options or the size ask for it, into a directory that exists. The
/// metadata are task, architecture, id2label (JSON, of a classifier), bertrand_version and weights_sha256. Throws
/// Error(Failure::io).
void write_onnx(io::Files& files, const std::filesystem::path& directory, const OnnxBert& bert,
                const onnx::FileOptions& options = {});

}  // namespace bertrand::exporting
