// The sockets, by Boost.Beast. It is the only file that includes Beast, which takes a minute to compile.
#include "apps/serve/http.h"

#include <sys/socket.h>
#include <unistd.h>

// Boost 1.74 uses these and does not include them.
#include <optional>
#include <utility>

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <cerrno>
#include <csignal>
#include <list>

#include "apps/serve/say.h"
#include "io/error.h"
#include "io/json.h"

namespace bertrand::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using beast::error_code;
using std::chrono::milliseconds;

constexpr milliseconds kGoodbye{1000};    // for a client that has yet to read why it was refused, or that is late
constexpr std::size_t kPiece = 16 << 10;  // bytes that are read at once

class Connection;

/// What the connections of a server have in common. It is used on the thread of run() alone.
struct Shared {
  const HttpOptions options;
  Budget& budget;
  const HttpServer::Handler handler;
  std::list<Connection*> lazy = {};  // those that idle or send, the oldest first
  std::list<Connection*> busy = {};  // all others
  bool stopping = false;
  asio::io_context context{1};
};

class Asked final : public Exchange, public std::enable_shared_from_this<Asked> {
 public:
  Asked(asio::io_context& context, std::weak_ptr<Connection> from) : context_(context), from_(std::move(from)) {}
  void answer(std::function<Response()> make) override;
  bool is_wanted() const override { return wanted_; }
  void drop() { wanted_ = false; }

 private:
  asio::io_context& context_;
  const std::weak_ptr<Connection> from_;
  std::atomic<bool> wanted_ = true;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(tcp::socket socket, Shared& shared)
      : shared_(shared),
        socket_(std::move(socket)),
        timer_(shared.context),
        buffer_(shared.options.max_header + kPiece),
        body_share_(shared.budget),
        place_(shared.lazy.insert(shared.lazy.end(), this)) {}

  void idle();
  /// The answer to the request that waits.
  void reply(const std::function<Response()>& make);
  void stop();
  void close();

 private:
  enum class State { idle, sending, waiting, answering, leaving, closed };

  void enter(State state, milliseconds at_most);
  void on_late();
  void watch();
  void read_header();
  void read_body();
  void on_bad(error_code error);
  void on_request();
  void refuse(int status, const std::string& message);
  void write(Response response, bool last);
  void leave();
  void discard();
  /// What recv() would return: 0 if the client has left, less if nothing is there or the connection is broken.
  ssize_t peek() {
    char one = 0;
    return ::recv(socket_.native_handle(), &one, 1, MSG_PEEK | MSG_DONTWAIT);
  }

  Shared& shared_;
  tcp::socket socket_;
  asio::steady_timer timer_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  std::shared_ptr<const void> keeps_;  // what the response keeps
  Budget::Share body_share_;
  std::shared_ptr<Asked> asked_;  // while it waits
  std::list<Connection*>::iterator place_;
  State state_ = State::idle;
  std::uint64_t deadline_ = 0;  // counts them: an old one that fires late says nothing
  bool late_ = false;
  bool watching_ = false;  // whether a wait for input is under way
};

void Asked::answer(std::function<Response()> make) {
  asio::post(context_, [self = shared_from_this(), make = std::move(make)] {
    if (!self->wanted_.exchange(false)) return;
    if (const auto connection = self->from_.lock()) connection->reply(make);
  });
}

void Connection::enter(State state, milliseconds at_most) {
  const auto is_lazy = [](State s) { return s == State::idle || s == State::sending; };
  // A connection that sends keeps its place: it is as old as its last answer.
  if (state != State::sending || !is_lazy(state_)) {
    auto &from = is_lazy(state_) ? shared_.lazy : shared_.busy, &to = is_lazy(state) ? shared_.lazy : shared_.busy;
    to.splice(to.end(), from, place_);
  }
  state_ = state;
  timer_.expires_after(at_most);
  timer_.async_wait([self = shared_from_this(), mine = ++deadline_](error_code error) {
    if (!error && mine == self->deadline_ && self->state_ != State::closed) self->on_late();
  });
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
      refuse(504, fmt::format("expected an answer within {} ms, got none", shared_.options.timeout.count()));
      break;
    default: close();
  }
}

/// Waits for the next request, or for the client to leave.
void Connection::idle() {
  parser_.reset();
  enter(State::idle, shared_.options.idle);
  if (buffer_.size() > 0) return read_header();
  buffer_.shrink_to_fit();  // whoever idles holds nothing
  if (shared_.stopping && peek() <= 0) return close();
  watch();
}

