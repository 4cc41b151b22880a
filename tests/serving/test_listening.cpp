// The port: who has it, and from when on clients get in.
#include <doctest/doctest.h>

#include "io/error.h"
#include "serving/toy_server.h"
#include "support/refusal.h"

using namespace bertrand::serving;
using support::Client;
using Server = support::ToyServer;

TEST_CASE("a server begins again at once at the address that it had, and no other has it meanwhile") {
  Server server;
  HttpOptions same{.port = server.port()};
  Budget budget(1);
  CHECK(support::refusal(bertrand::Failure::io, [&] {
          HttpServer(same, budget, {}, {});
        }).starts_with(fmt::format("--host 127.0.0.1 --port {}: expected an address to listen on, got ", same.port)));
  Client client = server.connect();
  CHECK(client.ask("GET /x HTTP/1.0\r\n\r\n").status == 200);
  CHECK(client.is_closed());  // by the server, so that the system keeps the address for a while
  client.leave();
  server.end();
  CHECK(HttpServer(same, budget, {}, {}).url().ends_with(":" + std::to_string(same.port)));
}

TEST_CASE("an address that cannot be listened on is refused") {
  const auto refusal = [](const HttpOptions& options) -> std::string {
    Budget budget(1);
    try {
      HttpServer(options, budget, {}, {});
    } catch (const bertrand::Error& error) {
      CHECK(error.failure() == bertrand::Failure::usage);
      return error.what();
    }
    return "";
  };
  CHECK(refusal({.host = "192.0.2.1", .port = 0}).starts_with("--host 192.0.2.1 --port 0: expected an address to "));
  CHECK(refusal({.host = "no such host", .port = 0}).starts_with("--host no such host --port 0: expected an "));
}

TEST_CASE("a server that does not listen yet lets nobody in, and of two with the same port one listens") {
  Budget budget(1);
  HttpServer first({.port = 0}, budget, {}, {});
  CHECK_FALSE(Client(first.url()).is_connected());
  const HttpOptions same{.port = std::stoi(first.url().substr(first.url().rfind(':') + 1))};
  HttpServer second(same, budget, {}, {});
  first.listen();
  CHECK(Client(first.url()).is_connected());
  CHECK(support::refusal(bertrand::Failure::io, [&] {
          second.listen();
        }).starts_with(fmt::format("--host 127.0.0.1 --port {}: expected an address to listen on, got ", same.port)));
}
