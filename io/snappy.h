// Snappy's raw format (https://github.com/google/snappy, format_description.txt), read only: other tools compress the
// blocks of tables with it.
#pragma once
#include <string>
#include <string_view>

#include "io/error.h"

namespace bertrand::io {

/// What `bytes` were before they were compressed. `place` begins every message. Trusts nothing: throws Error(failure)
/// for a length above `most`, a copy from before the beginning, and data that is too short or too long for its length.
std::string decompress_snappy(std::string_view bytes, std::size_t most, const std::string& place, Failure failure);

}  // namespace bertrand::io
