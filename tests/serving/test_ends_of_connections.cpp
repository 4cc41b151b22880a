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

TEST_CASE("a server that stops ends in time though a client always has more requests on the way") {
  Server server({.timeout = milliseconds(500)});
  Client client = server.connect();
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n";
  std::atomic<bool> is_over = false;
  std::thread requests([&] {
    while (!is_over && client.send(many)) continue;
  });
  std::thread answers([&] {
    while (client.read().status == 200) continue;
    is_over = true;
  });
  std::thread late([&] {
    for (int i = 0; i < 500 && !is_over; ++i) std::this_thread::sleep_for(milliseconds(10));
    CHECK(is_over.exchange(true));
  });
  std::this_thread::sleep_for(milliseconds(100));
  server.end();
  for (std::thread* each : {&requests, &answers, &late}) each->join();
}
