// Draws the pictures of the book from what they show: a graph that was recorded, a ParameterSet, a packed batch.
// usage: book_pictures FOLDER
#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "autograd/operators.h"
#include "bert/network/packed_batch.h"
#include "nn/layers.h"
#include "nn/parameter_set.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

const char* const kInk = "#24292f";
const std::vector<const char*> kFills{"#cfe8ff", "#ffe2c4", "#d9f2d0", "#ecd9f7"};

/// An SVG on white, so that it reads on a dark page too.
class Svg {
 public:
  Svg(int width, int height) {
    text_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"13\" "
        "fill=\"{2}\">\n<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
        "markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\"/></marker></defs>\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
        width, height, kInk);
  }
  struct Box {
    double x, y, width, height;
    const char* fill;
    int round = 0;
  };
  void box(const Box& b) {
    text_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\" fill=\"{}\" stroke=\"{}\"/>\n",
                         b.x, b.y, b.width, b.height, b.round, b.fill, kInk);
  }
  void words(double x, double y, const std::string& words, const char* style = "text-anchor=\"middle\"") {
    text_ += fmt::format("<text x=\"{}\" y=\"{}\" {}>{}</text>\n", x, y, style, words);
  }
  void line(double x, double y, double to_x, double to_y, const char* style = "marker-end=\"url(#tip)\"") {
    text_ += fmt::format("<path d=\"M{} {} {} {}\" stroke=\"{}\" fill=\"none\" {}/>\n", x, y, to_x, to_y, kInk, style);
  }
  void save(const std::filesystem::path& file) const { std::ofstream(file) << text_ << "</svg>\n"; }

 private:
  std::string text_;
};

constexpr const char* kLeft = "text-anchor=\"start\"";

// ---- the graph of a loss

/// Draws a slot and all that it links to, each once: results on the right, inputs on the left.
class GraphPicture {
 public:
  GraphPicture() : svg_(1060, 270) {}
  /// `name`: of the value in the formula.
  void name(const Variable& x, const std::string& name) { names_[x.slot().get()] = name; }
  /// `holds`: what the closures hold, from the loss on.
  void draw(const Variable& loss, const std::vector<std::string>& holds) {
    svg_.words(20, 28, "loss = mean((x·w + b − y)²): the links that backward follows, from right to left", kLeft);
    slot(*loss.slot(), 970, 90, holds, 0);
    svg_.box({20, 228, 60, 26, "#fff"});
    svg_.words(90, 246, "a slot: where the gradient of a value gathers, with its shape", kLeft);
    svg_.box({520, 228, 60, 26, kFills[1], 12});
    svg_.words(590, 246, "a node: the op; below it what its closure holds", kLeft);
  }
  void save(const std::filesystem::path& file) const { svg_.save(file); }

 private:
  void slot(const GradientSlot& slot, double x, double y, const std::vector<std::string>& holds, std::size_t depth) {
    svg_.box({x, y, 76, 44, slot.node ? "#fff" : kFills[0]});
    svg_.words(x + 38, y + 18, names_.contains(&slot) ? names_[&slot] : "");
    svg_.words(x + 38, y + 36, fmt::format("{}", slot.shape));
    if (!slot.node) return;
    const double node_x = x - 92;
    svg_.line(x, y + 22, node_x + 64, y + 22);
    svg_.box({node_x, y + 6, 62, 32, kFills[1], 14});
    svg_.words(node_x + 31, y + 27, slot.node->op);
    svg_.words(node_x + 31, y + 60, holds.at(depth), "text-anchor=\"middle\" font-size=\"11\"");
    const auto& inputs = slot.node->inputs;
    bool one_is_drawn = false;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i]) continue;
      const bool again = i > 0 && inputs[i] == inputs[i - 1];
      const double to_x = node_x - 98, to_y = one_is_drawn && !again ? y + 84 : y;
      const double bend = again ? 8 : one_is_drawn ? 0 : inputs.size() > 1 && inputs[0] == inputs[1] ? -8 : 0;
      svg_.line(node_x, y + 22 + bend, to_x + 78, to_y + 22 + bend);
      if (!again) this->slot(*inputs[i], to_x, to_y, holds, depth + 1);
      one_is_drawn = true;
    }
  }

  Svg svg_;
  std::map<const GradientSlot*, std::string> names_;
};

void draw_graph(const std::filesystem::path& file, Backend& backend) {
  const auto of = [&](const Shape& shape) { return ops::full(shape, 1, DType::f32, backend); };
  const Variable x(of({3, 2})), y(of({3, 1})), w(of({2, 1}), true), b(of({1}), true);
  const Variable product = matmul(x, w), prediction = product + b, error = prediction - y, square = error * error;
  const Variable loss = mean(square);
  GraphPicture picture;
  picture.name(w, "w");
  picture.name(b, "b");
  picture.name(product, "x·w");
  picture.name(prediction, "+ b");
  picture.name(error, "error e");
  picture.name(square, "e²");
  picture.name(loss, "loss");
  picture.draw(loss, {"shape of e²", "e, e", "shape of y", "shape of b", "x, w"});
  picture.save(file);
}

// ---- flat parameters

