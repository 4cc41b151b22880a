// MetaGraphDef: tags, graph, saver, collections, signatures.
#include "bert/export/saved_model.h"

#include <algorithm>

#include "io/protobuf.h"

namespace bertrand::exporting::tf {
namespace {

using io::append_bytes;
using io::append_entry;
using io::append_number;

/// An output as everything but NodeDef.input names it.
std::string tensor_name(const Output& output) { return output.find(':') == std::string::npos ? output + ":0" : output; }

/// As an input of a node that only waits for this one.
Output control(const Output& node) { return fmt::format("^{}", node); }

/// The nodes that restore and save every variable. Returns a SaverDef.
std::string add_saver(Graph& graph) {
  std::vector<std::string> names, slices;
  std::vector<Output> values;
  for (const auto& [name, dims] : graph.variables()) {
    names.push_back(name);
    slices.emplace_back();  // all of it
    values.push_back(name + "/Read");
  }
  const Attributes types{{"dtypes", attribute::types(std::vector<Type>(names.size(), Type::f32))}};
  const Output filename = graph.add("save/filename", "Placeholder", {},
                                    {{"dtype", attribute::type(Type::string)}, {"shape", attribute::shape({})}});
  const std::vector<Output> what{filename, graph.constant(names), graph.constant(slices)};
  const Output restored = graph.add("save/RestoreV2", "RestoreV2", what, types);
  std::vector<Output> assigned;
  for (std::size_t i = 0; i < names.size(); ++i)
    assigned.push_back(
        control(graph.add(fmt::format("save/Assign_{}", i), "AssignVariableOp",
                          {names[i], fmt::format("{}:{}", restored, i)}, {{"dtype", attribute::type(Type::f32)}})));
  graph.add("save/restore_all", "NoOp", assigned);
  values.insert(values.begin(), what.begin(), what.end());
  const Output saved = graph.add("save/SaveV2", "SaveV2", values, types);
  graph.add("save/done", "Identity", {filename, control(saved)}, {{"T", attribute::type(Type::string)}});

  constexpr std::uint64_t kVersion = 2;
  std::string saver;
  append_bytes(saver, 1, "save/filename:0");
  append_bytes(saver, 2, "save/done:0");
  append_bytes(saver, 3, "save/restore_all");
  append_number(saver, 7, kVersion);
  return saver;
}

/// A CollectionDef of VariableDefs. No loader needs it, but in Python it fills the list of the model's variables.
std::string variables_collection(const Graph& graph) {
  std::string list;
  std::size_t i = 0;
  for (const auto& [name, dims] : graph.variables()) {
    std::string variable;
    append_bytes(variable, 1, name + ":0");
    append_bytes(variable, 2, fmt::format("save/Assign_{}", i));
    append_bytes(variable, 3, name + "/Read:0");
    append_number(variable, 5, true);  // a resource
    append_bytes(variable, 6, fmt::format("save/RestoreV2:{}", i));
    append_number(variable, 7, true);  // trainable
    append_bytes(list, 1, variable);
    ++i;
  }
  std::string collection;
  append_bytes(collection, 2, list);
  return collection;
}

void append_tensors(std::string& out, int field, std::vector<NamedTensor> tensors) {
  std::ranges::sort(tensors, {}, &NamedTensor::name);
  for (const NamedTensor& tensor : tensors) {
    std::string info;
    append_bytes(info, 1, tensor_name(tensor.output));
    append_number(info, 2, static_cast<std::uint64_t>(tensor.type));
    append_bytes(info, 3, encoded_shape(tensor.dims));
    append_entry(out, field, tensor.name, info);
  }
}

std::string encoded_signature(const Signature& signature) {
  std::string out;
  append_tensors(out, 1, signature.inputs);
  append_tensors(out, 2, signature.outputs);
  append_bytes(out, 3, "tensorflow/serving/predict");
  return out;
}

}  // namespace

std::string saved_model(Graph graph, const std::vector<Signature>& signatures) {
  const std::string saver = add_saver(graph);
  std::string info;
  append_bytes(info, 4, "serve");
  append_bytes(info, 5, "1.15.0");  // the newest TensorFlow that writes this form by itself
  std::string meta_graph;
  append_bytes(meta_graph, 1, info);
  append_bytes(meta_graph, 2, graph.encoded());
  append_bytes(meta_graph, 3, saver);
  const std::string variables = variables_collection(graph);
  for (const char* collection : {"trainable_variables", "variables"})
    append_entry(meta_graph, 4, collection, variables);
  for (const Signature& signature : signatures)
    append_entry(meta_graph, 5, signature.name, encoded_signature(signature));
  std::string out;
  append_number(out, 1, 1);  // the version of the schema
  append_bytes(out, 2, meta_graph);
  return out;
}

}  // namespace bertrand::exporting::tf
