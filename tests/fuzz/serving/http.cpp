// The bytes that a client sends on one connection; the first one says in how large pieces. Every answer is HTTP, and
// the connection ends as soon as the client sends nothing more.
#include <sys/socket.h>

#include "fuzz/fuzz.h"
#include "serving/connection.h"

using namespace bertrand::serving;

namespace {

constexpr const char* kAnswer = "HTTP/1.";

/// What has come. Returns whether anything has.
bool receive(int socket, std::string& answers) {
  char block[1 << 14];
  const ssize_t n = ::recv(socket, block, sizeof block, MSG_DONTWAIT);
  if (n > 0) answers.append(block, static_cast<std::size_t>(n));
  return n > 0;
}

void converse(std::string_view input, std::size_t piece, std::string& answers) {
  Budget budget(1 << 16);
  ServerState state{
      .options = {.max_header = 4 << 10, .max_body = 16 << 10},
      .budget = budget,
      .handler =
          [](const Request& request, const std::shared_ptr<Exchange>& exchange) {
            exchange->answer([request] { return Response{.body = request.method + request.target + request.body}; });
          },
      .refuse =
          [](const Request& head, int status, const std::string& why) {
            fuzz::require(status >= 400 && status < 505, "the status of a refusal");
            return Response{.status = status, .body = head.method + head.target + why};
          }};
  int ends[2];
  fuzz::require(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "a pair of sockets");
  boost::asio::ip::tcp::socket socket(state.context);
  socket.assign(boost::asio::ip::tcp::v4(), ends[0]);
  std::make_shared<Connection>(std::move(socket), state)->idle();
  bool is_open = true;
  for (int rounds = 0; !state.lazy.empty() || !state.busy.empty(); ++rounds) {
    fuzz::require(rounds < 1'000'000, "a connection that ends");
    while (state.context.poll_one() > 0 || receive(ends[1], answers)) {
    }
    const ssize_t n = ::send(ends[1], input.data(), std::min(piece, input.size()), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n > 0) input.remove_prefix(static_cast<std::size_t>(n));
    else if (std::exchange(is_open, false)) ::shutdown(ends[1], SHUT_WR);
  }
  while (receive(ends[1], answers)) {
  }
  ::close(ends[1]);
  fuzz::require(budget.held() == 0, "nothing held for a connection that ended");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string answers;
  converse(fuzz::text_of(data, size).substr(1), data[0] == '0' ? size : 1 + data[0], answers);
  fuzz::require(answers.empty() || answers.starts_with(kAnswer), "an answer in HTTP");
  return 0;
}
