// What a connection does in each of its states.
#include "serving/connection.h"

#include <fmt/chrono.h>
#include <sys/socket.h>

#include <cerrno>
#include <ctime>

#include "io/error.h"
#include "io/say.h"

namespace bertrand::serving {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::beast::error_code;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kGoodbye{1000};    // for a client that has yet to read why it was refused, or that is late
constexpr std::size_t kPiece = 16 << 10;  // bytes that are read at once
constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";

/// /path of http://host/path, which a server must take too (RFC 9112, 3.2.2); any other target as it is.
std::string without_host(const std::string& target) {
  const std::size_t scheme = target.find("://");
  if (target.starts_with('/') || scheme == std::string_view::npos) return target;
  const std::string rest = target.substr(scheme + 3);
  const std::size_t path = std::min(rest.find_first_of("/?"), rest.size());
  return (rest.substr(path).starts_with('/') ? "" : "/") + rest.substr(path);
}

/// The first value of a field, however often the request has it, that is another one.
std::optional<std::string> other_value(const http::fields& fields, http::field name, boost::beast::string_view than) {
  const auto [begin, end] = fields.equal_range(name);
  for (auto each = begin; each != end; ++each)
    if (!boost::beast::iequals(each->value(), than)) return std::string(each->value());
  return {};
}

}  // namespace

class Asked final : public Exchange, public std::enable_shared_from_this<Asked> {
 public:
  Asked(asio::io_context& context, std::weak_ptr<Connection> from) : context_(context), from_(std::move(from)) {}
  void answer(std::function<Response()> make, std::function<void()> nobody = nullptr) override;
  bool is_wanted() const override { return wanted_; }
  void drop() { wanted_ = false; }

 private:
  asio::io_context& context_;
  const std::weak_ptr<Connection> from_;
  std::atomic<bool> wanted_ = true;
};

/// What follows an operation: nothing after close(), even if the operation had ended well before.
template <class Next>
auto Connection::unless_closed(Next next) {
  return [self = shared_from_this(), next = std::move(next)](error_code error, auto...) {
    if (self->state_ != State::closed) next(error);
  };
}

Connection::Connection(tcp::socket socket, ServerState& server)
    : server_(server),
      socket_(std::move(socket)),
      timer_(server.context),
      buffer_(server.options.max_header + kPiece),
      body_share_(server.budget),
      place_(server.lazy.insert(server.lazy.end(), this)) {}

ssize_t Connection::peek() {
  char one = 0;
  return ::recv(socket_.native_handle(), &one, 1, MSG_PEEK | MSG_DONTWAIT);
}

void Asked::answer(std::function<Response()> make, std::function<void()> nobody) {
  asio::post(context_, [self = shared_from_this(), make = std::move(make), nobody = std::move(nobody)] {
    if (!self->wanted_.exchange(false)) return nobody ? nobody() : void();
    if (const auto connection = self->from_.lock()) connection->reply(make);
  });
}

void Connection::enter(State state, milliseconds at_most) {
  const auto is_lazy = [](State s) { return s == State::idle || s == State::sending; };
  // A connection that sends keeps its place: it is as old as its last answer.
  if (state != State::sending || !is_lazy(state_)) {
    auto &from = is_lazy(state_) ? server_.lazy : server_.busy, &to = is_lazy(state) ? server_.lazy : server_.busy;
    to.splice(to.end(), from, place_);
  }
  state_ = state;
  timer_.expires_after(at_most);
  timer_.async_wait(unless_closed([this, mine = ++deadline_](error_code error) {
    if (!error && mine == deadline_) on_late();
  }));
}

void Connection::on_late() {
  switch (state_) {
    case State::sending:
      late_ = true;
      socket_.cancel();  // on_bad() goes on
      break;
    case State::waiting:
      asked_->drop();
      asked_.reset();
      refuse(504, fmt::format("expected an answer within {} ms, got none", server_.options.timeout.count()));
      break;
    default: close();
  }
}

/// Waits for the next request, or for the client to leave.
void Connection::idle() {
  parser_.reset();  // for memory alone
  enter(State::idle, server_.options.idle);
  if (buffer_.size() > 0) return begin_request();
  buffer_.shrink_to_fit();  // whoever idles holds nothing
  if (server_.stopping && peek() <= 0) return close();
  watch();
}

