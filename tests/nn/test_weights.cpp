// Saving a model's parameters by name and loading them again: what is loaded, missing, unused, mis-shaped or refused.
#include "nn/weights.h"

#include <doctest/doctest.h>

#include "nn/layers.h"
#include "nn/tensor_file.h"
#include "support/faulty_files.h"
#include "support/program.h"
#include "support/refusal.h"
#include "tensor/backends.h"

using namespace bertrand;

namespace {

struct Model : nn::Module {
  explicit Model(Dim classes = 2)
      : first(in("first"), {.in_features = 3, .out_features = 4}),
        last(in("last"), {.in_features = 4, .out_features = classes}) {}
  nn::Linear first, last;
};

struct Weights {
  std::unique_ptr<Backend> backend = open_cpu({.threads = 1});
  Model model;
  nn::ParameterSet parameters;
  explicit Weights(std::uint64_t seed, Dim classes = 2, DType dtype = DType::f32)
      : model(classes), parameters(model, *backend, {.dtype = dtype, .seed = seed}) {}
  std::vector<double> masters() const { return ops::to_host<double>(parameters.masters()); }
};

void write(const std::filesystem::path& file, const std::vector<nn::NamedTensor>& tensors) {
  io::FileWriter out(io::Files::system(), file);
  nn::write_tensors(out, tensors);
  out.finish();
}

}  // namespace

TEST_CASE("parameters that were saved are loaded with the same bits and in half types as masters") {
  const support::TemporaryDirectory directory;
  const Weights saved(1);
  CHECK(nn::save(saved.parameters, directory / "model.safetensors").size() == 4);
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16, DType::f64}) {
    Weights other(2, 2, dtype);
    CHECK(other.masters() != saved.masters());
    const nn::LoadReport report = nn::load(other.parameters, directory / "model.safetensors");
    CHECK(other.masters() == saved.masters());
    CHECK(ops::to_host<double>(other.parameters.values()) ==
          ops::to_host<double>(ops::cast(other.parameters.masters(), dtype)));
    CHECK(report.text() == "weights: 4 loaded, 0 missing, 0 unused, 0 mis-shaped");
  }
}

TEST_CASE("weights that are loaded over those that a loss was computed from are noticed in backward") {
  const support::TemporaryDirectory directory;
  nn::save(Weights(1).parameters, directory / "model.safetensors");
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Weights other(2, 2, dtype);
    const Variable& weight = other.model.first.weight;
    const Variable loss = sum(mul(weight, weight));
    nn::load(other.parameters, directory / "model.safetensors");
    CHECK_THROWS_WITH(backward(loss), doctest::Contains("mul: backward: expected the values that the op used"));
  }
}

TEST_CASE("parameters that were saved are there after a power failure") {
  const support::TemporaryDirectory directory, disk;
  support::RecordingFiles files(directory / "");
  nn::save(Weights(1).parameters, files, directory / "model.safetensors");
  files.restore(files.calls(), support::Lost::data, disk / "");
  CHECK(support::read_text(disk / "model.safetensors") == support::read_text(directory / "model.safetensors"));
}

TEST_CASE("missing parameters keep their values and unused tensors are named") {
  const support::TemporaryDirectory directory;
  Weights w(1);
  const auto before = ops::to_host<float>(w.model.last.weight.value());
  write(directory / "f", {{"first.weight", ops::full({4, 3}, 7, DType::f32, *w.backend)},
                          {"first.bias", ops::full({4}, 8, DType::f64, *w.backend)},
                          {"pooler.bias", ops::full({4}, 9, DType::i32, *w.backend)}});
  const nn::LoadReport report = nn::load(w.parameters, directory / "f");
  CHECK(report.text() ==
        "weights: 2 loaded, 2 missing, 1 unused, 0 mis-shaped\n"
        "  missing, initialised from the seed: last.weight, last.bias\n"
        "  unused: pooler.bias");
  CHECK(ops::to_host<float>(w.model.first.weight.value()) == std::vector<float>(12, 7));
  CHECK(ops::to_host<float>(w.model.first.bias.value()) == std::vector<float>(4, 8));
  CHECK(ops::to_host<float>(w.model.last.weight.value()) == before);
  CHECK(support::refusal(Failure::model, [&] {
          nn::require(report, "f", [](const std::string& name) { return name == "last.bias"; });
        }).find("got none for 1: last.weight") != std::string::npos);
  nn::require(report, "f", [](const std::string& name) { return name.starts_with("last."); });
}

TEST_CASE("a tensor of another shape is refused before a value changes unless the caller accepts it") {
  const support::TemporaryDirectory directory;
  nn::save(Weights(1, 3).parameters, directory / "f");
  Weights w(2);
  const auto before = w.masters();
  const std::string refusal = support::refusal(Failure::model, [&] { nn::load(w.parameters, directory / "f"); });
  CHECK(refusal.find(
            "2 tensors of another shape than the model's: last.weight: expected [2, 4] (config.json), got [3, 4]") !=
        std::string::npos);
  CHECK(w.masters() == before);

  const io::SafetensorsFile file(directory / "f");
  nn::StoredTensors stored;
  for (const auto& entry : file.entries()) stored.emplace(entry.name, nn::stored_tensor(entry, directory / "f"));
  const nn::LoadReport report =
      nn::load(w.parameters, stored, "f", [](const std::string& name) { return name.starts_with("last."); });
  CHECK(report.loaded == std::vector<std::string>{"first.weight", "first.bias"});
  CHECK(report.missing == std::vector<std::string>{"last.weight", "last.bias"});
  CHECK(report.mis_shaped.size() == 2);
  CHECK(report.text().find("mis-shaped: last.weight: expected [2, 4] (the task), got [3, 4]") != std::string::npos);
}

TEST_CASE("a list of names is whole up to its bound, and then says how many more there are") {
  const std::vector<std::string> names{"a", "b", "c"};
  CHECK(nn::joined({}, 2).empty());
  CHECK(nn::joined(names, 3) == "a, b, c");
  CHECK(nn::joined(names, 2) == "a, b and 1 more");
}

TEST_CASE("a tensor of a type that cannot be loaded is refused before a value changes") {
  const support::TemporaryDirectory directory;
  Weights w(1);
  const auto before = w.masters();
  write(directory / "f", {{"first.weight", ops::full({4, 3}, 7, DType::f32, *w.backend)},
                          {"first.bias", ops::full({4}, 8, DType::i32, *w.backend)},
                          {"last.weight", ops::full({2, 4}, 9, DType::f32, *w.backend)}});
  CHECK(support::refusal(Failure::model, [&] { nn::load(w.parameters, directory / "f"); }) ==
        (directory / "f").string() + ": tensor \"first.bias\": dtype: expected F64, F32, F16 or BF16, got I32");
  CHECK(w.masters() == before);
}