void Connection::watch() {
  if (std::exchange(watching_, true)) return;
  socket_.async_wait(tcp::socket::wait_read, [self = shared_from_this()](error_code error) {
    self->watching_ = false;
    if (self->state_ == State::closed) return;
    if (error) return self->close();
    if (self->state_ == State::idle) return self->read_header();
    const ssize_t got = self->peek();
    if (got == 0 || (got < 0 && errno != EAGAIN)) self->close();
  });
}

void Connection::read_header() {
  enter(State::sending, shared_.stopping ? kGoodbye : shared_.options.timeout);
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(shared_.options.max_header));
  parser_->body_limit(shared_.options.max_body);
  http::async_read_header(socket_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t) {
    if (error || self->late_) return self->on_bad(error);
    self->parser_->eager(true);
    const bool is_expected =
        !self->parser_->is_done() && beast::iequals(self->parser_->get()[http::field::expect], "100-continue");
    self->parser_->get().clear();  // each field takes many times its text, for as long as the answer is not out
    if (!is_expected) return self->read_body();
    static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(self->socket_, asio::buffer(kGoOn), [self](error_code failed, std::size_t) {
      if (failed) return self->on_bad(failed);
      self->read_body();
    });
  });
}

/// Piece by piece, so that only what has come counts.
void Connection::read_body() {
  if (!body_share_.grow_to(parser_->get().body().size()))
    return refuse(429, "expected room for the body, got a server whose memory for requests is in use; hint: later");
  if (parser_->is_done()) return on_request();
  http::async_read_some(socket_, buffer_, *parser_, [self = shared_from_this()](error_code error, std::size_t) {
    if (error || self->late_) return self->on_bad(error);
    self->read_body();
  });
}

void Connection::on_bad(error_code error) {
  if (state_ == State::closed) return;
  const HttpOptions& limits = shared_.options;
  if (late_) return refuse(408, fmt::format("expected a request within {} ms, got a part", limits.timeout.count()));
  if (error == http::error::body_limit)
    return refuse(413, fmt::format("body: expected at most {} bytes, got more", limits.max_body));
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return refuse(400, fmt::format("header: expected at most {} bytes, got more", limits.max_header));
  const bool is_http = error.category() == http::make_error_code(http::error::bad_value).category();
  if (!is_http || error == http::error::end_of_stream || error == http::error::partial_message) return close();
  refuse(400, "expected HTTP/1.1, got " + error.message());
}

void Connection::on_request() {
  const auto& message = parser_->get();
  const Request request{.method = std::string(message.method_string()),
                        .target = std::string(message.target()),
                        .body = std::move(parser_->get().body())};
  enter(State::waiting, shared_.options.timeout);
  asked_ = std::make_shared<Asked>(shared_.context, weak_from_this());
  watch();
  try {
    shared_.handler(request, asked_);
  } catch (const std::exception& error) {
    const std::string what = error.what();
    asked_->answer([what]() -> Response { throw std::runtime_error(what); });
  }
  body_share_.reset();
}

void Connection::reply(const std::function<Response()>& make) {
  asked_.reset();
  try {
    write(make(), false);
  } catch (const std::exception& error) {
    say(fmt::format("error: {}", error.what()));
    write({.status = 500, .body = R"({ "error": "internal error" })"}, false);
  }
}

/// Of what cannot be read further nothing more is taken for a request.
void Connection::refuse(int status, const std::string& message) {
  body_share_.reset();
  write({.status = status, .body = fmt::format("{{ \"error\": {} }}", io::json_text(message))}, true);
}

void Connection::write(Response response, bool last) {
  enter(State::answering, shared_.options.timeout);
  const bool has_head = parser_ && parser_->is_header_done();
  const bool without_body = has_head && parser_->get().method() == http::verb::head;
  keeps_ = std::move(response.keeps);
  response_ = {http::int_to_status(static_cast<unsigned>(response.status)), has_head ? parser_->get().version() : 11};
  response_.set(http::field::content_type, response.content_type);
  if (response.status == 429 || response.status == 503) response_.set(http::field::retry_after, "1");
  response_.keep_alive(!last && !shared_.stopping && has_head && parser_->keep_alive());
  response_.content_length(response.body.size());
  if (!without_body) response_.body() = std::move(response.body);
  http::async_write(socket_, response_, [self = shared_from_this()](error_code error, std::size_t) {
    self->keeps_.reset();
    if (self->state_ == State::closed) return;
    if (error) return self->close();
    if (!self->response_.keep_alive()) return self->leave();
    self->response_ = {};
    self->idle();
  });
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
  socket_.async_read_some(buffer_.prepare(kPiece), [self = shared_from_this()](error_code error, std::size_t) {
    if (self->state_ == State::closed) return;
    if (error) return self->close();
    self->discard();
  });
}

