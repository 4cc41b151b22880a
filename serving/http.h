// HTTP/1.1 on one thread: sockets, limits and deadlines. What a request means is the handler's business.
//
// A connection idles, sends a request, waits for the answer and takes it. A client that is slow in any of these holds
// a socket and a few kilobytes, never a thread; the oldest of those that idle or send goes if there are too many.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "serving/budget.h"
#include "serving/message.h"

namespace bertrand::serving {

/// One request whose client waits for the answer.
class Exchange {
 public:
  virtual ~Exchange() = default;
  /// Answers, once, from any thread. On the thread of the sockets `make` runs, or, if nobody waits any more, `nobody`.
  virtual void answer(std::function<Response()> make, std::function<void()> nobody = nullptr) = 0;
  /// False as soon as the client has left or was told that it is too late. From any thread.
  virtual bool is_wanted() const = 0;
};

struct HttpOptions {
  std::string host = "127.0.0.1";
  int port = 8501;                     ///< 0: any free one
  std::size_t max_header = 16 << 10;   ///< bytes of a request's head
  std::size_t max_body = 2 << 20;      ///< bytes
  std::size_t max_connections = 1024;  ///< at once
  std::chrono::milliseconds timeout{
      30'000};                             ///< for a request to arrive, for its answer to be made, and for it to leave
  std::chrono::milliseconds idle{60'000};  ///< that a connection may wait between requests
};

class HttpServer {
 public:
  /// Called on the thread of run() for each whole request within the limits.
  using Handler = std::function<void(const Request&, const std::shared_ptr<Exchange>&)>;

  /// Called on the thread of run() for each request that gets no answer of the handler. Returns what it gets: a status,
  /// and why. That is 400, 408, 413, 415 or 429 of one that did not arrive whole, 504 of one that was not answered in
  /// time, and 500 where an exception ended the making of the answer. Of a request only the method and the target are
  /// known, and these are empty if it has none.
  using Refuse = std::function<Response(const Request& head, int status, const std::string& why)>;

  /// Takes the port. Bodies count against `budget`, which must outlive this. Throws Error(Failure::usage) for a host or
  /// port that cannot be listened on, and Error(Failure::io) if another program has the port.
  HttpServer(const HttpOptions& options, Budget& budget, Handler handler, Refuse refuse);
  ~HttpServer();

  /// http://HOST:PORT
  std::string url() const;
  /// From now on the system lets clients in, who wait for run(). Throws Error(Failure::io) if another program that had
  /// the port too was faster.
  void listen();
  /// Serves until stop() or a signal of io/signals.h; then no connection is accepted any more, whatever came in is
  /// answered, and run() returns, at the latest `timeout` after that.
  void run();
  /// From any thread.
  void stop();

 private:
  class Sockets;
  std::unique_ptr<Sockets> sockets_;
};

}  // namespace bertrand::serving
