// TensorFlow's SavedModel in its first form, which every loader reads: a graph, how its variables are restored, and
// what may be asked of it (SavedModel and MetaGraphDef of tensorflow/core/protobuf).
#pragma once
#include <string>
#include <vector>

#include "bert/export/tf_graph.h"

namespace bertrand::exporting::tf {

/// An input or output under the name that a client gives it.
struct NamedTensor {
  std::string name;
  Output output;
  Type type;
  Dims dims;
};

/// One way to use the graph; TensorFlow Serving offers it for predictions.
struct Signature {
  std::string name;
  std::vector<NamedTensor> inputs, outputs;
};

/// The bytes of saved_model.pb. Adds to the graph the nodes that restore its variables from
/// variables/variables.index and save them: their names there are those of the graph.
std::string saved_model(Graph graph, const std::vector<Signature>& signatures);

}  // namespace bertrand::exporting::tf
