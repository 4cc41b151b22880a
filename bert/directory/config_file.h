// The file form of a model's shape: Hugging Face's config.json and Google's bert_config.json.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "bert/network/config.h"

namespace bertrand::bert {

enum class UnknownKeys {
  keep,   ///< of a model directory, which other programs write
  refuse  ///< of a file that the user wrote: the error names the nearest known key
};

/// Reads a configuration; a key that is missing has its default. Throws Error(Failure::model) naming file, key,
/// expected and got for a value out of range and for a model that is computed in another way than bert::Bert, and
/// Error(Failure::usage) for an unknown key that is refused.
Config read_config_file(const std::filesystem::path& file, UnknownKeys unknown);
/// The same for text at hand; `file` stands for it in messages.
Config parse_config(std::string_view text, const std::string& file, UnknownKeys unknown);

/// Labels that a classifier may have without names.
constexpr std::int64_t kMostLabels = 1 << 20;
/// LABEL_0 and so on, as transformers names them.
std::vector<std::string> numbered_labels(std::int64_t count);

/// config.json as transformers reads it, with the keys in `others`.
std::string config_text(const Config& config);

/// Without what other programs said of the model that training began with: where it came from, what wrote it, and its
/// tokenizer, which tokenizer_config.json names.
Config without_origin(Config config);

}  // namespace bertrand::bert
