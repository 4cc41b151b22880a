// Models as directories and checkpoints: what a path stands for, and the configuration, tokenizer and weights there.
//
// A `model` is any of
//   - a directory of Hugging Face: config.json, model.safetensors (or shards and their index), vocab.txt or
//     tokenizer.json;
//   - a directory of Google: bert_config.json, vocab.txt, and a checkpoint of TensorFlow: the one that the file
//     `checkpoint` names, or the only one there;
//   - the prefix of such a checkpoint, dir/bert_model.ckpt, or its .index file;
//   - one .safetensors file;
//   - a version of a SavedModel that the program export wrote, or the checkpoint in it, variables/variables.
// Configuration and tokenizer are in the same directory, those of a SavedModel in its assets.extra.
#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bert/network/config.h"
#include "bert/text/tokenizer.h"
#include "io/files.h"
#include "io/tensor_source.h"
#include "nn/tensor_file.h"
#include "nn/weights.h"

namespace bertrand::bert {

/// config.json, or Google's bert_config.json if there is none. Throws Error(Failure::model).
Config read_config(const std::filesystem::path& model);
/// Throws Error(Failure::model) unless the model has positions for [CLS], a piece and [SEP].
void require_room_for_text(const Config& config, const std::filesystem::path& model);
/// Throws Error(Failure::model), beginning with `where`, unless the model tells two texts apart: `what`.
void require_pairs(const Config& config, const std::string& where, const char* what = "pairs of texts");
/// The file that read_config() reads.
std::filesystem::path config_file(const std::filesystem::path& model);

struct TokenizerFlags {
  std::filesystem::path vocab_file;  ///< --vocab-file; empty: the directory has its own
  bool cased = false;                ///< --cased, with vocab_file
};

/// The tokenizer of the directory, in vocab.txt or tokenizer.json, or the one that the flags give it. A directory that
/// does not say whether it is cased is so if its vocabulary has words with capital letters. Throws
/// Error(Failure::model) if there is no vocabulary, one that does not fit the model's word embeddings, or files that
/// disagree, and Error(Failure::input) for a bad --vocab-file.
text::Tokenizer read_tokenizer(const std::filesystem::path& model, const TokenizerFlags& flags, const Config& config);

/// Throws Error(Failure::model) unless the vocabulary in `file` is for as many rows of word embeddings as `config`
/// says: a line that is missing would shift every later id. Rows that are there for alignment are a warning.
void check_size(const text::Vocabulary& vocabulary, const std::filesystem::path& file, Dim rows,
                const std::filesystem::path& config);

/// Copies the weights of a model into the parameters that bear their names, converting every floating type. Understands
/// shards, files without "bert." before the encoder, gamma and beta for LayerNorm's weight and bias, dense_act, the
/// decoder's aliases, and the names of Google and of TensorFlow's model garden. Parameters that the files lack keep
/// their values and are reported; whether that is acceptable is the caller's decision. One of another shape that
/// `may_be_mis_shaped` accepts (a head for other labels) counts as one that they lack.
/// Throws Error(Failure::model), before any value changes: no weights, or pickled or of Keras (refused by name);
/// damaged or partitioned ones; tensors of another shape, which are named; more layers than the configuration says; a
/// decoder that is not the word embeddings, byte by byte.
nn::LoadReport load_weights(const std::filesystem::path& model, nn::ParameterSet& parameters,
                            const std::function<bool(const std::string&)>& may_be_mis_shaped = {});

/// What load_weights() would report of a network that has no memory yet, so that weights of another one are refused
/// before any is taken. Throws as it does for shapes and layers.
nn::LoadReport compare_weights(const std::filesystem::path& model, const nn::Module& network,
                               const std::function<bool(const std::string&)>& may_be_mis_shaped = {});

/// How a network is loaded to compute with it.
struct InferenceWeights {
  DType dtype = DType::f32;
  bool strict = false;  ///< every tensor of the files must fit: require_exact()
  /// Sees what fits before a missing tensor is refused; may refuse it in words of its own.
  std::function<void(const nn::LoadReport& report)> check = {};
};
/// The parameters of a network with the numbers of a model, all of them, and no gradients. Throws
/// Error(Failure::model), as load_weights() and if a parameter is missing, before memory is taken.
nn::ParameterSet load_for_inference(const std::filesystem::path& model, nn::Module& network, Backend& backend,
                                    const InferenceWeights& wanted = {});

/// load_weights(), with every parameter required.
void load_whole(const std::filesystem::path& model, nn::ParameterSet& parameters);

/// Throws Error(Failure::model), with file and tensor, if a number of the loaded parameters is not finite: in training
/// it would look like a learning rate that is too high.
void require_finite(const nn::ParameterSet& parameters, const std::filesystem::path& model);

/// --strict: throws Error(Failure::model) if a parameter is missing or mis-shaped or a tensor unused.
void require_exact(const nn::LoadReport& report, const std::filesystem::path& model);

/// The shape of each tensor that load_weights() finds, by the name that it has here. Throws Error(Failure::model).
std::map<std::string, std::vector<std::int64_t>> weight_shapes(const std::filesystem::path& model);

/// The labels of a classifier: those of config.json, else LABEL_0 and so on, as many as its weights have. Transformers
/// leaves the labels out if they are the two that it gives a model by default, and Google always. Throws
/// Error(Failure::model) naming the tensor if that is no number of labels.
std::vector<std::string> labels_of(const Config& config, const std::filesystem::path& model);

/// The file of weights that messages name: model.safetensors, the index of shards, or that of a checkpoint. Throws
/// Error(Failure::model) if there are none.
std::filesystem::path weights_file(const std::filesystem::path& model);
/// Whether the weights are in a checkpoint of TensorFlow.
bool is_checkpoint(const std::filesystem::path& model);

/// Fills them from <name>/adam_m and <name>/adam_v of a checkpoint of TensorFlow, as Google's optimizer writes them.
/// Throws Error(Failure::model), before any value changes, if one is missing, damaged or of another shape.
void load_moments(const std::filesystem::path& model, const nn::Moments& moments);
/// Whether load_moments() reads a tensor of this name, or it is the number of steps that goes with them.
bool is_moment(const std::string& stored);

/// Whether a file of this name in a model directory is one that the model is read from.
bool is_model_file(const std::string& name);
/// Those that are there, also in the directories that modules.json names: no command may write its output over one of
/// them.
std::vector<std::filesystem::path> model_files(const std::filesystem::path& model);

/// What a directory is made of besides the weights.
struct DirectoryFiles {
  const Config& config;
  std::string vocabulary;  ///< the bytes of vocab.txt, added tokens among them
  text::TokenizerOptions tokenizer;
  std::optional<Dim> max_length = {};  ///< tokens of a text for transformers; none: the positions
};
/// What decides beside the vocabulary how texts become ids, as text to be compared.
std::string tokenizer_text(const text::TokenizerOptions& options);
/// The bytes of vocab.txt and tokenizer.json.
std::size_t vocabulary_bytes(const DirectoryFiles& contents);
/// Writes the configuration, vocab.txt, tokenizer_config.json and, if it can hold the vocabulary, tokenizer.json, each
/// durable, into a directory that exists.
void write_configuration(io::Files& files, const std::filesystem::path& directory, const DirectoryFiles& contents,
                         const char* config_name = "config.json");
/// Bytes of weights above which a model is written in shards.
constexpr std::uint64_t kMostOfShard = 2'000'000'000;
/// Writes what write_configuration() writes and model.safetensors, each durable, into a directory that exists. Weights
/// of more than `most_of_shard` bytes become shards as transformers writes them: model-00001-of-0000N.safetensors and
/// so on, and model.safetensors.index.json. Returns the CRC-32C of each tensor.
std::map<std::string, std::uint32_t> write_directory(io::Files& files, const std::filesystem::path& directory,
                                                     const DirectoryFiles& contents, const nn::ParameterSet& parameters,
                                                     std::uint64_t most_of_shard = UINT64_MAX);

/// Copies what sentence-transformers keeps beside an encoder, each file durable, into a directory that exists:
/// modules.json, its two configurations, and the directories that modules.json names. Nothing if `model` has no
/// modules.json. Throws Error(Failure::model) if that names a directory elsewhere.
void copy_sentence_files(io::Files& files, const std::filesystem::path& model, const std::filesystem::path& directory);

/// The parameters as google-research/bert names and lays them out, to be read from front to end. `directory` begins the
/// message of Error(Failure::model), which is thrown for a parameter that Google's code has no name for.
std::vector<io::TensorSource> google_tensors(const nn::ParameterSet& parameters,
                                             const std::filesystem::path& directory);

/// Writes bert_model.ckpt.index and bert_model.ckpt.data-00000-of-00001 with Google's names, `checkpoint`, and what
/// write_configuration() writes with the configuration as bert_config.json, each durable, into a directory that exists.
/// `step` becomes global_step. Throws Error(Failure::model) for a parameter that Google's code has no name for.
void write_checkpoint(io::Files& files, const std::filesystem::path& directory, const DirectoryFiles& contents,
                      const nn::ParameterSet& parameters, std::int64_t step = 0);

}  // namespace bertrand::bert
