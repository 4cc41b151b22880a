// What the sockets make of good, bad, slow and absent clients. The handler is a toy.
#include <doctest/doctest.h>
#include <malloc.h>

#include <ctime>
#include <optional>

#include "serving/toy_server.h"
#include "support/file_limit.h"
#include "support/terminal.h"

using namespace bertrand::serving;
using std::chrono::milliseconds;
using support::Answer;
using support::Client;
using support::FileLimit;
using Server = support::ToyServer;

TEST_CASE("a connection carries one request after another") {
  Server server;
  Client client = server.connect();
  CHECK(client.get("/a?b").body == "GET /a?b 0");
  CHECK(client.get("/a").head.find("Content-Type: text/plain\r\n") != std::string::npos);
  CHECK(client.post("/b", "xyz").body == "POST /b 3");
  CHECK(client.get("http://host:80/a?b").body == "GET /a?b 0");
  CHECK(client.get("http://host").body == "GET / 0");
  CHECK(client.get("/a?http://b/c").body == "GET /a?http://b/c 0");
  // Two at once are answered in order.
  client.send(Client::post_text("/c", "1") + Client::post_text("/d", "22"));
  CHECK(client.read().body == "POST /c 1");
  CHECK(client.read().body == "POST /d 2");
  CHECK(client.ask("POST /e HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n").body ==
        "POST /e 3");
  client.send("HEAD /f HTTP/1.1\r\nHost: x\r\n\r\n");
  const Answer head = client.read(false);
  CHECK(head.status == 200);
  CHECK(head.head.find("Content-Length: 9\r\n") != std::string::npos);
  CHECK(client.get("/g").body == "GET /g 0");
  client.send("POST /h HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  CHECK(client.read().status == 100);
  CHECK(client.ask("ab").body == "POST /h 2");
  CHECK(client.get("/throw").status == 500);
  CHECK(server.refused() == std::vector<int>{500});
  CHECK(client.get("/i").body == "GET /i 0");
  const Answer last = client.ask("GET /j HTTP/1.0\r\n\r\n");
  CHECK(last.body == "GET /j 0");
  CHECK(client.is_closed());
}

TEST_CASE("an answer has the time at which it was made") {
  Server server;
  const std::time_t before = std::time(nullptr);
  const std::string head = server.connect().get("/x").head;
  std::tm made{};
  const char* const end = strptime(head.c_str() + head.find("Date: "), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &made);
  REQUIRE(end);
  CHECK(timegm(&made) >= before);
  CHECK(timegm(&made) <= std::time(nullptr));
}

TEST_CASE("what an answer fails for is said on standard error and not to the client") {
  const std::string said = support::on_standard_error([] {
    const Server server;
    CHECK(server.connect().get("/throw").error() == "internal error");
  });
  CHECK(said.find("error: thrown by the test\n") != std::string::npos);
}

TEST_CASE("clients that are slow or silent keep nobody waiting and are sent away") {
  Server server({.timeout = milliseconds(2000), .idle = milliseconds(4000)});
  std::vector<Client> slow, silent;
  for (int i = 0; i < 10; ++i) slow.push_back(server.connect()), silent.push_back(server.connect());
  for (Client& client : slow) client.send("POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\na");
  CHECK(server.goes_on());
  for (Client& client : slow) {
    CHECK(client.read().status == 408);
    CHECK(client.is_closed());
  }
  for (Client& client : silent) CHECK(client.is_closed());
  Client late = server.connect();  // with the beginning of a second request behind a whole one
  late.send("GET /x HTTP/1.1\r\nHost: x\r\n\r\nPOST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\na");
  CHECK(late.read().status == 200);
  CHECK(late.read().status == 408);
  CHECK(server.refused() == std::vector<int>(slow.size() + 1, 408));
  CHECK(server.goes_on());
}

TEST_CASE("a connection too many costs the oldest one that has not sent a request") {
  Server server({.max_connections = 3});
  Client waiting = server.connect();
  waiting.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto exchange = server.taken();
  REQUIRE(exchange);
  Client oldest = server.connect(), younger = server.connect();
  oldest.send("POST /x HTTP/1.1\r\n");
  CHECK(server.goes_on());
  CHECK(oldest.is_closed());
  CHECK(younger.get("/x").status == 200);
  exchange->answer([] { return Response{.body = "in the end"}; });
  CHECK(waiting.read().body == "in the end");
}

TEST_CASE("the fields of a request's head are not kept") {
  Server server;
  std::string head = "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n";
  while (head.size() < 16'000) head += "a:b\r\n";
  CHECK(server.goes_on());
  constexpr std::size_t kOfConnection = 40 << 10;  // as the server's plan has it
  const std::size_t before = mallinfo2().uordblks;
  std::vector<Client> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(server.connect());
    CHECK(clients.back().ask(head + "\r\n").status == 100);
  }
  CHECK(mallinfo2().uordblks < before + clients.size() * kOfConnection);
  for (Client& client : clients) CHECK(client.ask("ab").body == "POST /x 2");
}

TEST_CASE("a server that may open no further file drops the oldest client without a request for a new one") {
  Server server;
  Client oldest = server.connect(), younger = server.connect();
  for (Client* client : {&oldest, &younger}) CHECK(client->get("/x").status == 200);
  const FileLimit limit(1);  // a client has it, and the server has none for the other end
  Client late = server.connect();
  CHECK(late.get("/x").body == "GET /x 0");
  CHECK(oldest.is_closed());
  CHECK(younger.get("/x").status == 200);
}

TEST_CASE("a server that may open no further file waits without work until it may") {
  Server server;
  Client waiting = server.connect();
  waiting.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto exchange = server.taken();
  REQUIRE(exchange);
  std::optional<FileLimit> limit(1);
  Client late = server.connect();
  const std::clock_t begin = std::clock();
  std::this_thread::sleep_for(milliseconds(500));
  const std::clock_t spent = std::clock() - begin;
  limit.reset();
  CHECK(late.is_connected());
  CHECK(spent < CLOCKS_PER_SEC / 5);  // one that tries again and again spends all that a busy machine leaves it
  CHECK(late.get("/x").body == "GET /x 0");
  exchange->answer([] { return Response{.body = "after all"}; });
  CHECK(waiting.read().body == "after all");
}

TEST_CASE("a client that leaves is no longer wanted") {
  for (const bool breaks : {false, true}) {
    CAPTURE(breaks);
    Server server;
    Client client = server.connect();
    client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
    const auto exchange = server.taken();
    REQUIRE(exchange);
    CHECK(exchange->is_wanted());
    if (breaks) client.reset();
    else client.leave();
    for (int i = 0; i < 2000 && exchange->is_wanted(); ++i) std::this_thread::sleep_for(milliseconds(5));
    CHECK_FALSE(exchange->is_wanted());
    bool was_made = false;
    exchange->answer([&] {
      was_made = true;
      return Response{};
    });
    CHECK(server.goes_on());
    CHECK_FALSE(was_made);
  }
}

TEST_CASE("a client that leaves before it has sent a request gets no answer and counts as no refusal") {
  Server server;
  for (const std::string text : {"", "GET /x", "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\na"}) {
    CAPTURE(text);
    Client client = server.connect();
    client.send(text);
    client.end();
    CHECK(client.is_closed());
  }
  CHECK(server.refused().empty());
  CHECK(server.held() == 0);
}

TEST_CASE("a client that has sent all it will send gets its answers") {
  Server server;
  Client client = server.connect();
  client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  client.end();
  const auto exchange = server.taken();
  REQUIRE(exchange);
  CHECK(client.read().status == 100);  // by which the server sees that it is there
  CHECK(server.goes_on());
  CHECK(exchange->is_wanted());
  exchange->answer([] { return Response{.body = "at last"}; });
  const Answer last = client.read();
  CHECK(last.body == "at last");
  CHECK(last.head.find("Connection: close") != std::string::npos);
  CHECK(client.is_closed());

  Client two = server.connect();
  two.send(Client::post_text("/c", "1") + Client::post_text("/d", "22"));
  two.end();
  const auto next = [&] {
    Answer answer = two.read();
    while (answer.status == 100) answer = two.read();
    return answer.body;
  };
  CHECK(next() == "POST /c 1");
  CHECK(next() == "POST /d 2");
  CHECK(two.is_closed());
}

TEST_CASE("a client that has sent several requests and no more is told once that the last of them is read") {
  Server server;
  Client client = server.connect();
  client.send("GET /x HTTP/1.1\r\nHost: x\r\n\r\nGET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto exchange = server.taken();
  REQUIRE(exchange);
  CHECK(client.read().body == "GET /x 0");
  client.end();
  CHECK(client.read().status == 100);
  CHECK(server.goes_on());
  exchange->answer([] { return Response{.body = "at last"}; });
  CHECK(client.read().body == "at last");
}

TEST_CASE("a client of HTTP/1.0 that has sent all it will send is told nothing before its answer") {
  Server server;
  Client client = server.connect();
  client.send("GET /wait HTTP/1.0\r\n\r\n");
  client.end();
  const auto exchange = server.taken();
  REQUIRE(exchange);
  CHECK(server.goes_on());
  exchange->answer([] { return Response{.body = "at last"}; });
  CHECK(client.read().body == "at last");
}

TEST_CASE("what an answer keeps is let go when the client has taken the answer and not before") {
  Server server;
  Client client = server.connect();
  client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto exchange = server.taken();
  REQUIRE(exchange);
  auto kept = std::make_shared<int>(0);
  const std::weak_ptr<int> is_kept = kept;
  constexpr std::size_t kLarge = 32 << 20;  // more than the system holds of it
  exchange->answer([kept = std::move(kept)]() mutable {
    return Response{.body = std::string(kLarge, 'a'), .keeps = std::move(kept)};
  });
  CHECK(server.goes_on());
  CHECK_FALSE(is_kept.expired());
  CHECK(client.read().body.size() == kLarge);
  for (int i = 0; i < 2000 && !is_kept.expired(); ++i) std::this_thread::sleep_for(milliseconds(5));
  CHECK(is_kept.expired());
  CHECK(client.get("/x").status == 200);
}

TEST_CASE("an answer that takes too long is replaced and what comes later is not sent") {
  Server server({.timeout = milliseconds(2000)});
  Client client = server.connect();
  client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto exchange = server.taken();
  REQUIRE(exchange);
  client.send("more");  // which the server does not read, so that the connection lives on for a moment
  CHECK(client.read().status == 504);
  CHECK_FALSE(exchange->is_wanted());
  bool was_made = false;
  exchange->answer([&] {
    was_made = true;
    return Response{.body = "late"};
  });
  CHECK(server.goes_on());
  CHECK_FALSE(was_made);
  CHECK(client.is_closed());
  CHECK(server.refused() == std::vector<int>{504});
}

TEST_CASE("a server that stops answers whoever is in and then nobody") {
  Server server;
  Client waiting = server.connect(), idle = server.connect(), sent = server.connect();
  CHECK(idle.get("/x").status == 200);
  waiting.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto exchange = server.taken();
  REQUIRE(exchange);
  sent.send(Client::post_text("/sent", "abc"));
  server.stop();
  CHECK(idle.is_closed());
  CHECK(sent.read().body == "POST /sent 3");
  exchange->answer([] { return Response{.body = "after all"}; });
  const Answer answer = waiting.read();
  CHECK(answer.body == "after all");
  CHECK(answer.head.find("Connection: close") != std::string::npos);
  server.end();
  CHECK_FALSE(server.connect().is_connected());
}

TEST_CASE("a server that stops answers all requests that a client has sent at once") {
  Server server;
  Client client = server.connect();
  client.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n" + Client::post_text("/second", "ab") +
              Client::post_text("/third", "abc"));
  const auto exchange = server.taken();
  REQUIRE(exchange);
  server.stop();
  exchange->answer([] { return Response{.body = "first"}; });
  CHECK(client.read().body == "first");
  CHECK(client.read().body == "POST /second 2");
  const Answer last = client.read();
  CHECK(last.body == "POST /third 3");
  CHECK(last.head.find("Connection: close") != std::string::npos);
  CHECK(client.is_closed());
}

TEST_CASE("an empty line before a request is passed over, and HTTP/1.0 is told no 100") {
  Server server;
  Client client = server.connect();
  CHECK(client.ask("\r\nGET /x HTTP/1.1\r\nHost: x\r\n\r\n").body == "GET /x 0");
  CHECK(client.ask("\r\n\r\n" + Client::post_text("/y", "ab")).body == "POST /y 2");
  Client old = server.connect();
  CHECK(old.ask("POST /z HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab").body == "POST /z 2");
}

TEST_CASE("a server that stops does not wait long for a request that is half sent") {
  Server server;
  Client client = server.connect();
  client.send("POST /x HTTP/1.1\r\nHost: x\r\n");
  CHECK(server.goes_on());
  const auto begin = std::chrono::steady_clock::now();
  server.stop();
  CHECK(client.read().status == 408);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));  // of 30 for a request
}

