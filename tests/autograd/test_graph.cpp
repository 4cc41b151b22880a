// graph(): the text that Graphviz draws.
#include "autograd/graph.h"

#include <doctest/doctest.h>

#include "autograd/operators.h"
#include "support/refusal.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

Variable leaf(const Shape& shape, Backend& backend) { return Variable(ops::full(shape, 1, DType::f64, backend), true); }

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("a graph has a node for each op and leaf and an arrow for each use") {
  const auto backend = open_cpu({.threads = 1});
  const Variable x(ops::full({4, 3}, 1, DType::f64, *backend)), w = leaf({3, 2}, *backend), b = leaf({2}, *backend);
  CHECK(graph(mean(tanh(matmul(x, w) + b)), {{"w", w}, {"b", b}}) ==
        "digraph {\n"
        "  node [fontname=\"sans-serif\", fontsize=11, shape=box, style=filled, fillcolor=\"#e8eefc\"]\n"
        "  n0 [label=\"w\\n[3, 2]\", shape=ellipse, fillcolor=\"#fdf0d5\"]\n"
        "  n1 [label=\"matmul\\n[4, 2]\"]\n"
        "  c0 [label=\"constant\", shape=plaintext, style=\"\"]\n"
        "  c0 -> n1\n"
        "  n0 -> n1\n"
        "  n2 [label=\"b\\n[2]\", shape=ellipse, fillcolor=\"#fdf0d5\"]\n"
        "  n3 [label=\"add\\n[4, 2]\"]\n"
        "  n1 -> n3\n"
        "  n2 -> n3\n"
        "  n4 [label=\"tanh\\n[4, 2]\"]\n"
        "  n3 -> n4\n"
        "  n5 [label=\"mean\\n[1]\"]\n"
        "  n4 -> n5\n"
        "}\n");
}

TEST_CASE("a value that is used twice is one node with two arrows") {
  const auto backend = open_cpu({.threads = 1});
  const Variable w = leaf({2}, *backend);
  const std::string dot = graph(w * w);
  CHECK(has(dot, "  n1 [label=\"mul\\n[2]\"]\n  n0 -> n1\n  n0 -> n1\n}"));
  CHECK(has(dot, "n0 [label=\"[2]\""));  // without a name
}

TEST_CASE("quotes in a name do not end the label") {
  const auto backend = open_cpu({.threads = 1});
  const Variable w = leaf({2}, *backend);
  CHECK(has(graph(-w, {{"the \"w\" of a\\b", w}}), "label=\"the \\\"w\\\" of a\\\\b\\n[2]\""));
}

TEST_CASE("a leaf alone is a graph and a deep chain is drawn without recursion") {
  const auto backend = open_cpu({.threads = 1});
  const Variable w = leaf({}, *backend);
  CHECK(has(graph(w), "n0 [label=\"[]\""));
  Variable y = w;
  for (int i = 0; i < 100'000; ++i) y = scale(y, 1);
  CHECK(has(graph(y), "  n99999 -> n100000\n}"));
}

TEST_CASE("a graph that is not there is refused") {
  const auto backend = open_cpu({.threads = 1});
  const Variable w = leaf({2}, *backend), x(ops::full({2}, 1, DType::f64, *backend));
  CHECK(support::refusal(Failure::bug, [&] { graph(x * x); }) ==
        "graph: expected a result that wants a gradient, got one that no op has recorded");
  const Variable square = w * w, loss = sum(square);
  backward(loss);
  CHECK(support::refusal(Failure::bug, [&] { graph(loss); }) ==
        "graph: expected a graph that is whole, got one that backward has taken apart");
  CHECK(support::refusal(Failure::bug, [&] { graph(square + w); }) ==
        "backward: an earlier backward has taken this graph apart; hint: compute it again");
}
