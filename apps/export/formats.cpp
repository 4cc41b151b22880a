// The table of formats, and the two that are model directories.
#include "apps/export/formats.h"

#include "io/say.h"

namespace bertrand::exporting {

const io::Choices<Format>& formats() {
  static const io::Choices<Format> choices{
      {"onnx", {.write = write_onnx_model, .write_external_data = write_onnx_model_and_data}},
      {"saved-model", {.write = write_saved_model, .has_versions = true}},
      {"tf-checkpoint", {.write = write_tf_checkpoint}},
      {"huggingface", {.write = write_huggingface}}};
  return choices;
}

void write_huggingface(io::Files& files, const std::filesystem::path& directory, const Model& model) {
  bert::write_directory(files, directory, model.files(), *model.parameters, bert::kMostOfShard);
  model.copy_sentence_files(files, directory);
}

namespace {

/// Google's modeling.py has one epsilon, and its gelu is the one by tanh.
void warn_of_googles_code(const bert::Config& config) {
  const bert::Config googles;
  if (config.layer_norm_eps != googles.layer_norm_eps)
    io::warn("layer_norm_eps: Google's code computes with {}, this model with {}: its outputs differ there",
             googles.layer_norm_eps, config.layer_norm_eps);
  if (config.hidden_act == Activation::gelu_tanh)
    io::warn("hidden_act: Google's code refuses gelu_new; hint: for that code write gelu, which is the same there");
}

}  // namespace

void write_tf_checkpoint(io::Files& files, const std::filesystem::path& directory, const Model& model) {
  warn_of_googles_code(model.config);
  bert::write_checkpoint(files, directory, model.files(), *model.parameters);
  model.copy_sentence_files(files, directory);
}

}  // namespace bertrand::exporting
