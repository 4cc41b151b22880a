// A TensorFlow graph that is built node by node: GraphDef, NodeDef, AttrValue and TensorProto of
// tensorflow/core/framework, written without TensorFlow.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace bertrand::exporting::tf {

/// As types.proto numbers them.
enum class Type : int { f32 = 1, i32 = 3, string = 7, i64 = 9 };

/// The shape of a tensor; -1 for a dimension of any size.
using Dims = std::vector<std::int64_t>;

/// A TensorShapeProto.
std::string encoded_shape(const Dims& dims);

/// Values of attributes: each an encoded AttrValue.
namespace attribute {
std::string number(std::int64_t value);
std::string flag(bool value);
std::string text(std::string_view value);
std::string type(Type value);
std::string types(const std::vector<Type>& values);
std::string shape(const Dims& value);
std::string shapes(const std::vector<Dims>& values);
}  // namespace attribute

/// By name. One that has the default of its op may be left out; TensorFlow adds it.
using Attributes = std::map<std::string, std::string>;

/// An output of a node as another node's input names it: "node", or "node:1" for its second one.
using Output = std::string;

/// The nodes of a graph, each after those that it reads.
class Graph {
 public:
  /// `variables`: the shape of each by its name, all f32.
  explicit Graph(std::map<std::string, Dims> variables) : variables_(std::move(variables)) {}

  /// Appends a node with this name, or with name_1, name_2, … if there is one of that name. Returns its first output.
  Output add(const std::string& name, const std::string& op, const std::vector<Output>& inputs,
             const Attributes& attributes = {});

  /// Constants; equal ones are one node. A vector is of shape [size].
  Output constant(float value);
  Output constant(std::int32_t value);
  Output constant(std::int64_t value);
  Output constant(const std::vector<std::int32_t>& values);
  Output constant(const std::vector<std::string>& values);

  /// The numbers of a variable. The first call makes its nodes: NAME, which is the variable, and NAME/Read. Throws
  /// Error(Failure::bug) for an unknown name.
  Output variable(const std::string& name);
  const std::map<std::string, Dims>& variables() const { return variables_; }

  /// The GraphDef. Throws Error(Failure::bug) if a variable was never read.
  std::string encoded() const;

 private:
  Output constant(Type type, const Dims& dims, std::string_view content);
  Output constant(Type type, const std::string& tensor);

  std::map<std::string, Dims> variables_;
  std::set<std::string> names_, read_;
  std::map<std::string, Output> constants_;  // by the encoded tensor
  std::string nodes_;
};

/// A place in the names of a graph, as nn::Scope is one in those of a model: the nodes and variables of scope / "query"
/// have names that begin with "query/".
class Scope {
 public:
  explicit Scope(Graph& graph, std::string path = "") : graph_(&graph), path_(std::move(path)) {}
  Scope operator/(std::string_view name) const;

  /// Appends a node that is named as its op.
  Output op(const std::string& op, const std::vector<Output>& inputs, const Attributes& attributes = {}) const;
  /// The same for an op on tensors of one type, which is its attribute T.
  Output op_on(Type type, const std::string& op, const std::vector<Output>& inputs, Attributes attributes = {}) const;
  Output f32(const std::string& op, const std::vector<Output>& inputs, Attributes attributes = {}) const {
    return op_on(Type::f32, op, inputs, std::move(attributes));
  }
  Output variable(std::string_view name) const { return graph_->variable(inside(name)); }
  template <class Value>
  Output constant(const Value& value) const {
    return graph_->constant(value);
  }

 private:
  std::string inside(std::string_view name) const;

  Graph* graph_;
  std::string path_;
};

}  // namespace bertrand::exporting::tf
