// Values get names that tell in a viewer where they come from.
#include "bert/export/onnx_graph.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "io/error.h"

namespace bertrand::exporting::onnx {
namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

Value Graph::input(std::string name, Type type, std::vector<Axis> axes) {
  inputs_.push_back({name, type, std::move(axes)});
  return {std::move(name)};
}

void Graph::output(const Value& value, const std::string& name, std::vector<Axis> axes) {
  const std::string before = value.name;  // `value` may be a reference into the node
  for (Node& node : nodes_) {
    if (node.output == before) node.output = name;
    std::ranges::replace(node.inputs, before, name);
  }
  outputs_.push_back({name, Type::f32, std::move(axes)});
}

Value Graph::constant(Constant constant) {
  const Value value{constant.name};
  if (names_.insert(constant.name).second) constants_.push_back(std::move(constant));
  return value;
}

Value Graph::number(float value) {
  return constant({fmt::format("f32_{}", value), {}, Type::f32, bytes_of(std::vector{value})});
}

Value Graph::integer(std::int64_t value) {
  return constant({fmt::format("i64_{}", value), {}, Type::i64, bytes_of(std::vector{value})});
}

Value Graph::integers(const std::vector<std::int64_t>& values) {
  return constant({fmt::format("i64s_{}", fmt::join(values, "_")), {std::ssize(values)}, Type::i64, bytes_of(values)});
}

Value Graph::table(std::string name, std::vector<Dim> dims, const std::vector<std::int64_t>& values) {
  return constant({std::move(name), std::move(dims), Type::i64, bytes_of(values)});
}

Value Graph::weight(io::TensorSource source) {
  check(source.type->name == "F32", "onnx: expected a weight of F32, got {} of {}", source.name, source.type->name);
  const Value value{source.name};
  if (names_.insert(source.name).second) weights_.push_back(std::move(source));
  return value;
}

Value Graph::node(std::string_view op, std::initializer_list<Value> inputs, std::vector<Attribute> attributes) {
  std::string name = fmt::format("{}/{}", part_, op);
  for (int i = 2; !names_.insert(name).second; ++i) name = fmt::format("{}/{}_{}", part_, op, i);
  Node node{.op = std::string(op), .name = name, .output = name + ":0", .attributes = std::move(attributes)};
  for (const Value& input : inputs) node.inputs.push_back(input.name);
  nodes_.push_back(std::move(node));
  return {nodes_.back().output};
}

}  // namespace bertrand::exporting::onnx
