// The forms that export writes, one function each.
#pragma once
#include "apps/export/model.h"
#include "io/choices.h"

namespace bertrand::exporting {

/// Writes the files of a model, each durable, into a directory that exists and is empty. Throws Error(Failure::model)
/// for a model that the format cannot hold, and Error(Failure::io).
using Writer = void (*)(io::Files& files, const std::filesystem::path& directory, const Model& model);

struct Format {
  Writer write = nullptr;
  Writer write_external_data = nullptr;  ///< for --external-data; null: the format has no such form
  bool has_versions = false;             ///< --output is the directory of numbered versions, to which one is added
  bool operator==(const Format&) const = default;
};

void write_huggingface(io::Files& files, const std::filesystem::path& directory, const Model& model);

void write_tf_checkpoint(io::Files& files, const std::filesystem::path& directory, const Model& model);

/// model.onnx and what lies beside it for a tokenizer; with the weights in it if they are not too large, or beside it.
void write_onnx_model(io::Files& files, const std::filesystem::path& directory, const Model& model);
void write_onnx_model_and_data(io::Files& files, const std::filesystem::path& directory, const Model& model);

/// variables/, which is a checkpoint with Google's names, assets.extra/ with configuration and vocabulary, and last
/// saved_model.pb.
void write_saved_model(io::Files& files, const std::filesystem::path& directory, const Model& model);

/// As --format has them.
const io::Choices<Format>& formats();

}  // namespace bertrand::exporting