void Connection::stop() {
  if (state_ == State::idle && peek() <= 0) return close();
  if (state_ == State::sending) enter(State::sending, kGoodbye);
}

void Connection::close() {
  if (state_ == State::closed) return;
  if (asked_) asked_->drop();
  asked_.reset();
  (state_ == State::idle || state_ == State::sending ? shared_.lazy : shared_.busy).erase(place_);
  state_ = State::closed;
  timer_.cancel();
  body_share_.reset();
  error_code ignored;
  socket_.close(ignored);
}

}  // namespace

class HttpServer::Sockets {
 public:
  Sockets(const HttpOptions& options, Budget& budget, Handler handler)
      : shared_{.options = options, .budget = budget, .handler = std::move(handler)}, acceptor_(shared_.context) {
    const std::string flags = fmt::format("--host {} --port {}", options.host, options.port);
    try {
      tcp::resolver resolver(shared_.context);
      const auto found = resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive);
      const tcp::endpoint place = found.begin()->endpoint();
      acceptor_.open(place.protocol());
      acceptor_.set_option(tcp::acceptor::reuse_address(true));
      acceptor_.bind(place);
      acceptor_.listen();
    } catch (const boost::system::system_error& error) {
      fail(Failure::usage, "{}: expected an address to listen on, got {}", flags, error.code().message());
    }
    const tcp::endpoint place = acceptor_.local_endpoint();
    const std::string host = place.address().to_string();
    url_ = fmt::format("http://{}:{}", place.address().is_v6() ? "[" + host + "]" : host, place.port());
  }

  const std::string& url() const { return url_; }

  void run() {
    asio::signal_set signals(shared_.context, SIGTERM, SIGINT);
    signals.async_wait([&](error_code error, int) {
      if (error) return;
      signals.async_wait([](error_code failed, int number) {
        if (!failed) _exit(128 + number);
      });
      stop();
    });
    accept();
    while (!shared_.stopping || accepting_ || !shared_.lazy.empty() || !shared_.busy.empty()) shared_.context.run_one();
  }

  void stop_soon() {
    asio::post(shared_.context, [this] { stop(); });
  }

 private:
  void accept() {
    if (shared_.stopping) return;
    accepting_ = true;
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      accepting_ = false;
      if (!error) take(std::move(socket));
      if (!error || (error == boost::system::errc::too_many_files_open && drop_oldest())) return accept();
      pause_.expires_after(milliseconds(50));  // nothing can be closed: the next try would fail at once too
      pause_.async_wait([this](error_code) { accept(); });
    });
  }

  void take(tcp::socket socket) {
    // The oldest one that has not sent a whole request goes; if all wait for answers, the new one does.
    if (shared_.lazy.size() + shared_.busy.size() >= shared_.options.max_connections && !drop_oldest()) return;
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    std::make_shared<Connection>(std::move(socket), shared_)->idle();
  }

  bool drop_oldest() {
    if (shared_.lazy.empty()) return false;
    shared_.lazy.front()->close();
    return true;
  }

  void stop() {
    if (std::exchange(shared_.stopping, true)) return;
    // Whoever the system has let in already is answered.
    error_code error;
    acceptor_.non_blocking(true, error);
    for (tcp::socket socket(shared_.context); !acceptor_.accept(socket, error);) {
      take(std::move(socket));
      socket = tcp::socket(shared_.context);
    }
    acceptor_.close(error);
    for (auto each = shared_.lazy.begin(); each != shared_.lazy.end();) (*each++)->stop();
  }

  Shared shared_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_{shared_.context};
  bool accepting_ = false;  // whether a connection may still come of that
  std::string url_;
};

HttpServer::HttpServer(const HttpOptions& options, Budget& budget, Handler handler)
    : sockets_(std::make_unique<Sockets>(options, budget, std::move(handler))) {}
HttpServer::~HttpServer() = default;
std::string HttpServer::url() const { return sockets_->url(); }
void HttpServer::run() { sockets_->run(); }
void HttpServer::stop() { sockets_->stop_soon(); }

}  // namespace bertrand::serve