void Connection::watch() {
  if (std::exchange(watching_, true)) return;
  const auto next = unless_closed([this](error_code error) {
    watching_ = false;
    if (error == asio::error::operation_aborted) return;  // by on_late(), whose request is answered
    if (error) return close();
    if (state_ == State::idle) return begin_request();
    const ssize_t got = peek();
    if (got < 0 && errno != EAGAIN) return close();
    if (got == 0) on_end();
  });
  socket_.async_wait(tcp::socket::wait_read, next);
}

/// The client has left, or it has sent all and still reads. What it is sent now shows which: one that has left resets
/// the connection, and to one that reads an answer of 100 says nothing.
void Connection::on_end() {
  if (!std::exchange(at_end_, true)) {
    const auto next = unless_closed([this](error_code error) {
      if (!error) close();
    });
    socket_.async_wait(tcp::socket::wait_error, next);
  }
  if (state_ == State::waiting && is_http_1_1())
    ::send(socket_.native_handle(), kGoOn.data(), kGoOn.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/// RFC 9112, 2.2: one before a request is no part of it. Some clients send it after a body.
bool Connection::pass_over_empty_line() {
  const std::string_view bytes(static_cast<const char*>(buffer_.data().data()), buffer_.size());
  if (late_ || !bytes.starts_with("\r\n")) return false;
  buffer_.consume(2);
  return true;
}

bool Connection::is_http_1_1() const { return parser_->get().version() >= 11; }

void Connection::begin_request() {
  enter(State::sending, server_.stopping ? kGoodbye : server_.options.timeout);
  read_header();
}

void Connection::read_header() {
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(server_.options.max_header));
  parser_->body_limit(server_.options.max_body);
  const auto next = unless_closed([this](error_code error) {
    if (error == http::error::bad_method && pass_over_empty_line()) return read_header();
    if (error || late_) return on_bad(error);
    on_header();
  });
  http::async_read_header(socket_, buffer_, *parser_, next);
}

void Connection::on_header() {
  auto& head = parser_->get();
  // RFC 9112, 3.2: with two, a proxy may have read the other one.
  const std::size_t hosts = head.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && is_http_1_1()))
    return refuse(400, fmt::format("Host: expected one, got {}", hosts == 0 ? "none" : std::to_string(hosts)));
  // RFC 9112, 6.1: something on the way that knows no chunks may see other requests in it.
  if (!is_http_1_1() && head.count(http::field::transfer_encoding) > 0)
    return refuse(400, "Transfer-Encoding: expected none in HTTP/1.0, got one");
  // RFC 9112, 6.3: where a body of another coding ends is not known, and what follows is no request.
  if (const auto other = other_value(head, http::field::transfer_encoding, "chunked"))
    return refuse(400, "Transfer-Encoding: expected chunked, got " + *other);
  const bool has_body = !parser_->is_done();
  const auto coding = other_value(head, http::field::content_encoding, "identity");
  if (has_body && coding)
    return refuse(415, "Content-Encoding: expected none, got " + *coding + "; hint: send the JSON as it is");
  if (head.count("Inference-Header-Content-Length") > 0)  // of KServe: numbers follow the JSON
    return refuse(400,
                  "Inference-Header-Content-Length: expected JSON alone, got the binary extension; hint: "
                  "binary_data=False");
  parser_->eager(true);  // all chunks that have come, for speed alone
  const bool is_expected =
      has_body && is_http_1_1() && boost::beast::iequals(head[http::field::expect], "100-continue");
  head.clear();  // each field takes many times its text, for as long as the answer is not out
  if (!is_expected) return read_body();
  const auto next = unless_closed([this](error_code error) {
    if (error || late_) return on_bad(error);
    read_body();
  });
  asio::async_write(socket_, asio::buffer(kGoOn), next);
}

/// Piece by piece, so that only what has come counts.
void Connection::read_body() {
  if (!body_share_.grow_to(parser_->get().body().size()))
    return refuse(429, "expected room for the body, got a server whose memory for requests is in use; hint: later");
  if (parser_->is_done()) return on_request();
  const auto next = unless_closed([this](error_code error) {
    if (error || late_) return on_bad(error);
    read_body();
  });
  http::async_read_some(socket_, buffer_, *parser_, next);
}

