// A request by hand.
#include "serving/check.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "io/error.h"

namespace bertrand::serving {
namespace {

struct Place {
  std::string host, port = "80", path = "/health";
};

Place read_url(const std::string& url) {
  constexpr std::string_view kBeginning = "http://";
  if (!url.starts_with(kBeginning)) fail(Failure::usage, "--check: expected http://HOST:PORT, got {}", url);
  std::string rest = url.substr(kBeginning.size());
  Place place;
  if (const std::size_t slash = rest.find('/'); slash != std::string::npos) {
    if (slash + 1 < rest.size()) place.path = rest.substr(slash);
    rest.resize(slash);
  }
  const std::size_t bracket = rest.find(']');  // [::1]:8501
  const std::size_t colon = rest.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon != std::string::npos) place.port = rest.substr(colon + 1);
  place.host = bracket == std::string::npos ? rest.substr(0, colon) : rest.substr(1, bracket - 1);
  return place;
}

}  // namespace

void check(const std::string& url) {
  const Place place = read_url(url);
  const auto refuse = [&](const std::string& got) {
    fail(Failure::io, "{}: expected a healthy server, got {}", url, got);
  };
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(place.host.c_str(), place.port.c_str(), &wanted, &found); error != 0)
    refuse(gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  const int fd = socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol);
  const std::unique_ptr<const int, void (*)(const int*)> closer(&fd, [](const int* open) { close(*open); });
  const timeval limit{.tv_sec = 5, .tv_usec = 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", place.path, place.host);
  char answer[64] = {};
  if (connect(fd, found->ai_addr, found->ai_addrlen) != 0 ||
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0 || recv(fd, answer, sizeof answer - 1, 0) <= 0)
    refuse(errno ? std::strerror(errno) : "no answer");
  const std::string_view line(answer);
  if (!line.starts_with("HTTP/1.1 200")) refuse(std::string(line.substr(0, line.find('\r'))));
}

}  // namespace bertrand::serving
