// An ONNX model as its file has it, decoded by the numbers of the fields of onnx.proto.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "io/protobuf.h"
#include "support/program.h"

namespace support {

struct DecodedOnnx {
  struct Node {
    std::string op, name;
    std::vector<std::string> inputs, outputs;
    std::map<std::string, std::string> attributes;  ///< numbers as text, those of a list with a blank between them
  };
  struct Tensor {
    std::string name;
    std::vector<std::int64_t> dims;
    std::uint64_t type = 0, location = 0;
    std::string raw;
    std::map<std::string, std::string> external;
  };
  std::uint64_t ir_version = 0, opset = 0;
  std::string producer, producer_version, graph_name, domain = "?";
  std::vector<Node> nodes;
  std::vector<Tensor> tensors;
  std::vector<std::string> inputs, outputs;  ///< "logits f32 [batch_size, 3]"
  std::map<std::string, std::string> metadata;

  explicit DecodedOnnx(const std::string& file_bytes);

  const Tensor* find(const std::string& name) const {
    for (const Tensor& tensor : tensors)
      if (tensor.name == name) return &tensor;
    return nullptr;
  }
  /// The operators of the nodes whose names begin so, in their order.
  std::vector<std::string> ops(const std::string& prefix) const {
    std::vector<std::string> found;
    for (const Node& node : nodes)
      if (node.name.starts_with(prefix)) found.push_back(node.op);
    return found;
  }
};

namespace decoding {

using bertrand::io::ProtoReader;
using bertrand::io::WireType;

inline void note_entry(ProtoReader entry, std::map<std::string, std::string>& entries) {
  std::string key;
  while (entry.next())
    if (entry.is(1, WireType::bytes)) key = entry.bytes();
    else if (entry.is(2, WireType::bytes)) entries[key] = entry.bytes();
}

inline void note_attribute(ProtoReader reader, DecodedOnnx::Node& node) {
  std::string name, value;
  const auto more = [&](std::uint64_t number) {
    value += (value.empty() ? "" : " ") + std::to_string(static_cast<std::int64_t>(number));
  };
  std::uint64_t type = 0, used = 0;
  while (reader.next()) {
    if (reader.is(1, WireType::bytes)) name = reader.bytes();
    else if (reader.is(2, WireType::fixed32)) value = fmt::format("{}", reader.fixed<float>()), used = 1;
    else if (reader.is(3, WireType::varint)) more(reader.varint()), used = 2;
    else if (reader.has_varints(8)) reader.each_varint(more), used = 7;
    else if (reader.is(20, WireType::varint)) type = reader.varint();
  }
  node.attributes[name] = type == used ? value : "of another type than it says";
}

inline DecodedOnnx::Node node(ProtoReader reader) {
  DecodedOnnx::Node node;
  while (reader.next())
    if (reader.is(1, WireType::bytes)) node.inputs.emplace_back(reader.bytes());
    else if (reader.is(2, WireType::bytes)) node.outputs.emplace_back(reader.bytes());
    else if (reader.is(3, WireType::bytes)) node.name = reader.bytes();
    else if (reader.is(4, WireType::bytes)) node.op = reader.bytes();
    else if (reader.is(5, WireType::bytes)) note_attribute(reader.message(), node);
  return node;
}

inline DecodedOnnx::Tensor tensor(ProtoReader reader) {
  DecodedOnnx::Tensor tensor;
  const auto dim = [&](std::uint64_t size) { tensor.dims.push_back(static_cast<std::int64_t>(size)); };
  while (reader.next())
    if (reader.has_varints(1)) reader.each_varint(dim);
    else if (reader.is(2, WireType::varint)) tensor.type = reader.varint();
    else if (reader.is(8, WireType::bytes)) tensor.name = reader.bytes();
    else if (reader.is(9, WireType::bytes)) tensor.raw = reader.bytes();
    else if (reader.is(13, WireType::bytes)) note_entry(reader.message(), tensor.external);
    else if (reader.is(14, WireType::varint)) tensor.location = reader.varint();
  return tensor;
}

inline std::string dimension(ProtoReader reader) {
  std::string text;
  while (reader.next())
    if (reader.is(1, WireType::varint)) text = std::to_string(reader.varint());
    else if (reader.is(2, WireType::bytes)) text = reader.bytes();
  return text;
}

inline std::string type_name(std::uint64_t type) {
  return type == 1 ? "f32" : type == 7 ? "i64" : std::to_string(type);
}

/// ValueInfoProto { TypeProto { Tensor { TensorShapeProto { Dimension* } } } }
inline std::string port(ProtoReader reader) {
  std::string name, type, dims;
  while (reader.next()) {
    if (reader.is(1, WireType::bytes)) name = reader.bytes();
    if (!reader.is(2, WireType::bytes)) continue;
    ProtoReader kind = reader.message();
    if (!kind.next() || !kind.is(1, WireType::bytes)) continue;
    for (ProtoReader tensor = kind.message(); tensor.next();) {
      if (tensor.is(1, WireType::varint)) type = type_name(tensor.varint());
      if (!tensor.is(2, WireType::bytes)) continue;
      for (ProtoReader shape = tensor.message(); shape.next();)
        if (shape.is(1, WireType::bytes)) dims += (dims.empty() ? "" : ", ") + dimension(shape.message());
    }
  }
  return fmt::format("{} {} [{}]", name, type, dims);
}

inline void graph(ProtoReader reader, DecodedOnnx& model) {
  while (reader.next())
    if (reader.is(1, WireType::bytes)) model.nodes.push_back(node(reader.message()));
    else if (reader.is(2, WireType::bytes)) model.graph_name = reader.bytes();
    else if (reader.is(5, WireType::bytes)) model.tensors.push_back(tensor(reader.message()));
    else if (reader.is(11, WireType::bytes)) model.inputs.push_back(port(reader.message()));
    else if (reader.is(12, WireType::bytes)) model.outputs.push_back(port(reader.message()));
}

}  // namespace decoding

inline DecodedOnnx::DecodedOnnx(const std::string& file_bytes) {
  using bertrand::io::WireType;
  bertrand::io::ProtoReader reader(file_bytes, "model.onnx", bertrand::Failure::model);
  while (reader.next()) {
    if (reader.is(1, WireType::varint)) ir_version = reader.varint();
    else if (reader.is(2, WireType::bytes)) producer = reader.bytes();
    else if (reader.is(3, WireType::bytes)) producer_version = reader.bytes();
    else if (reader.is(7, WireType::bytes)) decoding::graph(reader.message(), *this);
    else if (reader.is(14, WireType::bytes)) decoding::note_entry(reader.message(), metadata);
    if (!reader.is(8, WireType::bytes)) continue;
    for (auto set = reader.message(); set.next();)
      if (set.is(1, WireType::bytes)) domain = set.bytes();
      else if (set.is(2, WireType::varint)) opset = set.varint();
  }
}

}  // namespace support
