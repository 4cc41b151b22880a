// Numbers below a base directory.
#include "apps/export/place.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "bert/directory/model_directory.h"
#include "io/error.h"
#include "io/numbers.h"

namespace bertrand::exporting {

namespace fs = std::filesystem;

Place next_version(const fs::path& base) {
  if (!fs::is_directory(base)) return {.directory = base, .inside = "1"};
  std::int64_t highest = 0;
  for (const auto& entry : fs::directory_iterator(base)) {
    const std::string name = entry.path().filename().string();
    if (name == "saved_model.pb" || bert::is_model_file(name))
      fail(Failure::usage,
           "--output: {}: expected a directory of versions, 1 and so on, got one with {}; hint: name {}", base.string(),
           name, name == "saved_model.pb" ? "the directory above it" : "another");
    highest = std::max(highest, io::whole_number(name).value_or(0));
  }
  if (highest == std::numeric_limits<std::int64_t>::max())
    fail(Failure::usage, "--output: {}: expected versions below {}, got this one; hint: name another directory",
         base.string(), highest);
  return {.directory = base / std::to_string(highest + 1)};
}

}  // namespace bertrand::exporting
