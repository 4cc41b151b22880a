// An ONNX graph while it is built: nodes with one output each, constants, weights, inputs and outputs. What they mean:
// https://onnx.ai/onnx/repo-docs/IR.html and https://onnx.ai/onnx/operators.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/tensor_source.h"
#include "tensor/shape.h"

namespace bertrand::exporting::onnx {

/// The version of the operators that nodes are to be read by: the first with LayerNormalization.
constexpr int kOpset = 17;

/// A tensor that flows through the graph, by its name.
struct Value {
  std::string name;
};

/// As TensorProto.DataType numbers them.
enum class Type : int { f32 = 1, i64 = 7 };

/// A number, or the name of a length that every call may choose.
using Axis = std::variant<Dim, std::string>;

struct Attribute {
  std::string name;
  std::variant<std::int64_t, float, std::vector<std::int64_t>> value;
};

struct Node {
  std::string op, name;
  std::vector<std::string> inputs;
  std::string output;
  std::vector<Attribute> attributes;
};

/// A tensor whose numbers are in the graph itself.
struct Constant {
  std::string name;
  std::vector<Dim> dims;  ///< none: a scalar
  Type type;
  std::string bytes;
};

/// An input or output.
struct Port {
  std::string name;
  Type type;
  std::vector<Axis> axes;
};

class Graph {
 public:
  /// The nodes that follow belong to this part of the model, after which they are named.
  void enter(std::string part) { part_ = std::move(part); }

  Value input(std::string name, Type type, std::vector<Axis> axes);
  /// Gives a value of a node the name under which callers ask for it.
  void output(const Value& value, const std::string& name, std::vector<Axis> axes);

  /// Constants of equal numbers are one.
  Value number(float value);
  Value integer(std::int64_t value);
  Value integers(const std::vector<std::int64_t>& values);  ///< of rank 1
  Value table(std::string name, std::vector<Dim> dims, const std::vector<std::int64_t>& values);
  /// f32 numbers that stay where they are until they are written. A weight that is asked for again is the same.
  Value weight(io::TensorSource source);

  Value node(std::string_view op, std::initializer_list<Value> inputs, std::vector<Attribute> attributes = {});

  const std::vector<Node>& nodes() const { return nodes_; }
  const std::vector<Constant>& constants() const { return constants_; }
  const std::vector<io::TensorSource>& weights() const { return weights_; }
  const std::vector<Port>& inputs() const { return inputs_; }
  const std::vector<Port>& outputs() const { return outputs_; }

 private:
  Value constant(Constant constant);

  std::string part_;
  std::vector<Node> nodes_;
  std::vector<Constant> constants_;
  std::vector<io::TensorSource> weights_;
  std::vector<Port> inputs_, outputs_;
  std::set<std::string> names_;  // of nodes, constants and weights
};

}  // namespace bertrand::exporting::onnx
