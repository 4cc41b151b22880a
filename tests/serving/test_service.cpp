// The server put together: what it counts, and the versions that it loads.
#include "serving/service.h"

#include <doctest/doctest.h>

#include <thread>

#include "serving/client.h"
#include "support/small_heads.h"
#include "support/soon.h"

using namespace bertrand;
using support::Client;

namespace {

serving::ServiceOptions one_thread() {
  serving::ServiceOptions options{.http = {.port = 0}};
  options.model.machine.threads = 1;
  return options;
}

/// A service as long as this lives.
class Running {
 public:
  explicit Running(const serving::ServiceOptions& options) : service_(options), thread_([this] { service_.run(); }) {}
  ~Running() {
    service_.stop();
    thread_.join();
  }
  Client connect() const { return Client(service_.url()); }
  /// Whether this line is soon in the metrics.
  bool counts(const std::string& line) const {
    return support::soon([&] { return connect().get("/metrics").body.find("\n" + line + "\n") != std::string::npos; });
  }

 private:
  serving::Service service_;
  std::thread thread_;
};

struct Classes {
  support::TemporaryDirectory directory;
  serving::ServiceOptions options = one_thread();
  Classes() {
    support::write_small_classifier(directory / "classes");
    options.models = {{.name = "classes", .directory = directory / "classes"}};
  }
};

}  // namespace

TEST_CASE("what asks no model is not counted, and what did not arrive whole is") {
  Classes setting;
  setting.options.http.max_body = 1000;
  const Running server(setting.options);
  for (const char* path : {"/health", "/models", "/metrics", "/nothing"}) server.connect().get(path);
  CHECK(server.connect().post("/predict", R"({"inputs": "red"})").status == 200);
  CHECK(server.connect().post("/predict", "no JSON").status == 422);
  CHECK(server.connect().post("/predict", std::string(1001, ' ')).status == 413);
  for (const char* line : {"te_request_count 3", "te_request_success 1", "te_request_failure{err=\"422\"} 1",
                           "te_request_failure{err=\"413\"} 1", "te_request_duration_count 1"})
    CHECK(server.counts(line));
  CHECK(server.connect().get("/metrics").body.find("err=\"404\"") == std::string::npos);
}

TEST_CASE("a client that leaves while its batch is computed is counted") {
  Classes setting;
  setting.options.max_texts = 8000;
  setting.options.batches.max_tokens = 1 << 24;  // one batch for all that waits
  const Running server(setting.options);
  std::string texts = "\"red fish the bird one two green birds\"";
  for (int i = 1; i < 8000; ++i) texts += ", \"red fish the bird one two green birds\"";
  const std::string request = Client::post_text("/v1/models/classes:predict", "{\"instances\": [" + texts + "]}");
  Client first = server.connect(), stays = server.connect(), leaves = server.connect();
  first.send(request);
  REQUIRE(server.counts("te_request_queue_duration_count 1"));
  for (const Client* each : {&stays, &leaves}) each->send(request);
  REQUIRE(server.counts("te_request_queue_duration_count 3"));
  leaves.reset();
  CHECK(first.read().status == 200);
  CHECK(stays.read().status == 200);
  CHECK(server.counts("te_request_dropped 1"));
  CHECK(server.counts("te_request_success 2"));
}

TEST_CASE("a request for whose answer there is no room now is refused for that, and not for the queue") {
  Classes setting;
  setting.options.max_texts = 8000;
  setting.options.max_request_bytes = 12 << 20;
  setting.options.http.max_body = 8 << 20;
  const Running server(setting.options);
  std::string texts = "\"red\"";
  for (int i = 1; i < 8000; ++i) texts += ", \"red\"";
  const auto answer = [&] {
    return server.connect().post("/v1/models/classes:predict", "{\"instances\": [" + texts + "]}");
  };
  {
    Client other = server.connect();  // holds most of the room with a body that does not end
    const std::string most(7 << 20, ' ');
    other.send(fmt::format("POST /answer HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{}", most.size() + 1, most));
    support::Answer none;
    CHECK(support::soon([&] {
      none = answer();
      return none.status == 429;
    }));
    CHECK(none.error() ==
          "expected room for the answer, got a server whose memory for requests and answers is in use; hint: later");
  }
  CHECK(support::soon([&] { return answer().status == 200; }));
}

TEST_CASE("a body counts once: a server that has nothing else to do answers one of most of the memory for requests") {
  Classes setting;
  setting.options.max_request_bytes = 100'000;
  const Running server(setting.options);
  const std::string body = R"({"inputs": "red")" + std::string(90'000, ' ') + "}";
  for (int i = 0; i < 3; ++i) CHECK(server.connect().post("/predict", body).status == 200);
  CHECK(server.counts("te_held_bytes 0"));
}

TEST_CASE("a broken version keeps no whole one from being loaded, and is tried again when it has changed") {
  const support::TemporaryDirectory directory;
  const std::filesystem::path base = directory / "base", weights = base / "8/model.safetensors";
  support::write_small_classifier(base / "3");
  serving::ServiceOptions options = one_thread();
  options.versioned = {.name = "classes", .base = base, .look_every = std::chrono::milliseconds(10)};
  const Running server(options);
  const auto is_served = [&](const std::string& version) {
    return server.connect().get("/v1/models/classes/versions/" + version).status == 200;
  };
  support::write_small_classifier(directory / "next");
  const std::string whole = support::read_text(directory / "next/model.safetensors");
  support::spoil_embedding(directory / "next/model.safetensors", 0);
  std::filesystem::rename(directory / "next", base / "8");
  support::write_small_classifier(directory / "next");
  std::filesystem::rename(directory / "next", base / "7");
  CHECK(support::soon([&] { return is_served("7"); }));

  // Its weights are whole now, and it would load; by their size and time they are those that were tried.
  const auto time = std::filesystem::last_write_time(weights);
  support::write_text(directory / "weights", whole);
  std::filesystem::last_write_time(directory / "weights", time);
  std::filesystem::rename(directory / "weights", weights);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // in which it looks again
  CHECK(is_served("7"));
  std::filesystem::last_write_time(weights, time + std::chrono::seconds(1));
  CHECK(support::soon([&] { return is_served("8"); }));
}
