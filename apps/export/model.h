// A model that is to be written in another form: its network with all weights, its shape and its tokenizer.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>

#include "bert/directory/model_directory.h"
#include "bert/network/architecture.h"
#include "bert/text/tokenizer.h"
#include "nn/parameter_set.h"

namespace bertrand::exporting {

struct Model {
  std::filesystem::path source;  ///< the directory or checkpoint that it was read from
  bert::Config config;           ///< architectures is the one name of `architecture`; labels has a name for each class
  bert::Architecture architecture;
  bert::PoolerLayer pooler_layer;  ///< of its encoder
  text::Tokenizer tokenizer;
  std::optional<Dim> max_length;     ///< as DirectoryFiles has it
  std::unique_ptr<Backend> backend;  ///< a CPU
  std::unique_ptr<nn::Module> network;
  std::unique_ptr<nn::ParameterSet> parameters;  ///< f32, without gradients; by the names of Hugging Face

  /// What its Hugging Face directory holds beside the weights.
  bert::DirectoryFiles files() const {
    return {.config = config,
            .vocabulary = tokenizer.vocabulary().text(),
            .tokenizer = tokenizer.options(),
            .max_length = max_length};
  }
  /// Copies what sentence-transformers keeps beside an encoder to where files() are.
  void copy_sentence_files(io::Files& to, const std::filesystem::path& directory) const {
    if (architecture == bert::Architecture::encoder) bert::copy_sentence_files(to, source, directory);
  }
};

/// Where a model comes from, as the command line says it.
struct Source {
  std::filesystem::path model;
  bert::TokenizerFlags tokenizer;
  bool strict = false;  ///< every tensor must fit
};

/// Loads the network that config.json's architectures name. If they name none, the tensors decide: a masked-word head
/// is one of pre-training, and so on. Throws Error(Failure::model), also if the weights lack a tensor.
Model read_model(const Source& source);

}  // namespace bertrand::exporting
