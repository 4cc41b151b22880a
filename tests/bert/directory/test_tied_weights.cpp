// A decoder of masked words beside an encoder that is used for something else.
#include <doctest/doctest.h>

#include "bert/directory/model_directory.h"
#include "bert/directory/one_layer.h"
#include "bert/network/heads.h"
#include "nn/tensor_file.h"
#include "support/program.h"
#include "support/refusal.h"
#include "tensor/backends.h"
#include "tensor/ops.h"

using namespace bertrand;
using namespace bertrand::bert;
using support::kOneLayer;

TEST_CASE("a decoder with numbers of its own is refused where words are masked, and is nothing to a classifier") {
  const auto backend = open_cpu({.threads = 1});
  ForMaskedLm model(kOneLayer);
  const nn::ParameterSet parameters(model, *backend, {.seed = 7});
  std::vector<nn::NamedTensor> tensors;
  for (const auto& segment : parameters.segments()) tensors.push_back({segment.name, parameters.master(segment)});
  tensors.push_back({"cls.predictions.decoder.weight", ops::full({7, 4}, 1, DType::f32, *backend)});
  const support::TemporaryDirectory directory;
  io::FileWriter out(io::Files::system(), directory / "model.safetensors");
  nn::write_tensors(out, tensors);
  out.finish();
  const auto refusal = [&](nn::Module& other) {
    nn::ParameterSet loaded(other, *backend, {.seed = 1});
    return support::refusal(Failure::model, [&] { load_weights(directory / "", loaded); });
  };
  ForMaskedLm masked(kOneLayer);
  ForSequenceClassification classifier(kOneLayer, 2);
  CHECK(refusal(masked).find("cls.predictions.decoder.weight") != std::string::npos);
  CHECK(refusal(classifier) == "");
}
