// What modules.json of sentence-transformers names.
#pragma once
#include <filesystem>

#include "io/json.h"

namespace bertrand::bert {

/// The directory of a module, which lies beside modules.json, without a "/" at its end; empty for the model's own.
/// Throws Error(Failure::model) if it is elsewhere.
std::filesystem::path path_of_module(io::JsonReader& module);

}  // namespace bertrand::bert
