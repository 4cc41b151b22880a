// Connections that end before their clients meant to: for another one, for a deadline, or with the server.
#include <doctest/doctest.h>

#include "serving/toy_server.h"

using namespace bertrand::serving;
using std::chrono::milliseconds;
using support::Client;
using Server = support::ToyServer;

TEST_CASE("a request that arrives as its connection is closed for a new one is not handled") {
  Server server({.max_connections = 2});
  Client holding = server.connect(), closed = server.connect();
  for (Client* client : {&holding, &closed}) CHECK(client->get("/x").status == 200);
  holding.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  server.is_held.wait(false);
  closed.send("GET /throw HTTP/1.1\r\nHost: x\r\n\r\n");
  std::this_thread::sleep_for(milliseconds(50));
  Client fresh = server.connect();  // which is let in after the first bytes of the request are read
  std::this_thread::sleep_for(milliseconds(50));
  server.go_on();
  CHECK(holding.read().body == "GET /hold 0");
  CHECK(closed.is_closed());
  CHECK(fresh.get("/x").body == "GET /x 0");
  CHECK(server.refused().empty());
}

TEST_CASE("a server goes on while more clients come, ask and go than it has room for") {
  Server server({.max_connections = 16});
  std::atomic<bool> is_over = false;
  std::atomic<int> answered = 0;
  std::vector<std::thread> clients;
  for (int i = 0; i < 40; ++i)
    clients.emplace_back([&] {
      while (!is_over) answered += server.connect().post("/x", "abc").status == 200;
    });
  std::this_thread::sleep_for(milliseconds(200));
  is_over = true;
  for (std::thread& each : clients) each.join();
  CHECK(answered > 0);
  CHECK(server.goes_on());
}

TEST_CASE("empty lines before a request give it no more time") {
  Server server({.timeout = milliseconds(500)});
  Client client = server.connect();
  const auto begin = std::chrono::steady_clock::now();
  bool is_late = false;
  std::thread lines([&] {
    while (client.send("\r\n") && !is_late) {
      std::this_thread::sleep_for(milliseconds(50));
      is_late = std::chrono::steady_clock::now() - begin > std::chrono::seconds(10);
    }
  });
  CHECK(client.read().status == 408);
  lines.join();
  CHECK_FALSE(is_late);
}
