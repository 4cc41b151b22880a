// A server whose handler is a toy.
#pragma once
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "serving/client.h"
#include "serving/http.h"

namespace support {

/// Answers with method, target and the length of the body; what is asked for under /wait stays open, /hold stops
/// the thread of the sockets, and /slow does so for a moment.
class ToyServer {
 public:
  explicit ToyServer(bertrand::serving::HttpOptions options = {}, std::size_t budget = 64 << 20)
      : budget_(budget),
        server_(
            with_any_port(options), budget_,
            [this](const bertrand::serving::Request& request, const auto& exchange) {
              if (request.target == "/throw") throw std::runtime_error("thrown by the test");
              if (request.target == "/hold") {
                is_held = true;
                is_held.notify_one();
                is_held.wait(true);
              }
              if (request.target == "/slow") std::this_thread::sleep_for(std::chrono::milliseconds(20));
              if (request.target == "/wait") {
                const std::lock_guard lock(mutex_);
                waiting_ = exchange;
                return;
              }
              exchange->answer(
                  [text = request.method + " " + request.target + " " + std::to_string(request.body.size())] {
                    return bertrand::serving::Response{.body = text, .content_type = "text/plain"};
                  });
            },
            [this](const bertrand::serving::Request& head, int status, const std::string& why) {
              const std::lock_guard lock(mutex_);
              refused_.push_back(status);
              const nlohmann::json body{{"error", why}, {"of", head.method + " " + head.target}};
              return bertrand::serving::Response{
                  .status = status, .body = body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)};
            }) {
    server_.listen();
    thread_ = std::thread([this] { server_.run(); });
  }
  ~ToyServer() { end(); }

  Client connect() const { return Client(server_.url()); }
  int port() const { return std::stoi(server_.url().substr(server_.url().rfind(':') + 1)); }
  void stop() { server_.stop(); }
  /// Waits until run() has returned.
  void end() {
    server_.stop();
    if (thread_.joinable()) thread_.join();
  }
  std::shared_ptr<bertrand::serving::Exchange> taken() {
    for (int i = 0; i < 2000 && !waiting(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return waiting();
  }
  void go_on() {
    is_held = false;
    is_held.notify_one();
  }
  bool goes_on() const { return connect().get("/x").body == "GET /x 0"; }
  std::size_t held() const { return budget_.held(); }
  /// The statuses of the requests that the handler never saw or that it answers too late.
  std::vector<int> refused() const {
    const std::lock_guard lock(mutex_);
    return refused_;
  }

  std::atomic<bool> is_held = false;  // whether the thread of the sockets waits until this is false

 private:
  std::shared_ptr<bertrand::serving::Exchange> waiting() {
    const std::lock_guard lock(mutex_);
    return waiting_;
  }
  static bertrand::serving::HttpOptions with_any_port(bertrand::serving::HttpOptions options) {
    options.port = 0;
    return options;
  }
  mutable std::mutex mutex_;
  std::shared_ptr<bertrand::serving::Exchange> waiting_;
  std::vector<int> refused_;
  bertrand::serving::Budget budget_;
  bertrand::serving::HttpServer server_;
  std::thread thread_;
};

}  // namespace support
