// Model directories as Hugging Face lays them out: config.json, model.safetensors, vocab.txt, tokenizer_config.json.
#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bert/network/config.h"
#include "bert/text/tokenizer.h"
#include "io/files.h"
#include "nn/weights.h"

namespace bertrand::bert {

/// Copies the weights of a model directory (or of one .safetensors file) into the parameters that bear their names,
/// converting every floating type. Understands shards, files without "bert." before the encoder, gamma and beta for
/// LayerNorm's weight and bias, dense_act, and the decoder's aliases. Parameters that the file lacks keep their values
/// and are reported; whether that is acceptable is the caller's decision. One of another shape that `may_be_mis_shaped`
/// accepts (a head for other labels) counts as one that the file lacks.
/// Throws Error(Failure::model), before any value changes: no weights, or pickled or TensorFlow's (refused by name);
/// tensors of another shape, which are named; more layers than config.json says; a decoder that is not the word
/// embeddings, byte by byte.
nn::LoadReport load_weights(const std::filesystem::path& directory, nn::ParameterSet& parameters,
                            const std::function<bool(const std::string&)>& may_be_mis_shaped = {});

/// load_weights(), with every parameter required.
void load_whole(const std::filesystem::path& directory, nn::ParameterSet& parameters);

/// Whether text is to be lower-cased, if tokenizer_config.json of a directory says so. Throws Error(Failure::model)
/// if it says anything that BERT's own tokenizer does not do.
std::optional<bool> read_lower_case(const std::filesystem::path& directory);

/// The most characters of a word, if tokenizer_config.json of a directory says them, as write_directory() does.
std::optional<int> read_max_chars(const std::filesystem::path& directory);

/// Whether a file of this name in a model directory is one that the model is read from.
bool is_model_file(const std::string& name);
/// Those that a directory (or a .safetensors file itself) has: no command may write its output over one of them.
std::vector<std::filesystem::path> model_files(const std::filesystem::path& directory);

/// What a directory is made of besides the weights.
struct DirectoryFiles {
  const Config& config;
  std::string vocabulary;  ///< the bytes of vocab.txt
  text::TokenizerOptions tokenizer;
};
/// Writes config.json, vocab.txt, tokenizer_config.json, model.safetensors and, if there are any, added_tokens.json,
/// each durable, into a directory that exists. Returns the CRC-32C of each tensor.
std::map<std::string, std::uint32_t> write_directory(io::Files& files, const std::filesystem::path& directory,
                                                     const DirectoryFiles& contents,
                                                     const nn::ParameterSet& parameters);

}  // namespace bertrand::bert
