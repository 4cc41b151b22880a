// What sentence-transformers keeps beside an encoder.
#pragma once
#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace bertrand::bert {

/// The directory of a module, which lies beside modules.json, without a "/" at its end; empty for the model's own.
/// Throws Error(Failure::model) if it is elsewhere.
std::filesystem::path path_of_module(io::JsonReader& module);

/// Its files in the directory of the model.
constexpr std::array<std::string_view, 3> kSentenceFiles = {"modules.json", "sentence_bert_config.json",
                                                            "config_sentence_transformers.json"};
/// The names of the directories of modules that are in `directory`; none without modules.json. Throws
/// Error(Failure::model) if that names one elsewhere.
std::vector<std::filesystem::path> module_directories(const std::filesystem::path& directory);
/// The files of a directory, without directories in it.
std::vector<std::filesystem::path> files_of_module(const std::filesystem::path& directory);

}  // namespace bertrand::bert
