// What is said of a directory that has weights, though not those of a model.
#include "bert/directory/located.h"

#include <doctest/doctest.h>

#include "support/program.h"
#include "support/refusal.h"

using namespace bertrand;

TEST_CASE("what cannot be looked at is no SavedModel") {
  const support::TemporaryDirectory directory;
  std::filesystem::create_symlink("saved_model.pb", directory / "saved_model.pb");  // a link to itself
  CHECK(bert::directory_of(directory / "") == directory / "");
}

TEST_CASE("weights under another name than a model's are refused with what to do") {
  for (const auto& [name, hint] :
       {std::pair("adapter_model.safetensors", "merge the adapter into its model (merge_and_unload of peft)"),
        {"model-00001-of-00002.safetensors", "model.safetensors.index.json names the parts, copy it too"},
        {"bert.safetensors", "if it is the model, give DIR/bert.safetensors itself"},
        {"model.onnx", "ONNX is not read, give the model that was exported"}}) {
    const support::TemporaryDirectory directory;
    const std::string path = (directory / "model").string();
    std::filesystem::create_directory(path);
    support::write_text(directory / "model" / name, "x");
    std::string refused = support::refusal(Failure::model, [&] { bert::weight_files(path); });
    for (std::size_t at = 0; (at = refused.find(path)) != std::string::npos;) refused.replace(at, path.size(), "DIR");
    CHECK(refused ==
          std::string("DIR: expected model.safetensors or a TensorFlow checkpoint, got neither; hint: ") + hint);
  }
}
