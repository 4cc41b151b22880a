// The labels of a classifier whose config.json has none.
#include <doctest/doctest.h>

#include "bert/directory/model_directory.h"
#include "io/safetensors.h"
#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;
using namespace bertrand::bert;
using Labels = std::vector<std::string>;
using Dims = std::vector<std::int64_t>;

namespace {

/// Weights of these shapes alone, all of them of bytes that are 0.
struct Weights {
  explicit Weights(const std::map<std::string, Dims>& shapes) {
    std::vector<io::TensorSource> tensors;
    for (const auto& [name, dims] : shapes) {
      std::uint64_t bytes = 1;
      for (const std::int64_t dim : dims) bytes *= static_cast<std::uint64_t>(dim);
      tensors.push_back(
          {.name = name,
           .type = io::find_safetensors_type("I8"),
           .dims = dims,
           .bytes = bytes,
           .read = [](std::uint64_t, std::span<std::byte> part) { std::ranges::fill(part, std::byte{}); }});
    }
    io::FileWriter out(io::Files::system(), directory / "model.safetensors");
    io::write_safetensors(out, std::move(tensors));
    out.finish();
  }
  Labels labels() const { return labels_of(Config{}, directory / ""); }
  /// What is said against them, the directory cut off.
  std::string refusal() const {
    const std::string line = support::refusal(Failure::model, [&] { labels(); }), path = directory / "";
    return line.starts_with(path) ? line.substr(path.size()) : line;
  }
  support::TemporaryDirectory directory;
};

}  // namespace

TEST_CASE("a classifier without names has as many labels as its weights, and two if these do not say it") {
  CHECK(Weights({{"classifier.bias", {3}}}).labels() == Labels{"LABEL_0", "LABEL_1", "LABEL_2"});
  CHECK(Weights({{"classifier.bias", {1}}, {"classifier.weight", {1, 4}}}).labels() == Labels{"LABEL_0"});
  CHECK(Weights({{"output", {3}}}).labels() == Labels{"LABEL_0", "LABEL_1"});
  CHECK(Weights({{"classifier.bias", {1 << 20}}}).labels().size() == 1 << 20);
  Config named;
  named.labels = {"no", "yes"};
  CHECK(labels_of(named, "no-such-model") == Labels{"no", "yes"});
}

TEST_CASE("a classifier of no labels, of too many, or whose weights and bias disagree is refused by the tensor") {
  const std::string bias = "model.safetensors: tensor \"classifier.bias\": ";
  const std::string labels = bias + "expected a number for each of 1 to 1048576 labels, got the shape ";
  CHECK(Weights({{"classifier.bias", {0}}, {"classifier.weight", {0, 4}}}).refusal() == labels + "[0]");
  CHECK(Weights({{"classifier.bias", {(1 << 20) + 1}}}).refusal() == labels + "[1048577]");
  CHECK(Weights({{"classifier.bias", {3, 1}}}).refusal() == labels + "[3, 1]");
  const std::string rows =
      "model.safetensors: tensor \"classifier.weight\": expected a row for each of the 3 numbers of ";
  CHECK(Weights({{"classifier.bias", {3}}, {"classifier.weight", {2, 4}}}).refusal() ==
        rows + "classifier.bias, got the shape [2, 4]");
  CHECK(Weights({{"classifier.bias", {3}}, {"classifier.weight", {}}}).refusal() ==
        rows + "classifier.bias, got the shape []");
}
