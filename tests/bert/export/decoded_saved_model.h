// Reads saved_model.pb back, as far as tests look at it.
#pragma once
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "io/protobuf.h"

namespace support {

struct DecodedTensor {
  std::string tensor;
  std::uint64_t type = 0;
  std::vector<std::int64_t> dims;
  bool operator==(const DecodedTensor&) const = default;
};

struct DecodedNode {
  std::string name, op;
  std::vector<std::string> inputs;
  std::map<std::string, std::string> attributes;  ///< encoded AttrValues
  std::vector<std::string> texts;                 ///< of a constant of strings
};

struct DecodedSignature {
  std::map<std::string, DecodedTensor> inputs, outputs;
  std::string method;
};

struct DecodedSavedModel {
  std::uint64_t schema = 0, producer = 0, saver_version = 0;
  std::string tensorflow;                ///< the version that the file says has written it
  std::vector<std::string> tags, saver;  ///< saver: filename, save, restore
  std::vector<DecodedNode> nodes;
  std::map<std::string, DecodedSignature> signatures;
  /// The variables of each collection; a variable is the texts and flags of its VariableDef.
  std::map<std::string, std::vector<std::vector<std::string>>> collections;

  const DecodedNode* find(const std::string& name) const {
    const auto node = std::ranges::find(nodes, name, &DecodedNode::name);
    return node == nodes.end() ? nullptr : &*node;
  }
  /// How many nodes of an op have names that begin with `prefix`.
  std::ptrdiff_t count(const std::string& op, const std::string& prefix = "") const {
    return std::ranges::count_if(nodes, [&](const DecodedNode& n) { return n.op == op && n.name.starts_with(prefix); });
  }
  std::vector<std::string> names_of(const std::string& op) const {
    std::vector<std::string> names;
    for (const DecodedNode& node : nodes)
      if (node.op == op) names.push_back(node.name);
    return names;
  }
};

namespace decoding {

using bertrand::io::ProtoReader;
using bertrand::io::WireType;

inline ProtoReader reader(std::string_view message) { return {message, "saved_model.pb", bertrand::Failure::input}; }

/// The entry of a map from names to messages.
inline std::pair<std::string, std::string> entry(std::string_view message) {
  std::pair<std::string, std::string> both;
  for (ProtoReader r = reader(message); r.next();) {
    if (r.is(1, WireType::bytes)) both.first = r.bytes();
    if (r.is(2, WireType::bytes)) both.second = r.bytes();
  }
  return both;
}

inline std::vector<std::int64_t> shape(std::string_view message) {
  std::vector<std::int64_t> dims;
  for (ProtoReader r = reader(message); r.next();)
    if (r.is(2, WireType::bytes)) {
      dims.push_back(0);
      for (ProtoReader dim = r.message(); dim.next();)
        if (dim.is(1, WireType::varint)) dims.back() = static_cast<std::int64_t>(dim.varint());
    }
  return dims;
}

inline DecodedNode node(std::string_view message) {
  DecodedNode node;
  for (ProtoReader r = reader(message); r.next();) {
    if (r.is(1, WireType::bytes)) node.name = r.bytes();
    else if (r.is(2, WireType::bytes)) node.op = r.bytes();
    else if (r.is(3, WireType::bytes)) node.inputs.emplace_back(r.bytes());
    else if (r.is(5, WireType::bytes)) node.attributes.insert(entry(r.bytes()));
  }
  if (node.op != "Const") return node;
  for (ProtoReader value = reader(node.attributes["value"]); value.next();)
    for (ProtoReader tensor = value.message(); tensor.next();)
      if (tensor.is(8, WireType::bytes)) node.texts.emplace_back(tensor.bytes());
  return node;
}

inline DecodedTensor tensor(std::string_view message) {
  DecodedTensor tensor;
  for (ProtoReader r = reader(message); r.next();) {
    if (r.is(1, WireType::bytes)) tensor.tensor = r.bytes();
    else if (r.is(2, WireType::varint)) tensor.type = r.varint();
    else if (r.is(3, WireType::bytes)) tensor.dims = shape(r.bytes());
  }
  return tensor;
}

inline DecodedSignature signature(std::string_view message) {
  DecodedSignature signature;
  for (ProtoReader r = reader(message); r.next();) {
    if (r.is(3, WireType::bytes)) {
      signature.method = r.bytes();
      continue;
    }
    const bool is_input = r.is(1, WireType::bytes);
    const auto [name, info] = entry(r.bytes());
    (is_input ? signature.inputs : signature.outputs).emplace(name, tensor(info));
  }
  return signature;
}

inline std::vector<std::vector<std::string>> collection(std::string_view message) {
  std::vector<std::vector<std::string>> variables;
  for (ProtoReader r = reader(message); r.next();)
    for (ProtoReader list = r.message(); list.next();) {
      variables.emplace_back();
      for (ProtoReader variable = list.message(); variable.next();)
        if (const int field = variable.field(); field == 1 || field == 2 || field == 3 || field == 6)
          variables.back().emplace_back(variable.bytes());
        else if (field == 5 || field == 7) variables.back().push_back(variable.varint() == 1 ? "true" : "false");
    }
  return variables;
}

inline void meta_graph(std::string_view message, DecodedSavedModel& model) {
  for (ProtoReader r = reader(message); r.next();) {
    const int field = r.field();
    const std::string_view body = r.bytes();
    for (ProtoReader inner = reader(field == 4 || field == 5 ? "" : body); inner.next();) {
      if (field == 1 && inner.is(4, WireType::bytes)) model.tags.emplace_back(inner.bytes());
      if (field == 1 && inner.is(5, WireType::bytes)) model.tensorflow = inner.bytes();
      if (field == 2 && inner.is(1, WireType::bytes)) model.nodes.push_back(node(inner.bytes()));
      if (field == 2 && inner.is(4, WireType::bytes))
        for (ProtoReader versions = inner.message(); versions.next();)
          if (versions.is(1, WireType::varint)) model.producer = versions.varint();
      if (field == 3 && inner.is(7, WireType::varint)) model.saver_version = inner.varint();
      if (field == 3 && inner.field() <= 3) model.saver.emplace_back(inner.bytes());
    }
    if (field == 4 || field == 5) {
      const auto [name, value] = entry(body);
      if (field == 4) model.collections.emplace(name, collection(value));
      else model.signatures.emplace(name, signature(value));
    }
  }
}

}  // namespace decoding

inline DecodedSavedModel decode_saved_model(std::string_view message) {
  DecodedSavedModel model;
  for (auto r = decoding::reader(message); r.next();) {
    if (r.is(1, decoding::WireType::varint)) model.schema = r.varint();
    if (r.is(2, decoding::WireType::bytes)) decoding::meta_graph(r.bytes(), model);
  }
  return model;
}

}  // namespace support