void Connection::on_bad(error_code error) {
  const HttpOptions& limits = server_.options;
  if (late_) return refuse(408, fmt::format("expected a request within {} ms, got a part", limits.timeout.count()));
  if (error == http::error::body_limit)
    return refuse(413, fmt::format("body: expected at most {} bytes, got more", limits.max_body));
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return refuse(400, fmt::format("header: expected at most {} bytes, got more", limits.max_header));
  const bool is_http = error.category() == http::make_error_code(http::error::bad_value).category();
  if (!is_http || error == http::error::end_of_stream || error == http::error::partial_message) return close();
  refuse(400, "expected HTTP/1.1, got " + error.message());
}

/// The request without its body.
Request Connection::head() const {
  const auto& message = parser_->get();
  return {.method = std::string(message.method_string()), .target = without_host(std::string(message.target()))};
}

void Connection::on_request() {
  Request request = head();
  request.body = std::move(parser_->get().body());
  enter(State::waiting, server_.options.timeout);
  asked_ = std::make_shared<Asked>(server_.context, weak_from_this());
  watch();
  body_share_.reset();  // the handler counts the body with what it makes of it, and on this thread alone a share grows
  try {
    server_.handler(request, asked_);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    asked_->answer([what]() -> Response { throw std::runtime_error(what); });
  }
}

void Connection::reply(const std::function<Response()>& make) {
  asked_.reset();
  try {
    write(make(), false);
  } catch (const std::exception& error) {
    io::tell("error: {}", error.what());
    write(server_.refuse(head(), 500, "internal error"), false);
  }
}

/// Refuses a request that cannot be read further; no later bytes are read as a request.
void Connection::refuse(int status, const std::string& why) {
  body_share_.reset();
  write(server_.refuse(head(), status, why), true);
}

void Connection::write(Response response, bool last) {
  enter(State::answering, server_.options.timeout);
  const bool has_head = parser_ && parser_->is_header_done();
  const bool without_body = has_head && parser_->get().method() == http::verb::head;
  keeps_ = std::move(response.keeps);
  response_ = {http::int_to_status(static_cast<unsigned>(response.status)), has_head ? parser_->get().version() : 11};
  response_.set(http::field::date, fmt::format("{:%a, %d %b %Y %H:%M:%S GMT}", fmt::gmtime(std::time(nullptr))));
  response_.set(http::field::content_type, response.content_type);
  if (response.status == 429 || response.status == 503) response_.set(http::field::retry_after, "1");
  if (response.status == 415) response_.set(http::field::accept_encoding, "identity");
  if (!response.allow.empty()) response_.set(http::field::allow, response.allow);
  const bool is_last = last || ((server_.stopping || at_end_) && buffer_.size() == 0);
  response_.keep_alive(!is_last && has_head && parser_->keep_alive());
  response_.content_length(response.body.size());
  if (!without_body) response_.body() = std::move(response.body);
  const auto next = unless_closed([this](error_code error) {
    keeps_.reset();
    if (error) return close();
    if (!response_.keep_alive()) return leave();
    response_ = {};
    idle();
  });
  http::async_write(socket_, response_, next);
}

/// Closing while input lies unread would take the answer from the client before it has read it.
void Connection::leave() {
  error_code ignored;
  socket_.shutdown(tcp::socket::shutdown_send, ignored);
  if (parser_ && parser_->is_done() && peek() <= 0) return close();
  enter(State::leaving, kGoodbye);
  buffer_.clear();
  discard();
}

void Connection::discard() {
  const auto next = unless_closed([this](error_code error) {
    if (error) return close();
    discard();
  });
  socket_.async_read_some(buffer_.prepare(kPiece), next);
}

void Connection::stop() {
  if (state_ == State::idle && peek() <= 0) return close();
  if (state_ == State::sending) enter(State::sending, kGoodbye);
}

void Connection::close() {
  if (state_ == State::closed) return;
  if (asked_) asked_->drop();
  asked_.reset();
  (state_ == State::idle || state_ == State::sending ? server_.lazy : server_.busy).erase(place_);
  state_ = State::closed;
  timer_.cancel();
  body_share_.reset();
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace bertrand::serving
