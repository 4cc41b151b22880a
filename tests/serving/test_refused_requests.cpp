// Requests that the sockets refuse, and the memory that all of them share.
#include <doctest/doctest.h>

#include "serving/toy_server.h"

using namespace bertrand::serving;
using std::chrono::milliseconds;
using support::Answer;
using support::Client;
using Server = support::ToyServer;

TEST_CASE("what is no request is refused and the server goes on") {
  Server server({.max_body = 1000});
  const auto status = [&](const std::string& bytes) {
    Client client = server.connect();
    const Answer answer = client.ask(bytes);
    CHECK(answer.head.find("Connection: close") != std::string::npos);
    CHECK(answer.json().contains("error"));
    CHECK(client.is_closed());
    CHECK(server.goes_on());
    return answer.status;
  };
  const std::string post = "POST /x HTTP/1.1\r\nHost: x\r\n";
  CHECK(status("hello\r\n\r\n") == 400);
  CHECK(status("GET /x HTTP/9.9\r\n\r\n") == 400);
  CHECK(status(std::string("\x16\x03\x01\x02\0\x01\xFC", 7) + "\r\n\r\n") == 400);  // TLS
  CHECK(status(post + "Transfer-Encoding: chunked\r\n\r\n-2\r\nab\r\n0\r\n\r\n") == 400);
  CHECK(status(post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n") == 400);
  CHECK(status(post + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc") == 400);
  CHECK(status(post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") == 400);
  for (const std::string coding : {"gzip", "identity", "xchunked", "chunked, gzip", "gzip, chunked", "\"chunked\""})
    CHECK(status(post + "Transfer-Encoding: " + coding + "\r\n\r\nGET /x HTTP/1.1\r\nHost: x\r\n\r\n") == 400);
  CHECK(status(post + "Content-Length: -1\r\n\r\n") == 400);
  CHECK(status(post + "Content-Length: 1e3\r\n\r\n") == 400);
  CHECK(status("GET /x HTTP/1.1\r\nX: " + std::string(20'000, 'a') + "\r\n\r\n") == 400);
  CHECK(status("GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\n\r\n") == 400);
  CHECK(status(post + "Content-Length: 1001\r\n\r\n") == 413);
  CHECK(status(post + "Content-Length: 104857600\r\n\r\n" + std::string(100'000, 'a')) == 413);
  CHECK(status(post + "Transfer-Encoding: chunked\r\n\r\n" + "800\r\n" + std::string(2048, 'a') + "\r\n") == 413);
  CHECK(server.held() == 0);
  const auto error = [&](const std::string& bytes) { return server.connect().ask(bytes).error(); };
  CHECK(error("hello\r\n\r\n").starts_with("expected HTTP/1.1, got "));
  for (const std::string before : {"GET /x HTTP/1.1\r\nX: ", "GET /"})
    CHECK(error(before + std::string(20'000, 'a') + "\r\n\r\n") == "header: expected at most 16384 bytes, got more");
}

TEST_CASE("a request names one host, which HTTP/1.0 need not") {
  Server server;
  const auto ask = [&](const std::string& head) { return server.connect().ask("GET /x HTTP/" + head + "\r\n\r\n"); };
  CHECK(ask("1.1").error() == "Host: expected one, got none");
  CHECK(ask("1.1\r\nHost: x\r\nHost: y").error() == "Host: expected one, got 2");
  CHECK(ask("1.0\r\nHost: x\r\nHost: x").error() == "Host: expected one, got 2");
  CHECK(server.refused() == std::vector<int>(3, 400));
  for (const std::string head : {"1.0", "1.0\r\nHost: x", "1.1\r\nHost:", "1.1\r\nhost: x"})
    CHECK(ask(head).body == "GET /x 0");
}

TEST_CASE("HTTP/1.0 has no chunks, and where a body of them ends is no new request") {
  Server server;
  Client client = server.connect();
  const std::string chunks =
      "POST /x HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
  const Answer answer = client.ask(chunks + "GET /x HTTP/1.0\r\n\r\n");
  CHECK(answer.status == 400);
  CHECK(answer.error() == "Transfer-Encoding: expected none in HTTP/1.0, got one");
  CHECK(client.is_closed());
}

TEST_CASE("a body that is compressed is refused as such, and its client learns how to send it") {
  Server server;
  const auto ask = [&](const std::string& coding) {
    return server.connect().ask("POST /x HTTP/1.1\r\nHost: x\r\nContent-Encoding: " + coding +
                                "\r\nContent-Length: 2\r\n\r\nab");
  };
  for (const std::string coding : {"gzip", "br", "identity, gzip", "identity\r\nContent-Encoding: gzip"}) {
    CAPTURE(coding);
    const Answer answer = ask(coding);
    CHECK(answer.status == 415);
    CHECK(answer.head.find("\r\nAccept-Encoding: identity\r\n") != std::string::npos);
    CHECK(answer.error().starts_with("Content-Encoding: expected none, got "));
  }
  CHECK(ask("Identity").body == "POST /x 2");
  const std::string get = "GET /x HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n\r\n";
  CHECK(server.connect().ask(get).body == "GET /x 0");  // nothing is compressed
  CHECK(server.refused() == std::vector<int>(4, 415));
}

TEST_CASE("the binary extension of KServe is refused by name") {
  const Server server;
  const Answer answer = server.connect().ask(
      "POST /x HTTP/1.1\r\nHost: x\r\ninference-header-content-length: 2\r\nContent-Length: 4\r\n\r\n{}\1\2");
  CHECK(answer.status == 400);
  CHECK(answer.error() ==
        "Inference-Header-Content-Length: expected JSON alone, got the binary extension; hint: binary_data=False");
}

TEST_CASE("whoever words a refusal knows the request's line if there is one") {
  Server server({.max_body = 1000}), hasty({.timeout = milliseconds(500)});
  const auto of = [](const std::string& bytes, const Server& to) { return to.connect().ask(bytes).json().at("of"); };
  const std::string post = "POST http://x/y?z HTTP/1.1\r\nHost: x\r\n";
  CHECK(of(post + "Content-Length: 1001\r\n\r\n", server) == "POST /y?z");
  CHECK(of(post + "Transfer-Encoding: chunked\r\n\r\n" + "800\r\n" + std::string(2048, 'a') + "\r\n", server) ==
        "POST /y?z");
  CHECK(of("GET /throw HTTP/1.1\r\nHost: x\r\n\r\n", server) == "GET /throw");
  CHECK(of("hello\r\n\r\n", server) == " ");
  CHECK(server.refused() == std::vector<int>{413, 413, 500, 400});
  CHECK(of(post + "Content-Length: 2\r\n\r\na", hasty) == "POST /y?z");
  CHECK(of("GET /wait HTTP/1.1\r\nHost: x\r\n\r\n", hasty) == "GET /wait");
  CHECK(hasty.refused() == std::vector<int>{408, 504});
}

TEST_CASE("a body that does not fit into the memory for requests is refused") {
  Server server({.max_body = 1 << 20}, 100'000);
  Client client = server.connect();
  CHECK(client.post("/x", std::string(90'000, 'a')).status == 200);
  CHECK(server.connect().post("/x", std::string(90'000, 'a')).status == 200);  // what has been read is not held
  CHECK(client.post("/x", std::string(110'000, 'a')).status == 429);
  CHECK(server.refused() == std::vector<int>{429});
  CHECK(server.goes_on());
  CHECK(server.held() == 0);
}

TEST_CASE("what is held is never more than there is, and what one gives back another takes") {
  Budget budget(100);
  Budget::Share one(budget), other(budget);
  CHECK(one.grow_to(60));
  CHECK_FALSE(other.grow_to(41));
  CHECK(budget.held() == 60);
  CHECK(other.grow_to(40));  // all there is
  CHECK(one.grow_to(50));    // less than it has
  CHECK(budget.held() == 100);
  CHECK_FALSE(one.grow_to(61));
  one.reset();
  CHECK(budget.held() == 40);
  CHECK(other.grow_to(100));
}
