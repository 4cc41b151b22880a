// Nodes, attributes and constants as protocol buffers.
#include "bert/export/tf_graph.h"

#include "io/error.h"
#include "io/protobuf.h"

namespace bertrand::exporting::tf {
namespace {

constexpr std::uint64_t kProducer = 134;  // the version of graphs that TensorFlow 1.15 writes

// The fields of AttrValue and of its ListValue, which share their numbers.
constexpr int kList = 1, kText = 2, kNumber = 3, kFlag = 5, kType = 6, kShape = 7, kTensor = 8;

std::string number_field(int field, std::uint64_t value) {
  std::string out;
  io::append_number(out, field, value);
  return out;
}

std::string bytes_field(int field, std::string_view bytes) {
  std::string out;
  io::append_bytes(out, field, bytes);
  return out;
}

/// What a TensorProto says before its numbers.
std::string tensor_of(Type type, const Dims& dims) {
  return number_field(1, static_cast<std::uint64_t>(type)) + bytes_field(2, encoded_shape(dims));
}

template <class T>
std::string_view bytes_of(const T* values, std::size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(T)};
}

}  // namespace

std::string encoded_shape(const Dims& dims) {
  std::string shape;
  for (const std::int64_t dim : dims)
    io::append_bytes(shape, 2, dim == 0 ? "" : number_field(1, static_cast<std::uint64_t>(dim)));
  return shape;
}

namespace attribute {

std::string number(std::int64_t value) { return number_field(kNumber, static_cast<std::uint64_t>(value)); }
std::string flag(bool value) { return number_field(kFlag, value); }
std::string text(std::string_view value) { return bytes_field(kText, value); }
std::string type(Type value) { return number_field(kType, static_cast<std::uint64_t>(value)); }
std::string types(const std::vector<Type>& values) {
  std::string packed;
  for (const Type value : values) io::append_varint(packed, static_cast<std::uint64_t>(value));
  return bytes_field(kList, values.empty() ? "" : bytes_field(kType, packed));
}
std::string shape(const Dims& value) { return bytes_field(kShape, encoded_shape(value)); }
std::string shapes(const std::vector<Dims>& values) {
  std::string list;
  for (const Dims& value : values) io::append_bytes(list, kShape, encoded_shape(value));
  return bytes_field(kList, list);
}

}  // namespace attribute

Output Graph::add(const std::string& name, const std::string& op, const std::vector<Output>& inputs,
                  const Attributes& attributes) {
  std::string unique = name;
  for (int i = 1; !names_.insert(unique).second; ++i) unique = fmt::format("{}_{}", name, i);
  std::string node = bytes_field(1, unique) + bytes_field(2, op);
  for (const Output& input : inputs) io::append_bytes(node, 3, input);
  for (const auto& [key, value] : attributes) io::append_entry(node, 5, key, value);
  io::append_bytes(nodes_, 1, node);
  return unique;
}

Output Graph::constant(Type type, const std::string& tensor) {
  Output& node = constants_[tensor];
  if (node.empty())
    node = add("Const", "Const", {}, {{"dtype", attribute::type(type)}, {"value", bytes_field(kTensor, tensor)}});
  return node;
}

Output Graph::constant(Type type, const Dims& dims, std::string_view content) {
  return constant(type, tensor_of(type, dims) + bytes_field(4, content));
}

Output Graph::constant(float value) { return constant(Type::f32, {}, bytes_of(&value, 1)); }
Output Graph::constant(std::int32_t value) { return constant(Type::i32, {}, bytes_of(&value, 1)); }
Output Graph::constant(std::int64_t value) { return constant(Type::i64, {}, bytes_of(&value, 1)); }
Output Graph::constant(const std::vector<std::int32_t>& values) {
  return constant(Type::i32, {std::ssize(values)}, bytes_of(values.data(), values.size()));
}
Output Graph::constant(const std::vector<std::string>& values) {
  std::string tensor = tensor_of(Type::string, {std::ssize(values)});
  for (const std::string& value : values) io::append_bytes(tensor, 8, value);
  return constant(Type::string, tensor);
}

Output Graph::variable(const std::string& name) {
  const auto found = variables_.find(name);
  check(found != variables_.end(), "graph: variable {}: expected one of the model's, got none of that name", name);
  if (read_.insert(name).second) {
    add(name, "VarHandleOp", {},
        {{"dtype", attribute::type(Type::f32)},
         {"shape", attribute::shape(found->second)},
         {"shared_name", attribute::text(name)}});
    add(name + "/Read", "ReadVariableOp", {name}, {{"dtype", attribute::type(Type::f32)}});
  }
  return name + "/Read";
}

std::string Graph::encoded() const {
  for (const auto& [name, dims] : variables_)
    check(read_.contains(name), "graph: variable {}: expected a node that reads it, got none", name);
  return nodes_ + bytes_field(4, number_field(1, kProducer));
}

Scope Scope::operator/(std::string_view name) const { return Scope(*graph_, inside(name)); }

Output Scope::op(const std::string& op, const std::vector<Output>& inputs, const Attributes& attributes) const {
  return graph_->add(inside(op), op, inputs, attributes);
}

Output Scope::op_on(Type type, const std::string& op, const std::vector<Output>& inputs, Attributes attributes) const {
  attributes["T"] = attribute::type(type);
  return this->op(op, inputs, attributes);
}

std::string Scope::inside(std::string_view name) const {
  return path_.empty() ? std::string(name) : fmt::format("{}/{}", path_, name);
}

}  // namespace bertrand::exporting::tf
