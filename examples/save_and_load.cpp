// Save and load: a model becomes model.safetensors, and another one of the same shape becomes the model.
// usage: example_save_and_load FOLDER
//
// What to see: parameters are saved and found by name, not by order; load() says which names it found; the file is
// Hugging Face's format, which other programs read too.
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "nn/layers.h"
#include "nn/weights.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

struct Network : nn::Module {
  Network()
      : hidden(in("hidden"), {.in_features = 3, .out_features = 4}),
        output(in("output"), {.in_features = 4, .out_features = 2}) {}
  Variable operator()(const Variable& x) const { return output(tanh(hidden(x))); }

  nn::Linear hidden, output;  // hidden.weight [4, 3], hidden.bias [4], output.weight [2, 4], output.bias [2]
};

}  // namespace

/// The argument is a folder for the file. It is made if it is not there.
int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "--help") return std::puts("usage: example_save_and_load FOLDER"), 0;
  if (argc != 2 || argv[1][0] == '-') {
    std::fputs("usage: example_save_and_load FOLDER\n", stderr);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  const auto backend = open_cpu({.threads = 1});

  Network network;
  nn::ParameterSet parameters(network, *backend, {.seed = 1});
  nn::save(parameters, folder / "model.safetensors");

  Network loaded;
  nn::ParameterSet read(loaded, *backend, {.initialize = false, .gradients = false});  // it is not trained
  std::printf("%s\n", nn::load(read, folder / "model.safetensors").text().c_str());
  for (const auto& segment : read.segments()) {
    const std::vector<float> values = ops::to_host<float>(read.value(segment));
    std::printf("%-14s %3lld numbers, the first is %g\n", segment.name.c_str(), static_cast<long long>(segment.count()),
                values[0]);
  }

  const Variable x(ops::from_host(std::vector<float>{1, 2, 3}, {1, 3}, *backend));
  const bool same = ops::to_host<float>(loaded(x).value()) == ops::to_host<float>(network(x).value());
  std::printf("both say the same of one input, bit by bit: %s\n", same ? "yes" : "no");
  return same ? 0 : 1;
}