TEST_CASE("a server that stops answers what came before it could read it") {
  Server server;
  std::vector<Client> fresh;
  const auto come = [&](int clients) {
    for (int i = 0; i < clients; ++i) {
      fresh.push_back(server.connect());
      fresh.back().send(Client::post_text("/fresh", "ab"));
    }
    std::this_thread::sleep_for(milliseconds(50));
  };
  Client idle = server.connect(), first = server.connect(), second = server.connect();
  for (Client* client : {&idle, &first, &second}) CHECK(client->get("/x").status == 200);
  first.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  server.is_held.wait(false);
  second.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  come(20);
  server.go_on();  // now it takes one connection after another until it is held again
  server.is_held.wait(false);
  idle.send(Client::post_text("/idle", "abc"));
  come(3);
  server.stop();
  server.go_on();
  CHECK(first.read().body == "GET /hold 0");
  CHECK(second.read().body == "GET /hold 0");
  CHECK(idle.read().body == "POST /idle 3");
  for (Client& client : fresh) CHECK(client.read().body == "POST /fresh 2");
}

TEST_CASE("a server that stops does not wait for a client that comes and sends nothing") {
  Server server({.idle = std::chrono::hours(1)});
  Client first = server.connect();
  first.send("GET /hold HTTP/1.1\r\nHost: x\r\n\r\n");
  server.is_held.wait(false);
  Client silent = server.connect();
  server.stop();
  server.go_on();
  CHECK(silent.is_closed());
  CHECK(first.read().body == "GET /hold 0");
}
