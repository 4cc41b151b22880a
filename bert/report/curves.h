// The curves of a run, out of metrics.jsonl.
#pragma once
#include <string_view>

#include "io/json.h"

namespace bertrand::report {

/// {"loss": {"x": steps, "y": values}, …} of the lines of metrics.jsonl; what is not finite is null. Of a curve of more
/// than `most` points as many are left: the lowest and the highest of each stretch, so that no spike is lost.
/// `damaged` becomes the number of lines that are no such line.
io::Json curves_of(std::string_view lines, std::size_t most, std::size_t& damaged);

}  // namespace bertrand::report
