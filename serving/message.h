// A request and its answer, as everything but the sockets sees them.
#pragma once
#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

namespace bertrand::serving {

struct Request {
  std::string method;
  std::string target;  ///< the path with what follows a question mark
  std::string body;
};

struct Response {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::string allow = {};                       ///< the methods that the path has, if it has not the request's
  std::shared_ptr<const void> keeps = nullptr;  ///< what lives until the answer has left or cannot leave any more
};

/// Thrown by whatever reads a request: the answer is this status with this message in the words of its dialect.
struct Refusal {
  int status;
  std::string message;
};

template <class... Args>
[[noreturn]] void refuse(int status, fmt::format_string<Args...> message, Args&&... args) {
  throw Refusal{status, fmt::format(message, std::forward<Args>(args)...)};
}

}  // namespace bertrand::serving
