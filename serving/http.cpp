// The port that is listened on, and the life of all connections.
#include "serving/http.h"

#include "io/error.h"
#include "io/say.h"
#include "io/signals.h"
#include "serving/connection.h"

namespace bertrand::serving {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::beast::error_code;
using std::chrono::milliseconds;

class HttpServer::Sockets {
 public:
  Sockets(const HttpOptions& options, Budget& budget, Handler handler, Refuse refuse)
      : state_{.options = options, .budget = budget, .handler = std::move(handler), .refuse = std::move(refuse)},
        acceptor_(state_.context) {
    try {
      tcp::resolver resolver(state_.context);
      const auto found = resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive);
      const tcp::endpoint place = found.begin()->endpoint();
      acceptor_.open(place.protocol());
      acceptor_.set_option(tcp::acceptor::reuse_address(true));
      acceptor_.bind(place);
    } catch (const boost::system::system_error& error) {
      refuse_address(error.code());
    }
    const tcp::endpoint place = acceptor_.local_endpoint();
    const std::string host = place.address().to_string();
    url_ = fmt::format("http://{}:{}", place.address().is_v6() ? "[" + host + "]" : host, place.port());
  }

  const std::string& url() const { return url_; }

  void listen() {
    error_code error;
    acceptor_.listen(tcp::acceptor::max_listen_connections, error);
    if (error) refuse_address(error);
    acceptor_.non_blocking(true);
  }

  void run() {
    io::catch_stop_signals();  // a first one ends no work any more: it is answered
    look_for_signals();
    accept();
    while (!state_.stopping || !state_.lazy.empty() || !state_.busy.empty()) state_.context.run_one();
  }

  void stop_soon() {
    asio::post(state_.context, [this] { stop(); });
  }

 private:
  [[noreturn]] void refuse_address(error_code error) const {
    const bool is_taken = error == asio::error::address_in_use;  // the flags may be right at another time
    fail(is_taken ? Failure::io : Failure::usage, "--host {} --port {}: expected an address to listen on, got {}",
         state_.options.host, state_.options.port, error.message());
  }

  void look_for_signals() {
    if (io::stop_requested()) {
      io::tell("stopping: a signal came; what clients have sent is answered");
      return stop();
    }
    watch_.expires_after(milliseconds(50));
    watch_.async_wait([this](error_code) { look_for_signals(); });
  }

  void accept() {
    if (state_.stopping) return;
    // Without a descriptor left accept() fails though nobody waits to be let in: then nobody is dropped.
    acceptor_.async_wait(tcp::acceptor::wait_read, [this](error_code error) {
      tcp::socket socket(state_.context);
      if (!error) acceptor_.accept(socket, error);
      if (!error) take(std::move(socket));
      if (!error || error == asio::error::would_block ||  // who waited has left
          (error == boost::system::errc::too_many_files_open && drop_oldest()))
        return accept();
      // Nothing can be closed: the next try would fail at once too. The pause is for speed alone.
      pause_.expires_after(milliseconds(50));
      pause_.async_wait([this](error_code) { accept(); });
    });
  }

  void take(tcp::socket socket) {
    // The oldest one that has not sent a whole request goes; if all wait for answers, the new one does.
    if (state_.lazy.size() + state_.busy.size() >= state_.options.max_connections && !drop_oldest()) return;
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);  // for speed alone
    std::make_shared<Connection>(std::move(socket), state_)->idle();
  }

  bool drop_oldest() {
    if (state_.lazy.empty()) return false;
    state_.lazy.front()->close();
    return true;
  }

  void stop() {
    if (std::exchange(state_.stopping, true)) return;
    // Whoever the system has let in already is answered.
    error_code error;
    for (tcp::socket socket = acceptor_.accept(error); !error; socket = acceptor_.accept(error))
      take(std::move(socket));
    acceptor_.close(error);
    for (auto each = state_.lazy.begin(); each != state_.lazy.end();) (*each++)->stop();
    // Whoever always has one more request on the way would never see the last answer.
    end_.expires_after(state_.options.timeout);
    end_.async_wait([this](error_code) {
      for (auto* all : {&state_.lazy, &state_.busy})
        while (!all->empty()) all->front()->close();
    });
  }

  ServerState state_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_{state_.context}, watch_{state_.context}, end_{state_.context};
  std::string url_;
};

HttpServer::HttpServer(const HttpOptions& options, Budget& budget, Handler handler, Refuse refuse)
    : sockets_(std::make_unique<Sockets>(options, budget, std::move(handler), std::move(refuse))) {}
HttpServer::~HttpServer() = default;
std::string HttpServer::url() const { return sockets_->url(); }
void HttpServer::listen() { sockets_->listen(); }
void HttpServer::run() { sockets_->run(); }
void HttpServer::stop() { sockets_->stop_soon(); }

}  // namespace bertrand::serving
