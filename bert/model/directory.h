// A Hugging Face model directory: config.json, model.safetensors (whole or in shards), vocab.txt,
// tokenizer_config.json.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bert/formats/files.h"
#include "bert/model/config.h"
#include "bert/text/tokenizer.h"
#include "nn/parameter_set.h"

namespace bertrand::bert {

/// Reads config.json, or Google's bert_config.json where there is none. Throws Error(Failure::model).
Config read_config(const std::filesystem::path& directory);

/// What turns text into a model's token ids.
struct TextRules {
  text::Vocabulary vocabulary;
  text::TokenizerOptions options;
};

/// The vocabulary of a directory (vocab.txt, else tokenizer.json) and its casing (tokenizer_config.json, else
/// tokenizer.json, else whether the vocabulary holds capital letters); nullopt where it has no vocabulary. Throws
/// Error(Failure::model), also for rules that the tokenizer here does not know (accents apart from case).
std::optional<TextRules> read_text_rules(const std::filesystem::path& directory);

/// Throws Error(Failure::model) where a vocabulary, named in the message, is larger than the model's table, or smaller
/// by more than a table that was rounded up would be.
void check_vocabulary(const text::Vocabulary& vocabulary, const std::string& name, const Config& config);

/// Parameters are named as on disk; a prefix stands for every name that begins with it: "classifier.", "bert.pooler.".
struct LoadOptions {
  std::vector<std::string> may_be_missing = {};     ///< these keep the values that they have
  std::vector<std::string> may_be_mis_shaped = {};  ///< as missing: a head with other labels
};

/// What became of every name, in the model's order.
struct LoadReport {
  std::string source;                   ///< the file, for the report
  std::vector<std::string> loaded;      ///< parameters that have the file's values now
  std::vector<std::string> missing;     ///< parameters that the file has not
  std::vector<std::string> mis_shaped;  ///< parameters that the file has in another shape
  std::vector<std::string> unused;      ///< tensors of the file that the model has not, as named there

  /// For people: a line for each of the four that is not empty, without a newline at the end.
  std::string text() const;
};

/// Reads model.safetensors, or the shards that model.safetensors.index.json names, into the values of `parameters`,
/// converting any floating type, a tensor at a time. Knows the old names (LayerNorm.gamma and .beta, dense_act, no
/// "bert." before the encoder, cls.predictions.decoder.*) and passes over embeddings.position_ids.
/// Throws Error(Failure::model) before anything is changed: no weights, or only pickled or TensorFlow ones; a parameter
/// missing or of another shape that may not be; a decoder that is not tied to the word embeddings.
LoadReport load_weights(const std::filesystem::path& directory, nn::ParameterSet& parameters,
                        const LoadOptions& options = {});

/// All that a directory holds.
struct ModelDirectory {
  const Config& config;
  const nn::ParameterSet& parameters;
  const text::Vocabulary& vocabulary;
  const text::TokenizerOptions& tokenizer;
};

/// Writes the four files into an existing directory, each made durable. The weights have the parameters' names and
/// dtype; the tied decoder is left out, as transformers does. Throws Error(Failure::io).
void write_directory(const std::filesystem::path& directory, const ModelDirectory& model,
                     formats::Files& files = formats::Files::system());

}  // namespace bertrand::bert
