// Nodes of a TensorFlow graph: their bytes, their names, their constants.
#include "bert/export/tf_graph.h"

#include <doctest/doctest.h>

#include "bert/export/decoded_saved_model.h"

using namespace bertrand;
using exporting::tf::Graph;
using exporting::tf::Scope;
using exporting::tf::Type;
namespace attribute = exporting::tf::attribute;

namespace {

std::vector<support::DecodedNode> nodes_of(const Graph& graph) {
  const std::string bytes = graph.encoded();
  std::vector<support::DecodedNode> nodes;
  for (auto reader = support::decoding::reader(bytes); reader.next();)
    if (reader.is(1, io::WireType::bytes)) nodes.push_back(support::decoding::node(reader.bytes()));
  return nodes;
}

}  // namespace

TEST_CASE("attributes have the bytes of TensorFlow") {
  // AttrValue(i=-1), (b=true), (s="a"), (type=DT_FLOAT), (list type), (shape) of TensorFlow 2.21.
  CHECK(attribute::number(-1) == std::string("\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
  CHECK(attribute::flag(false) == std::string("\x28\0", 2));
  CHECK(attribute::text("a") ==
        "\x12\x01"
        "a");
  CHECK(attribute::type(Type::f32) == "\x30\x01");
  CHECK(attribute::types({Type::i64, Type::string}) == "\x0a\x04\x32\x02\x09\x07");
  CHECK(attribute::types({}) == std::string("\x0a\0", 2));
  CHECK(attribute::shape({}) == std::string("\x3a\0", 2));
  CHECK(attribute::shape({2, 0}) == std::string("\x3a\x06\x12\x02\x08\x02\x12\0", 8));
  CHECK(attribute::shapes({{3}}) == "\x0a\x06\x3a\x04\x12\x02\x08\x03");
}

TEST_CASE("a node whose name is taken gets the next number") {
  Graph graph({});
  const Scope scope = Scope(graph) / "a" / "b";
  CHECK(scope.op("NoOp", {}) == "a/b/NoOp");
  CHECK(scope.op("NoOp", {}) == "a/b/NoOp_1");
  CHECK(graph.add("a/b/NoOp_2", "NoOp", {}) == "a/b/NoOp_2");
  CHECK(scope.op("NoOp", {}) == "a/b/NoOp_3");
  CHECK(nodes_of(graph).size() == 4);
}

TEST_CASE("equal constants are one node and constants of other types or shapes are others") {
  Graph graph({});
  CHECK(graph.constant(1) == graph.constant(1));
  CHECK(graph.constant(1) != graph.constant(2));
  CHECK(graph.constant(1) != graph.constant(std::vector<std::int32_t>{1}));
  CHECK(graph.constant(0) != graph.constant(0.0F));
  CHECK(graph.constant(0.0F) != graph.constant(-0.0F));
  CHECK(graph.constant(std::int64_t{0}) != graph.constant(0));
  CHECK(graph.constant(std::vector<std::string>{"a", "b"}) == graph.constant(std::vector<std::string>{"a", "b"}));
  CHECK(graph.constant(std::vector<std::string>{"a", "b"}) != graph.constant(std::vector<std::string>{"ab"}));
  CHECK(nodes_of(graph).size() == 9);
}

TEST_CASE("a variable that is read twice is one variable") {
  Graph graph({{"a/w", {2, 3}}});
  const Scope scope = Scope(graph) / "a";
  CHECK(scope.variable("w") == "a/w/Read");
  CHECK(scope.variable("w") == "a/w/Read");
  const auto nodes = nodes_of(graph);
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].attributes.at("shared_name") == attribute::text("a/w"));
  CHECK(nodes[1].inputs == std::vector<std::string>{"a/w"});
}

TEST_CASE("constants have the bytes of TensorFlow") {
  Graph graph({});
  graph.constant(1);
  graph.constant(1.5F);
  graph.constant(std::int64_t{2});
  graph.constant(std::vector<std::int32_t>{-1});
  graph.constant(std::vector<std::string>{"a", "b"});
  const auto nodes = nodes_of(graph);
  REQUIRE(nodes.size() == 5);
  // AttrValue { TensorProto { dtype, shape, content } }
  const auto value = [&](std::size_t i) { return nodes[i].attributes.at("value"); };
  CHECK(value(0) == std::string("\x42\x0a\x08\x03\x12\x00\x22\x04\x01\x00\x00\x00", 12));
  CHECK(value(1) == std::string("\x42\x0a\x08\x01\x12\x00\x22\x04\x00\x00\xc0\x3f", 12));
  CHECK(value(2) == std::string("\x42\x0e\x08\x09\x12\x00\x22\x08\x02\x00\x00\x00\x00\x00\x00\x00", 16));
  CHECK(value(3) == std::string("\x42\x0e\x08\x03\x12\x04\x12\x02\x08\x01\x22\x04\xff\xff\xff\xff", 16));
  CHECK(value(4) == std::string("\x42\x0e\x08\x07\x12\x04\x12\x02\x08\x02\x42\x01\x61\x42\x01\x62", 16));
  CHECK(nodes[0].attributes.at("dtype") == attribute::type(Type::i32));
}
