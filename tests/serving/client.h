// A client that sends whatever bytes it likes, and reads one answer after another.
#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace support {

struct Answer {
  int status = 0;  ///< 0: the connection ended without one
  std::string head, body;

  nlohmann::json json() const { return nlohmann::json::parse(body); }
  std::string error() const { return json().at("error"); }
};

class Client {
 public:
  /// `url` is http://127.0.0.1:PORT.
  explicit Client(const std::string& url) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(std::atoi(url.substr(url.rfind(':') + 1).c_str())));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    is_connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~Client() { leave(); }
  Client(Client&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)),
        is_connected_(other.is_connected_),
        is_at_end_(other.is_at_end_),
        rest_(std::move(other.rest_)) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool is_connected() const { return is_connected_; }
  /// False if the other end does not take it all.
  bool send(const std::string& bytes) const {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    return true;
  }
  /// What comes next, within a minute.
  Answer read(bool with_body = true) {
    Answer answer;
    std::size_t end = 0;
    while ((end = rest_.find("\r\n\r\n")) == std::string::npos)
      if (!more()) return {};
    answer.head = rest_.substr(0, end + 2);
    rest_.erase(0, end + 4);
    answer.status = std::atoi(answer.head.c_str() + std::string("HTTP/1.1 ").size());
    const std::size_t place = answer.head.find("Content-Length: ");
    if (place == std::string::npos || !with_body) return answer;
    const auto length = static_cast<std::size_t>(std::atoll(answer.head.c_str() + place + 16));
    while (rest_.size() < length)
      if (!more()) return {};
    answer.body = rest_.substr(0, length);
    rest_.erase(0, length);
    return answer;
  }
  /// Whether the other end has closed the connection, or does so within a minute, and sends nothing before.
  bool is_closed() {
    while (more()) {
    }
    return is_at_end_ && rest_.empty();
  }
  /// Ends the side that sends: what comes is still read.
  void end() const { shutdown(fd_, SHUT_WR); }
  void leave() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }
  /// Leaves with a reset of the connection, as a client that crashes may.
  void reset() {
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    leave();
  }

  Answer ask(const std::string& bytes) {
    send(bytes);
    return read();
  }
  Answer post(const std::string& path, const std::string& body) { return ask(post_text(path, body)); }
  Answer get(const std::string& path) { return ask("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n"); }

  static std::string post_text(const std::string& path, const std::string& body) {
    return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
           body;
  }

 private:
  bool more() {
    char block[1 << 14];
    pollfd input{.fd = fd_, .events = POLLIN, .revents = 0};
    if (poll(&input, 1, 60'000) <= 0) return false;
    const ssize_t n = recv(fd_, block, sizeof block, 0);
    if (n > 0) rest_.append(block, static_cast<std::size_t>(n));
    is_at_end_ = n == 0 || (n < 0 && errno == ECONNRESET);
    return n > 0;
  }

  int fd_ = -1;
  bool is_connected_ = false;
  bool is_at_end_ = false;  // whether the other end has closed the connection
  std::string rest_;
};

}  // namespace support
