// What a model that is trained said of the same examples, from evaluation to evaluation.
#pragma once
#include <string_view>

#include "io/json.h"

namespace bertrand::report {

/// At most `most` of the lines of samples.jsonl, the first and the last among them: {"steps": [...], "examples":
/// [{"tokens", "masked": [{"position", "truth", "probabilities", "guesses"}]}]}, the last two with an entry for each
/// step. An empty object if there are none. `damaged` becomes the number of lines that are not as those before them.
io::Json samples_of(std::string_view lines, std::size_t most, std::size_t& damaged);

}  // namespace bertrand::report
