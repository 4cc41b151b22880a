// Checks that all processes of a run were started in the same way.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "distributed/collective.h"

namespace bertrand::distributed {

/// What must be the same in all processes, by name: version, kernel set, flags, files.
using Facts = std::vector<std::pair<std::string, std::string>>;

/// Returns if all processes have the same facts. Otherwise throws Error(Failure::usage) in all of them, with two that
/// differ, their hosts and the fact.
void require_agreement(Collective& processes, Backend& backend, const Facts& facts);

}  // namespace bertrand::distributed
