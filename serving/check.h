// serve --check: asks a server for its health, for containers that have no curl.
#pragma once
#include <string>

namespace bertrand::serving {

/// GET URL (its path is /health if it has none). Throws Error(Failure::usage) for what is no http:// URL, and
/// Error(Failure::io) if no answer with status 200 comes within 5 seconds.
void check(const std::string& url);

}  // namespace bertrand::serving
