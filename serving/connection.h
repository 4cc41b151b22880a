// One client's connection: it idles, sends a request, waits for the answer and takes it. By Boost.Beast, for the files
// that implement http.h alone: Beast takes a minute to compile.
#pragma once
// Beast 1.74 asserts that 5 bytes of a body's last chunk come at once. That is for the client to choose, and what
// follows there needs no more than has come.
#define BOOST_DISABLE_ASSERTS
// Boost 1.74 uses these and does not include them.
#include <optional>
#include <utility>

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <list>

#include "serving/http.h"

namespace bertrand::serving {

class Asked;
class Connection;

/// What the connections of a server have in common. It is used on the thread of run() alone.
struct ServerState {
  const HttpOptions options;
  Budget& budget;
  const HttpServer::Handler handler;
  const HttpServer::Refuse refuse;
  std::list<Connection*> lazy = {};  // those that idle or send, the oldest first
  std::list<Connection*> busy = {};  // all others
  bool stopping = false;
  boost::asio::io_context context{1};
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::ip::tcp::socket socket, ServerState& server);

  void idle();
  /// The answer to the request that waits.
  void reply(const std::function<Response()>& make);
  void stop();
  void close();

 private:
  enum class State { idle, sending, waiting, answering, leaving, closed };

  template <class Next>
  auto unless_closed(Next next);
  void enter(State state, std::chrono::milliseconds at_most);
  void on_late();
  void watch();
  bool pass_over_empty_line();
  bool is_http_1_1() const;  ///< of the client of the request that is read
  void on_end();
  void begin_request();
  void read_header();
  void on_header();
  void read_body();
  void on_bad(boost::beast::error_code error);
  void on_request();
  Request head() const;
  void refuse(int status, const std::string& why);
  void write(Response response, bool last);
  void leave();
  void discard();
  /// What recv() would return: 0 if the client sends no more, less if nothing is there or the connection is broken.
  ssize_t peek();

  ServerState& server_;
  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  boost::beast::http::response<boost::beast::http::string_body> response_;
  std::shared_ptr<const void> keeps_;  // what the response keeps
  Budget::Share body_share_;
  std::shared_ptr<Asked> asked_;  // while it waits
  std::list<Connection*>::iterator place_;
  State state_ = State::idle;
  std::uint64_t deadline_ = 0;  // counts them: an old one that fires late says nothing
  bool late_ = false;
  bool watching_ = false;  // whether a wait for input is under way
  bool at_end_ = false;    // whether the client sends no more
};

}  // namespace bertrand::serving
