// A request by hand.
#include "serving/health_check.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "io/descriptor.h"
#include "io/error.h"
#include "io/numbers.h"

namespace bertrand::serving {
namespace {

struct Url {
  std::string host, port = "80", path = "/health";
};

Url read_url(const std::string& url) {
  constexpr std::string_view kBeginning = "http://";
  if (!url.starts_with(kBeginning)) fail(Failure::usage, "--check: expected http://HOST:PORT, got {}", url);
  std::string rest = url.substr(kBeginning.size());
  Url parts;
  if (const std::size_t slash = rest.find('/'); slash != std::string::npos) {
    if (slash + 1 < rest.size()) parts.path = rest.substr(slash);
    rest.resize(slash);
  }
  const std::size_t bracket = rest.find(']');  // [::1]:8501
  const std::size_t colon = rest.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon != std::string::npos)
    parts.port = std::to_string(io::parse_number<int>("--check: port", rest.substr(colon + 1), {1, 65535}));
  parts.host = bracket == std::string::npos ? rest.substr(0, colon) : rest.substr(1, bracket - 1);
  return parts;
}

Reply ask_one(const addrinfo& address, const std::string& request, std::chrono::milliseconds limit) {
  const io::Descriptor open(socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC, address.ai_protocol));
  if (!open) return {.line = {}, .problem = std::strerror(errno)};
  const int fd = open.number();
  const timeval longest{.tv_sec = limit.count() / 1000, .tv_usec = limit.count() % 1000 * 1000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
  char answer[64] = {};
  errno = 0;
  // The line may come in pieces: the buffer is filled, unless the server closes before, as it is asked to.
  if (connect(fd, address.ai_addr, address.ai_addrlen) != 0 ||
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0 ||
      recv(fd, answer, sizeof answer - 1, MSG_WAITALL) <= 0) {
    const bool is_late = errno == EAGAIN || errno == EINPROGRESS;  // the latter is connect()'s
    if (is_late) return {.line = {}, .problem = fmt::format("no answer within {} s", limit.count() / 1000.0)};
    return {.line = {}, .problem = errno ? std::strerror(errno) : "no answer"};
  }
  const std::string line(answer);
  return {.line = line.substr(0, line.find('\r')), .problem = {}};
}

}  // namespace

/// A server listens on some addresses of a host, as on 127.0.0.1 and not on ::1.
Reply ask(const addrinfo* addresses, const std::string& request, std::chrono::milliseconds limit) {
  Reply reply;
  for (const addrinfo* one = addresses; one && reply.line.empty(); one = one->ai_next)
    reply = ask_one(*one, request, limit);
  return reply;
}

void require_healthy(const std::string& url) {
  const Url parts = read_url(url);
  const auto refuse = [&](const std::string& got) {
    fail(Failure::io, "{}: expected a healthy server, got {}", url, got);
  };
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(parts.host.c_str(), parts.port.c_str(), &wanted, &found); error != 0)
    refuse(gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  const bool is_ipv6 = parts.host.find(':') != std::string::npos;
  const std::string request = fmt::format("GET {} HTTP/1.1\r\nHost: {}{}{}:{}\r\nConnection: close\r\n\r\n", parts.path,
                                          is_ipv6 ? "[" : "", parts.host, is_ipv6 ? "]" : "", parts.port);
  const Reply reply = ask(found, request);
  if (!reply.line.starts_with("HTTP/1.1 200")) refuse(reply.line.empty() ? reply.problem : reply.line);
}

}  // namespace bertrand::serving
