// serve --check: what it asks, and how it reads what is answered.
#include "serving/health_check.h"

#include <doctest/doctest.h>
#include <netdb.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "serving/toy_server.h"
#include "support/file_limit.h"
#include "support/refusal.h"

using namespace bertrand;

namespace {

/// A port that is listened on, which accept() waits for 5 seconds.
class Listener {
 public:
  Listener() {
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof place;
    REQUIRE(bind(fd_, reinterpret_cast<const sockaddr*>(&place), size) == 0);
    REQUIRE(getsockname(fd_, reinterpret_cast<sockaddr*>(&place), &size) == 0);
    REQUIRE(listen(fd_, 1) == 0);
    const timeval limit{.tv_sec = 5, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    port = ":" + std::to_string(ntohs(place.sin_port));
  }
  ~Listener() { close(fd_); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Takes one client, reads its request, sends these pieces one by one, and closes.
  std::string serve(const std::vector<std::string>& pieces) const {
    const int client = accept(fd_, nullptr, nullptr);
    std::string request(1000, '\0');
    request.resize(static_cast<std::size_t>(std::max(recv(client, request.data(), request.size(), 0), ssize_t{0})));
    for (const std::string& piece : pieces) {
      if (&piece != &pieces.front()) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      send(client, piece.data(), piece.size(), MSG_NOSIGNAL);
    }
    close(client);
    return request;
  }

  std::string port;  ///< with a colon before it

 private:
  const int fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

}  // namespace

TEST_CASE("a health check asks for the path of its URL or else for /health, and says so if nothing is answered") {
  const Listener listener;
  const std::string& port = listener.port;
  const auto asked = [&](const std::string& url) {
    std::string request;
    std::thread server([&] { request = listener.serve({}); });
    errno = ENOENT;  // of an earlier call
    CHECK(support::refusal(Failure::io, [&] { serving::require_healthy(url); }).ends_with(", got no answer"));
    server.join();
    CHECK(request.find("\r\nHost: 127.0.0.1" + port + "\r\n") != std::string::npos);
    return request.substr(0, request.find('\r'));
  };
  CHECK(asked("http://127.0.0.1" + port) == "GET /health HTTP/1.1");
  CHECK(asked("http://127.0.0.1" + port + "/") == "GET /health HTTP/1.1");
  CHECK(asked("http://127.0.0.1" + port + "/a?b") == "GET /a?b HTTP/1.1");
  CHECK(asked("http://[127.0.0.1]" + port + "/a") == "GET /a HTTP/1.1");  // as an address of IPv6 is written
}

TEST_CASE("a health check of a host that there is not says why") {
  const std::string refusal = support::refusal(Failure::io, [] { serving::require_healthy("http://no such host"); });
  const std::string before = "http://no such host: expected a healthy server, got ";
  CHECK(refusal.starts_with(before));
  CHECK(refusal.size() > before.size());
}

TEST_CASE("a health check reads an answer that comes in pieces") {
  const Listener listener;
  const auto check = [&](const std::vector<std::string>& pieces) {
    std::thread server([&] { listener.serve(pieces); });
    const std::string refusal =
        support::refusal(Failure::io, [&] { serving::require_healthy("http://127.0.0.1" + listener.port); });
    server.join();
    return refusal;
  };
  CHECK(check({"HTTP/1.1 404 Not", " Found\r\nContent-Length: 0\r\n\r\n"}).ends_with("got HTTP/1.1 404 Not Found"));
  const std::string line = "HTTP/1.1 404 " + std::string(100, 'x');  // of which the first 63 bytes are shown
  CHECK(check({line}).ends_with("got HTTP/1.1 404 " + std::string(50, 'x')));
  std::thread server([&] { listener.serve({"HTTP/1.1 2", "00 OK\r\nContent-", "Length: 0\r\n\r\n"}); });
  CHECK_NOTHROW(serving::require_healthy("http://127.0.0.1" + listener.port));
  server.join();
}

TEST_CASE("a health check of a server that hangs says how long it waited") {
  const Listener listener;  // takes nobody: two clients wait in its queue, and a third outside of it
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = htons(static_cast<std::uint16_t>(std::stoi(listener.port.substr(1))));
  addrinfo address{};
  address.ai_family = AF_INET;
  address.ai_socktype = SOCK_STREAM;
  address.ai_addrlen = sizeof place;
  address.ai_addr = reinterpret_cast<sockaddr*>(&place);
  for (int i = 0; i < 3; ++i)
    CHECK(serving::ask(&address, "GET / HTTP/1.1\r\n\r\n", std::chrono::milliseconds(50)).problem ==
          "no answer within 0.05 s");
}

TEST_CASE("a health check tries every address of the host") {
  const support::ToyServer server;
  sockaddr_in closed{}, open{};
  closed.sin_family = open.sin_family = AF_INET;
  closed.sin_addr.s_addr = open.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  open.sin_port = htons(static_cast<std::uint16_t>(server.port()));
  const int bound = socket(AF_INET, SOCK_STREAM, 0);  // whose port nobody listens on
  socklen_t size = sizeof closed;
  REQUIRE(bind(bound, reinterpret_cast<const sockaddr*>(&closed), size) == 0);
  REQUIRE(getsockname(bound, reinterpret_cast<sockaddr*>(&closed), &size) == 0);

  addrinfo second{}, first{};
  second.ai_family = first.ai_family = AF_INET;
  second.ai_socktype = first.ai_socktype = SOCK_STREAM;
  second.ai_addrlen = first.ai_addrlen = sizeof open;
  second.ai_addr = reinterpret_cast<sockaddr*>(&open);
  first.ai_addr = reinterpret_cast<sockaddr*>(&closed);
  const std::string request = "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
  CHECK(serving::ask(&first, request).problem == "Connection refused");
  first.ai_next = &second;
  CHECK(serving::ask(&first, request).line == "HTTP/1.1 200 OK");
  close(bound);

  const support::FileLimit none(0);
  CHECK(serving::ask(&second, request).problem == "Too many open files");
}
