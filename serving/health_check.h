// serve --check: asks a server for its health, for containers that have no curl.
#pragma once
#include <chrono>
#include <string>

struct addrinfo;

namespace bertrand::serving {

/// GET URL (its path is /health if it has none) of the first address of the host where anything answers within 5
/// seconds. Throws Error(Failure::usage) for what is no http:// URL, and Error(Failure::io) if nothing answers or the
/// answer has another status than 200.
void require_healthy(const std::string& url);

struct Reply {
  std::string line;     ///< the first of the answer; empty if there was none
  std::string problem;  ///< why there was none
};
/// Sends the request to one address after another until one answers. A test chooses the addresses and the limit.
Reply ask(const addrinfo* addresses, const std::string& request,
          std::chrono::milliseconds limit = std::chrono::seconds(5));

}  // namespace bertrand::serving
