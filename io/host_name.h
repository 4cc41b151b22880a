// The name of this machine.
#pragma once
#include <string>

namespace bertrand::io {

/// As gethostname tells it; "localhost" if it tells none.
std::string host_name();

}  // namespace bertrand::io
