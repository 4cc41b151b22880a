// Processes of one run must have been started alike.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "distributed/collective.h"

namespace bertrand::distributed {

/// What decides the result, by name: version, kernel set, flags, files.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Returns when all processes have shown the same facts; throws Error(Failure::usage) in all of them otherwise, naming
/// two that differ, their hosts, and in what.
void require_agreement(Collective& processes, Backend& backend, const Facts& facts);

}  // namespace bertrand::distributed
