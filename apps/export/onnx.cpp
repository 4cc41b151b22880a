// --format onnx: the model, and beside it what a client needs to make ids of text.
#include "apps/export/formats.h"
#include "bert/export/onnx_bert.h"

namespace bertrand::exporting {
namespace {

void write(io::Files& files, const std::filesystem::path& directory, const Model& model,
           const onnx::FileOptions& options) {
  bert::write_configuration(files, directory, model.files());
  model.copy_sentence_files(files, directory);
  write_onnx(files, directory,
             {.config = model.config,
              .architecture = model.architecture,
              .pooler_layer = model.pooler_layer,
              .parameters = *model.parameters},
             options);
}

}  // namespace

void write_onnx_model(io::Files& files, const std::filesystem::path& directory, const Model& model) {
  write(files, directory, model, {});
}

void write_onnx_model_and_data(io::Files& files, const std::filesystem::path& directory, const Model& model) {
  write(files, directory, model, {.external_data = true});
}

}  // namespace bertrand::exporting