struct Small : nn::Module {
  Small()
      : attention(in("attention"), {.hidden = 4, .heads = 2}),
        dense(in("dense"), {.in_features = 4, .out_features = 4}) {}
  nn::SelfAttention attention;
  nn::Linear dense;
};

void draw_parameters(const std::filesystem::path& file, Backend& backend) {
  Small model;
  const nn::ParameterSet parameters(model, backend);
  Svg svg(1010, 320);
  const double first_x = 90, scale = 900.0 / static_cast<double>(parameters.values().elements());
  const auto bar = [&](double y, const char* name) {
    svg.words(12, y + 21, name, kLeft);
    svg.box({first_x, y, 900, 32, "#e5e5e5"});  // gaps between parameters, to multiples of 16 elements
    std::size_t fill = 0;
    for (const auto& s : parameters.segments())
      svg.box({first_x + scale * static_cast<double>(s.begin), y, scale * static_cast<double>(s.count()), 32,
               kFills[fill++ % kFills.size()]});
  };
  svg.words(12, 26, "Segments: one for each name. Grey: the gap before the next multiple of 16 elements.", kLeft);
  bar(150, "values");
  bar(198, "gradients");
  std::size_t row = 0;
  for (const auto& s : parameters.segments()) {
    const double x = first_x + scale * static_cast<double>(s.begin), y = 40 + 13 * static_cast<double>(row++);
    svg.line(x + 3, y + 4, x + 3, 150, "stroke-dasharray=\"2 2\"");
    svg.words(x + 6, y + 8, fmt::format("{} {}", s.name, s.shape), "text-anchor=\"start\" font-size=\"11\"");
  }
  const auto window = [&](const char* name, const Tensor& value, double y) {
    const auto begin = static_cast<double>(value.as<float>() - parameters.values().as<float>());
    const double x = first_x + scale * begin, width = scale * static_cast<double>(value.elements());
    svg.box({x, y, width, 24, "#fff"});
    svg.line(x, 230, x, y, "stroke-dasharray=\"2 2\"");
    svg.line(x + width, 230, x + width, y, "stroke-dasharray=\"2 2\"");
    svg.words(x + width / 2, y + 17, fmt::format("{} {}", name, value.shape()));
  };
  window("attention.weight", model.attention.weight.value(), 250);
  window("dense.weight", model.dense.weight.value(), 250);
  svg.words(12, 303,
            "A Parameter is a window of both. Query, key and value are one window, so one product computes them.",
            kLeft);
  svg.save(file);
}

// ---- packed tokens

void draw_batch(const std::filesystem::path& file, Backend& backend) {
  std::vector<bert::Sequence> sequences;
  for (const std::size_t length : {5, 3, 8, 2})
    sequences.push_back({std::vector<std::int32_t>(length, 7), std::vector<std::int32_t>(length, 0)});
  const bert::PackedBatch batch = bert::pack(sequences, backend);
  Svg svg(1010, 300);
  const double cell = 36, left = 130;
  svg.words(12, 60, "padded", kLeft);
  const Dim longest = batch.packing.longest;
  for (Dim s = 0; s < batch.sequences; ++s)
    for (Dim i = 0; i < longest; ++i) {
      const auto length = batch.offsets[static_cast<std::size_t>(s) + 1] - batch.offsets[static_cast<std::size_t>(s)];
      const double x = left + cell * static_cast<double>(i), y = 20 + cell * static_cast<double>(s);
      svg.box({x, y, cell, cell - 6, i < length ? kFills[static_cast<std::size_t>(s)] : "#e5e5e5"});
      if (i >= length) svg.words(x + cell / 2, y + 20, "pad", "text-anchor=\"middle\" font-size=\"10\"");
    }
  svg.words(left + cell * static_cast<double>(longest) + 20, 60,
            fmt::format("{} rows are computed, {} of them for nothing", batch.sequences * longest,
                        batch.sequences * longest - batch.tokens),
            kLeft);
  svg.words(12, 215, "packed", kLeft);
  for (Dim s = 0; s < batch.sequences; ++s)
    for (Dim i = batch.offsets[static_cast<std::size_t>(s)]; i < batch.offsets[static_cast<std::size_t>(s) + 1]; ++i)
      svg.box({left + cell * static_cast<double>(i), 195, cell, cell - 6, kFills[static_cast<std::size_t>(s)]});
  svg.words(12, 262, "offsets", kLeft);
  for (const std::int32_t offset : batch.offsets) {
    const double x = left + cell * offset;
    svg.line(x, 248, x, 227);
    svg.words(x, 264, std::to_string(offset));
  }
  svg.words(left + cell * static_cast<double>(batch.tokens) + 14, 215, fmt::format("{} rows", batch.tokens), kLeft);
  svg.words(12, 290, "Sequence s owns the rows from offsets[s] to offsets[s + 1]. Only attention looks at offsets.",
            kLeft);
  svg.save(file);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return fmt::print(stderr, "usage: book_pictures FOLDER\n"), 2;
  const std::filesystem::path folder = argv[1];
  const auto backend = open_cpu({.threads = 1});
  draw_graph(folder / "graph.svg", *backend);
  draw_parameters(folder / "flat.svg", *backend);
  draw_batch(folder / "packed.svg", *backend);
}
