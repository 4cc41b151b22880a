// The table of formats, and the two that are model directories.
#include "apps/export/formats.h"

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
}

void write_tf_checkpoint(io::Files& files, const std::filesystem::path& directory, const Model& model) {
  bert::write_checkpoint(files, directory, model.files(), *model.parameters);
}

}  // namespace bertrand::exporting
