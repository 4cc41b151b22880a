// The messages of onnx.proto, by the numbers of their fields, around weights that are streamed.
#include "bert/export/onnx_file.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

#include "io/error.h"
#include "io/protobuf.h"
#include "io/sha256.h"
#include "io/version.h"

namespace bertrand::exporting::onnx {
namespace {

using io::append_bytes;
using io::append_length;
using io::append_number;

constexpr int kIrVersion = 8;                   // what goes with opset 17
constexpr std::uint64_t kLeastExternal = 1024;  // as in onnx: smaller tensors are read when shapes are inferred
constexpr std::uint64_t kAlignment = 4096;      // so that a reader may map each tensor

std::string attribute_proto(const Attribute& attribute) {
  enum { kFloat = 1, kInt = 2, kInts = 7 };
  std::string out;
  append_bytes(out, 1, attribute.name);
  const auto with_type = [&](int type) { append_number(out, 20, static_cast<std::uint64_t>(type)); };
  if (const auto* real = std::get_if<float>(&attribute.value)) {
    io::append_float(out, 2, *real);
    with_type(kFloat);
  } else if (const auto* whole = std::get_if<std::int64_t>(&attribute.value)) {
    append_number(out, 3, static_cast<std::uint64_t>(*whole));
    with_type(kInt);
  } else {
    for (const std::int64_t i : std::get<std::vector<std::int64_t>>(attribute.value))
      append_number(out, 8, static_cast<std::uint64_t>(i));
    with_type(kInts);
  }
  return out;
}

std::string node_proto(const Node& node) {
  std::string out;
  for (const std::string& input : node.inputs) append_bytes(out, 1, input);
  append_bytes(out, 2, node.output);
  append_bytes(out, 3, node.name);
  append_bytes(out, 4, node.op);
  for (const Attribute& attribute : node.attributes) append_bytes(out, 5, attribute_proto(attribute));
  return out;
}

/// A TensorProto up to its numbers.
std::string tensor_proto(const std::string& name, Type type, const std::vector<Dim>& dims) {
  std::string out;
  for (const Dim dim : dims) append_number(out, 1, static_cast<std::uint64_t>(dim));
  append_number(out, 2, static_cast<std::uint64_t>(type));
  append_bytes(out, 8, name);
  return out;
}

std::string constant_proto(const Constant& constant) {
  std::string out = tensor_proto(constant.name, constant.type, constant.dims);
  append_bytes(out, 9, constant.bytes);
  return out;
}

/// ValueInfoProto { TypeProto { TypeProto.Tensor { TensorShapeProto { Dimension* } } } }
std::string port_proto(const Port& port) {
  std::string shape, tensor, type, out;
  for (const Axis& axis : port.axes) {
    std::string dimension;
    if (const auto* length = std::get_if<Dim>(&axis)) append_number(dimension, 1, static_cast<std::uint64_t>(*length));
    else append_bytes(dimension, 2, std::get<std::string>(axis));
    append_bytes(shape, 1, dimension);
  }
  append_number(tensor, 1, static_cast<std::uint64_t>(port.type));
  append_bytes(tensor, 2, shape);
  append_bytes(type, 1, tensor);
  append_bytes(out, 1, port.name);
  append_bytes(out, 2, type);
  return out;
}

/// A weight and where its numbers are to go.
struct Placed {
  const io::TensorSource* weight;
  std::string proto;                    // without the numbers of one that is inline
  std::optional<std::uint64_t> offset;  // in the file of data; none: inline
  std::uint64_t inline_bytes() const { return offset ? 0 : weight->bytes; }
  std::uint64_t proto_bytes() const { return proto.size() + inline_bytes(); }
};

/// `data_file` is the name of the file of data; "": every weight is inline.
std::vector<Placed> place(const std::vector<io::TensorSource>& weights, const std::string& data_file) {
  std::vector<Placed> all;
  std::uint64_t end = 0;
  for (const io::TensorSource& weight : weights) {
    Placed placed{.weight = &weight, .proto = tensor_proto(weight.name, Type::f32, weight.dims)};
    if (data_file.empty() || weight.bytes < kLeastExternal) {
      append_length(placed.proto, 9, weight.bytes);
    } else {
      placed.offset = (end + kAlignment - 1) / kAlignment * kAlignment;
      end = *placed.offset + weight.bytes;
      for (const auto& [key, value] :
           {std::pair("location", data_file), std::pair("offset", fmt::format("{}", *placed.offset)),
            std::pair("length", fmt::format("{}", weight.bytes))})
        io::append_entry(placed.proto, 13, key, value);
      append_number(placed.proto, 14, 1);  // EXTERNAL
    }
    all.push_back(std::move(placed));
  }
  return all;
}

/// The parts of a ModelProto around the weights.
struct Envelope {
  std::string before, after;
};

Envelope envelope(const Graph& graph, const std::vector<Placed>& weights) {
  std::string nodes, ports;  // of GraphProto
  for (const Node& node : graph.nodes()) append_bytes(nodes, 1, node_proto(node));
  append_bytes(nodes, 2, "bert");
  for (const Constant& constant : graph.constants()) append_bytes(nodes, 5, constant_proto(constant));
  for (const Port& port : graph.inputs()) append_bytes(ports, 11, port_proto(port));
  for (const Port& port : graph.outputs()) append_bytes(ports, 12, port_proto(port));
  std::uint64_t size = nodes.size() + ports.size();
  for (const Placed& placed : weights) size += io::bytes_field_size(5, placed.proto_bytes());

  Envelope model;
  append_number(model.before, 1, kIrVersion);
  append_bytes(model.before, 2, "bertrand");
  append_bytes(model.before, 3, version());
  append_length(model.before, 7, size);
  model.before += nodes;
  model.after = std::move(ports);
  std::string opset;
  append_bytes(opset, 1, "");  // the operators of ONNX itself
  append_number(opset, 2, kOpset);
  append_bytes(model.after, 8, opset);
  return model;
}

}  // namespace

void write_file(io::Files& files, const std::filesystem::path& file, const Graph& graph,
                std::map<std::string, std::string> metadata, const FileOptions& options) {
  const std::filesystem::path data_file = file.string() + ".data";
  std::vector<Placed> weights = place(graph.weights(), "");
  std::uint64_t bytes = 0;
  for (const Placed& placed : weights) bytes += placed.proto_bytes();
  const bool is_external = options.external_data || bytes > options.most_bytes;
  if (is_external) weights = place(graph.weights(), data_file.filename().string());

  io::FileWriter model(files, file);
  std::optional<io::FileWriter> data;
  if (is_external) data.emplace(files, data_file);
  const auto [before, after] = envelope(graph, weights);
  model.write(before);
  io::Sha256 hash;
  std::uint64_t end = 0;  // of the data
  for (const Placed& placed : weights) {
    std::string head;
    append_length(head, 5, placed.proto_bytes());
    model.write(head + placed.proto);
    if (placed.offset) data->write(std::string(*placed.offset - end, '\0'));
    io::read_in_pieces(*placed.weight, [&](std::span<const std::byte> piece) {
      hash.add(piece);
      (placed.offset ? *data : model).write(piece);
    });
    if (placed.offset) end = *placed.offset + placed.weight->bytes;
  }
  metadata["weights_sha256"] = hash.hex();
  model.write(after);
  for (const auto& [key, value] : metadata) {
    std::string field;
    io::append_entry(field, 14, key, value);
    model.write(field);
  }
  if (data) data->finish();
  model.finish();
}

}  // namespace bertrand::exporting::onnx
