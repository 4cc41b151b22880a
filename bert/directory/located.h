// What a path that a user typed as a model stands for, for the files of this folder.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace bertrand::bert {

/// Where configuration and tokenizer are: the directory itself, or that in which a file of weights or a checkpoint
/// lies. A path at which there is nothing stands for itself.
std::filesystem::path directory_of(const std::filesystem::path& model);
/// Throws Error(Failure::model) if there is nothing.
void require_model(const std::filesystem::path& model);

/// The files that hold a model's weights.
struct WeightFiles {
  /// One, or shards, each with the tensors that their index names for it.
  std::map<std::filesystem::path, std::vector<std::string>> safetensors;
  std::filesystem::path checkpoint;  ///< the prefix of a TensorFlow checkpoint; empty: safetensors
  std::filesystem::path named;       ///< what messages about them name
};
/// Throws Error(Failure::model) if there are none, several checkpoints, or weights of a form that is not read.
WeightFiles weight_files(const std::filesystem::path& model);

}  // namespace bertrand::bert
