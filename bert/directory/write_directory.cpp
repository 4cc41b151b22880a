// Model directories written: of Hugging Face, and of Google.
#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "bert/directory/added_tokens.h"
#include "bert/directory/config_file.h"
#include "bert/directory/google_names.h"
#include "bert/directory/model_directory.h"
#include "bert/directory/tokenizer_config.h"
#include "bert/directory/tokenizer_json.h"
#include "io/crc32c.h"
#include "io/error.h"
#include "io/json.h"
#include "io/safetensors.h"
#include "io/tensor_bundle.h"
#include "nn/tensor_file.h"

namespace bertrand::bert {
namespace {

namespace fs = std::filesystem;

std::vector<nn::NamedTensor> tensors_of(const nn::ParameterSet& parameters) {
  std::vector<nn::NamedTensor> tensors;
  for (const auto& segment : parameters.segments()) tensors.push_back({segment.name, parameters.master(segment)});
  return tensors;
}

/// Groups of at most `most` bytes in their order, as huggingface_hub makes them; a larger tensor is one by itself, and
/// what comes after it continues the group before.
std::vector<std::vector<nn::NamedTensor>> in_shards(const std::vector<nn::NamedTensor>& tensors, std::uint64_t most) {
  std::vector<std::vector<nn::NamedTensor>> shards;
  std::vector<nn::NamedTensor> open;
  std::uint64_t bytes = 0;
  for (const nn::NamedTensor& tensor : tensors) {
    if (tensor.value.bytes() > most) {
      shards.push_back({tensor});
      continue;
    }
    if (bytes + tensor.value.bytes() > most) {
      shards.push_back(std::exchange(open, {}));
      bytes = 0;
    }
    open.push_back(tensor);
    bytes += tensor.value.bytes();
  }
  if (!open.empty()) shards.push_back(std::move(open));
  return shards;
}

/// The index of shards, as transformers writes it: keys sorted.
std::string index_text(const std::map<std::string, std::string>& file_of, const std::vector<nn::NamedTensor>& tensors) {
  std::uint64_t bytes = 0, parameters = 0;
  for (const nn::NamedTensor& tensor : tensors) {
    bytes += tensor.value.bytes();
    parameters += static_cast<std::uint64_t>(tensor.value.elements());
  }
  io::Json weight_map = io::Json::object();
  for (const auto& [name, file] : file_of) io::append(weight_map, name, file);
  io::Json metadata{{"total_parameters", parameters}, {"total_size", bytes}};
  return io::json_text({{"metadata", std::move(metadata)}, {"weight_map", std::move(weight_map)}}, 2) + "\n";
}

std::map<std::string, std::uint32_t> write_weights(io::Files& files, const fs::path& directory,
                                                   const std::vector<nn::NamedTensor>& tensors, std::uint64_t most) {
  const auto shards = in_shards(tensors, most);
  std::map<std::string, std::uint32_t> checksums;
  std::map<std::string, std::string> file_of;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shards.size() == 1 ? "model.safetensors"
                                                : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    io::FileWriter out(files, directory / name);
    checksums.merge(nn::write_tensors(out, shards[i]));
    out.finish();
    for (const nn::NamedTensor& tensor : shards[i]) file_of[tensor.name] = name;
  }
  if (shards.size() > 1)
    io::write_file(files, directory / "model.safetensors.index.json", index_text(file_of, tensors));
  return checksums;
}

io::TensorSource global_step(std::int64_t step) {
  return {.name = "global_step",
          .type = io::find_safetensors_type("I64"),
          .dims = {},
          .bytes = sizeof step,
          .read = [step](std::uint64_t first, std::span<std::byte> part) {
            std::memcpy(part.data(), reinterpret_cast<const std::byte*>(&step) + first, part.size());
          }};
}

}  // namespace

std::string tokenizer_text(const text::TokenizerOptions& options) {
  std::string text = fmt::format("lower case {}, longest word {}", options.lower_case, options.max_chars_per_word);
  io::Json added;
  declare_added_tokens(added, options.added_tokens);
  if (!added.empty()) text += fmt::format(", added tokens {:08x}", io::crc32c(io::json_text(added)));
  return text;
}

std::size_t vocabulary_bytes(const DirectoryFiles& contents) {
  const auto json = tokenizer_json_text(contents.vocabulary, contents.tokenizer);
  return contents.vocabulary.size() + (json ? json->size() : 0);
}

void write_configuration(io::Files& files, const fs::path& directory, const DirectoryFiles& contents,
                         const char* config_name) {
  io::write_file(files, directory / config_name, config_text(without_origin(contents.config)));
  io::write_file(files, directory / "vocab.txt", contents.vocabulary);
  if (const auto json = tokenizer_json_text(contents.vocabulary, contents.tokenizer))
    io::write_file(files, directory / "tokenizer.json", *json);
  io::write_file(
      files, directory / "tokenizer_config.json",
      tokenizer_config_text(contents.tokenizer, contents.max_length.value_or(contents.config.max_position_embeddings)));
}

std::map<std::string, std::uint32_t> write_directory(io::Files& files, const fs::path& directory,
                                                     const DirectoryFiles& contents, const nn::ParameterSet& parameters,
                                                     std::uint64_t most_of_shard) {
  write_configuration(files, directory, contents);
  return write_weights(files, directory, tensors_of(parameters), most_of_shard);
}

std::vector<io::TensorSource> google_tensors(const nn::ParameterSet& parameters, const fs::path& directory) {
  std::vector<io::TensorSource> sources;
  for (const auto& [name, value] : tensors_of(parameters)) {
    const auto google = google_name(name);
    if (!google)
      fail(Failure::model, "{}: expected a parameter that google-research/bert has, got \"{}\"", directory.string(),
           name);
    const nn::NamedTensor named{google->name, value};
    sources.push_back(google->transposed ? nn::transposed_source(named) : nn::tensor_source(named));
  }
  return sources;
}

void write_checkpoint(io::Files& files, const fs::path& directory, const DirectoryFiles& contents,
                      const nn::ParameterSet& parameters, std::int64_t step) {
  constexpr const char* kPrefix = "bert_model.ckpt";
  std::vector<io::TensorSource> sources = google_tensors(parameters, directory);
  sources.push_back(global_step(step));
  write_configuration(files, directory, contents, "bert_config.json");
  io::write_bundle(files, directory / kPrefix, std::move(sources));
  io::write_file(files, directory / "checkpoint",
                 fmt::format("model_checkpoint_path: \"{0}\"\nall_model_checkpoint_paths: \"{0}\"\n", kPrefix));
}

}  // namespace bertrand::bert
