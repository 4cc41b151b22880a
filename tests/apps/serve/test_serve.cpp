// serve as a user runs it: models, versions, many clients at once, signals.
#include <doctest/doctest.h>
#include <fcntl.h>

#include <csignal>
#include <thread>

#include "apps/serve/run.h"
#include "serving/client.h"
#include "serving/service.h"
#include "support/conversation.h"
#include "support/refusal.h"
#include "support/small_heads.h"
#include "support/soon.h"

using namespace bertrand;
using support::Answer;
using support::Client;
using support::Conversation;
using support::Outcome;
using support::run_program;

namespace {

const std::string kPath = "/v1/models/half:predict";

class Setting {
 public:
  Setting() { support::write_small_classifier(directory_ / "half"); }
  std::string operator/(const std::string& name) const { return (directory_ / name).string(); }

 private:
  support::TemporaryDirectory directory_;
};

/// The program, ready, and then killed.
class Server {
 public:
  explicit Server(const std::vector<std::string>& flags)
      : program_("serve", support::with_defaults({"--port", "0", "--threads", "1"}, flags)) {
    const std::string line = program_.line(), before = "listening on ";
    CHECK(line.starts_with(before + "http://127.0.0.1:"));
    url_ = line.substr(std::min(before.size(), line.size()));
  }
  const std::string& url() const { return url_; }
  Client connect() const { return Client(url_); }
  void signal(int number) const { program_.signal(number); }
  int finish() { return program_.finish(); }
  std::string metric(const std::string& name) const {
    const std::string text = connect().get("/metrics").body, before = "\n" + name + " ";
    const std::size_t begin = text.find(before) + before.size();
    return text.substr(begin, text.find('\n', begin) - begin);
  }
  bool is_soon(const std::string& name, const std::string& value) const {
    return support::soon([&] { return metric(name) == value; });
  }

 private:
  Conversation program_;
  std::string url_;
};

/// A request of some instances which differ from those of other numbers.
std::string body_of(int number) {
  const char* words[] = {"red", "fish", "the", "bird", "one", "two", "green", "birds"};
  std::string instances;
  for (int i = 0; i <= number % 3; ++i) {
    instances += i == 0 ? "\"" : ", \"";
    for (int w = 0; w <= (number * 7 + i * 5) % 19; ++w)
      instances += std::string(words[(number + w * w + i) % 8]) + " ";
    instances += "\"";
  }
  return "{\"instances\": [" + instances + "]}";
}

/// A server of the versions in "base", which says to the file "said" what it says to its standard error.
Server server_of_versions(const Setting& setting) {
  struct ErrorsTo {
    explicit ErrorsTo(const std::string& file) : before(dup(STDERR_FILENO)) {
      const int said = open(file.c_str(), O_WRONLY | O_CREAT, 0600);
      dup2(said, STDERR_FILENO);
      close(said);
    }
    ~ErrorsTo() {
      dup2(before, STDERR_FILENO);
      close(before);
    }
    const int before;
  };
  const ErrorsTo said(setting / "said");
  return Server(
      {"--model-base-path", setting / "base", "--model-name", "half", "--file-system-poll-wait-seconds", "0.05"});
}

std::string version_of(const Server& server) {
  return server.connect().get("/v1/models/half").json()["model_version_status"][0]["version"];
}

}  // namespace

TEST_CASE("an answer under load equals the answer alone byte for byte") {
  const Setting setting;
  const Server server({"--model", setting / "half"});
  constexpr int kRequests = 24, kClients = 8;
  std::vector<std::string> alone;
  Client client = server.connect();
  for (int i = 0; i < kRequests; ++i) alone.push_back(client.post(kPath, body_of(i)).body);
  std::vector<std::thread> clients;
  std::atomic<int> same = 0, others = 0;
  for (int c = 0; c < kClients; ++c)
    clients.emplace_back([&, c] {
      Client mine = server.connect();
      for (int i = 0; i < 5 * kRequests; ++i) {
        const int number = (i * (c + 1) + c) % kRequests;
        ++(mine.post(kPath, body_of(number)).body == alone[static_cast<std::size_t>(number)] ? same : others);
      }
    });
  for (std::thread& each : clients) each.join();
  CHECK(same == kClients * 5 * kRequests);
  CHECK(others == 0);
  // They did have company.
  CHECK(std::stoi(server.metric("te_batch_next_size_count")) < std::stoi(server.metric("te_batch_next_size_sum")));
}

TEST_CASE("a signal under load loses no request that was sent before it") {
  const Setting setting;
  Server server({"--model", setting / "half", "--max-batch-tokens", "64"});
  std::vector<Client> clients;
  for (int i = 0; i < 60; ++i) {
    clients.push_back(server.connect());
    if (i % 2 == 0) CHECK(clients.back().post(kPath, body_of(i)).status == 200);
  }
  for (int i = 0; i < 60; ++i) clients[static_cast<std::size_t>(i)].send(Client::post_text(kPath, body_of(i)));
  server.signal(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  server.signal(SIGTERM);  // as timeout(1) sends it to the process, and then to its group
  for (Client& client : clients) {
    CHECK(client.read().status == 200);
    CHECK(client.is_closed());
  }
  CHECK(server.finish() == 0);
  CHECK_FALSE(server.connect().is_connected());
}

TEST_CASE("a signal as soon as the server says that it listens ends it as one later does") {
  const Setting setting;
  for (int i = 0; i < 8; ++i) {
    Server server({"--model", setting / "half"});
    server.signal(SIGTERM);
    CHECK(server.finish() == 0);
  }
}

TEST_CASE("a signal while models are loaded ends the server before the next one") {
  const Setting setting;
  serve::Options options;
  for (int i = 0; i < 100; ++i) options.models.push_back(std::to_string(i) + "=" + setting / "half");
  options.service.http.port = 0;
  options.service.model.machine.threads = 1;
  struct sigaction before {};
  sigaction(SIGTERM, nullptr, &before);  // that of the tests
  const pid_t child = fork();
  if (child == 0) {
    std::thread([before] {
      struct sigaction now = before;
      while (now.sa_handler == before.sa_handler) sigaction(SIGTERM, nullptr, &now);  // until the server has its own
      std::raise(SIGTERM);
    }).detach();
    const std::string refusal = support::refusal(Failure::interrupted, [&] { serve::run(options); });
    _exit(refusal.starts_with("interrupted while loading ") ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("bodies that are bad or too large are refused and the server goes on") {
  const Setting setting;
  const Server server({"--model", setting / "half", "--max-body", "100KiB", "--max-client-batch", "3"});
  const auto error = [&](const std::string& body) {
    const Answer answer = server.connect().post(kPath, body);
    CHECK(server.connect().post(kPath, body_of(1)).status == 200);
    return std::to_string(answer.status) + ": " + answer.error();
  };
  CHECK(error("") == "400: JSON Parse error: The document is empty");
  CHECK(error(std::string(65, '[')).starts_with("400: JSON Parse error: expected at most 64 levels"));
  CHECK(error(std::string(100'000, '[')).starts_with("400: JSON Parse error: expected at most 64 levels"));
  CHECK(error("{\"instances\": [NaN]}").starts_with("400: JSON Parse error: "));
  CHECK(error("{\"instances\": [\"\xC3\x28\"]}").starts_with("400: JSON Parse error: "));
  CHECK(error(std::string("{\"instances\": [\"a\0\"]}", 21)).starts_with("400: JSON Parse error: "));
  CHECK(error(R"({"instances": [{"input_ids": [2]}, {"input_ids": [2], "input_mask": [1]}]})")
            .find("keys must be equal to: input_ids") != std::string::npos);
  CHECK(error(R"({"instances": [{"input_ids": [999999999]}]})")
            .find("instances[0]: input_ids: expected numbers from 0 to 14") != std::string::npos);
  CHECK(error(R"({"instances": ["a", "b", "c", "d"]})") == "400: expected 1 to 3 texts in a request, got 4");
  CHECK(server.connect().get("/answer").head.find("\r\nAllow: POST\r\n") != std::string::npos);
  // The client may still be sending when it is refused.
  CHECK(error(std::string(104'857'600, 'a')) == "413: body: expected at most 102400 bytes, got more");
}

TEST_CASE("a body that is not read is refused in the words of its route") {
  const Setting setting;
  const Server server({"--model", setting / "half", "--max-body", "1KiB"});
  const std::string large(1025, 'a');
  const std::string error = "body: expected at most 1024 bytes, got more";
  for (const char* const path : {"/predict", "/embed", "/", "/invocations"}) {
    const Answer answer = server.connect().post(path, large);
    CHECK(answer.status == 413);
    CHECK(answer.json() == nlohmann::json{{"error", error}, {"error_type", "Validation"}});
  }
  for (const std::string& path : {kPath, std::string("/v2/models/half/infer"), std::string("/answer")})
    CHECK(server.connect().post(path, large).json() == nlohmann::json{{"error", error}});
  const std::string gzip = "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nab";
  CHECK(server.connect().ask(gzip).json().at("error_type") == "Validation");
  CHECK(server.metric("te_request_failure{err=\"413\"}") == "7");
  CHECK(server.metric("te_request_failure{err=\"415\"}") == "1");
}

TEST_CASE("requests beyond those that may wait are refused at once") {
  const Setting setting;
  const Server server(
      {"--model", setting / "half", "--max-waiting", "1", "--max-client-batch", "20000", "--max-batch-tokens", "16"});
  // Two that take turns, for far longer than the others need to come: one is computed, and one waits.
  std::string texts = "\"red fish the bird one two green birds\"";
  for (int i = 1; i < 20'000; ++i) texts += ", \"red fish the bird one two green birds\"";
  Client computed = server.connect(), waiting = server.connect();
  const std::string large = Client::post_text(kPath, "{\"instances\": [" + texts + "]}");
  computed.send(large);
  REQUIRE(server.is_soon("te_request_queue_duration_count", "1"));
  waiting.send(large);
  REQUIRE(server.is_soon("te_queue_size", "1"));
  CHECK(server.connect().post(kPath, body_of(1)).status == 429);
  const Answer answer = server.connect().post("/predict", R"({"inputs": "red"})");
  CHECK(answer.status == 429);
  CHECK(answer.json().at("error_type") == "Overloaded");
  CHECK(answer.head.find("Retry-After: ") != std::string::npos);
  CHECK(server.connect().get("/health").status == 200);
  // Whoever leaves while others are computed is not run.
  waiting.leave();
  CHECK(computed.read().status == 200);
  CHECK(server.connect().post(kPath, body_of(0)).status == 200);
  CHECK(server.is_soon("te_request_dropped", "1"));
}

TEST_CASE("several models are served by name") {
  const Setting setting;
  support::write_small_head<support::SmallEncoder>(setting / "vectors", {.architecture = "BertModel"});
  const Server server({"--model", "a=" + setting / "half", "--model", setting / "vectors/"});
  Client client = server.connect();
  CHECK(client.post("/v1/models/a:predict", body_of(0)).json()["predictions"][0].size() == 3);
  CHECK(client.post("/v1/models/vectors:predict", body_of(0)).json()["predictions"][0].size() == 16);
  CHECK(client.post("/embed", R"({"inputs": "red"})").status == 200);
  CHECK(client.post("/predict", R"({"inputs": "red"})").status == 200);
  CHECK(client.post(kPath, body_of(0)).status == 404);
  CHECK(server.metric("te_request_count") == "5");  // this one asks no model
  CHECK(server.metric("te_request_success") == "4");
  CHECK(server.metric("te_request_tokenization_duration_count") == "4");
  CHECK(server.is_soon("te_sequences", "4"));  // each asked for one
  CHECK(server.metric("te_request_failure{err=\"404\"}") == "1");
}

TEST_CASE("a newer version takes the place of the old one and a damaged one does not") {
  const Setting setting;
  support::write_small_classifier(setting / "base/9");
  support::write_small_classifier(setting / "base/007-not");
  const Server server = server_of_versions(setting);
  CHECK(version_of(server) == "9");
  CHECK(server.connect().post(kPath, body_of(0)).json()["predictions"][0].size() == 3);
  std::filesystem::create_directories(setting / "base/11");  // damaged: it is empty
  const std::string warning = "warning: half: version 9 goes on: ";
  CHECK(support::soon([&] { return support::read_text(setting / "said").find(warning) != std::string::npos; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // in which it looks again
  CHECK(version_of(server) == "9");
  support::write_small_classifier(setting / "next", {"yes", "no"});
  std::filesystem::rename(setting / "next", setting / "base/12");
  CHECK(support::soon([&] { return version_of(server) == "12"; }));
  CHECK(server.connect().post(kPath, body_of(0)).json()["predictions"][0].size() == 2);
  CHECK(server.connect().post("/v1/models/half/versions/9:predict", body_of(0)).status == 404);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // in which it finds the version that it has
  const std::string text = support::read_text(setting / "said");
  CHECK(text.find(warning) != std::string::npos);
  CHECK(text.find(warning) == text.rfind(warning));  // however often it looked
  CHECK(text.find("half: version 12 in place of 9\n") != std::string::npos);
  CHECK(text.find(" in place of ") == text.rfind(" in place of "));
}

TEST_CASE("a server begins with the newest version that loads, and says once what is wrong with a newer one") {
  const Setting setting;
  for (const char* const good : {"base/2", "base/3"}) support::write_small_classifier(setting / good);
  for (const char* const empty : {"base/4", "base/5"}) std::filesystem::create_directories(setting / empty);
  const Server server = server_of_versions(setting);
  CHECK(version_of(server) == "3");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // in which it looks again
  const std::string text = support::read_text(setting / "said"),
                    warning = "warning: half: version 3 goes on: " + (setting / "base/5");
  CHECK(text.find(warning) != std::string::npos);
  CHECK(text.find("warning: ") == text.rfind("warning: "));

  for (const char* const good : {"base/2", "base/3"}) std::filesystem::remove_all(setting / good);
  const Outcome none = run_program(
      "serve", {"--model-base-path", setting / "base", "--model-name", "half", "--port", "0", "--threads", "1"});
  CHECK(none.code == 4);
  CHECK(none.error.starts_with("error: " + (setting / "base/5")));
}

TEST_CASE("an older version does not take the place of one whose directory is gone, and a newer one does") {
  const Setting setting;
  for (const char* const name : {"base/8", "base/9"}) support::write_small_classifier(setting / name);
  const Server server = server_of_versions(setting);
  CHECK(version_of(server) == "9");
  std::filesystem::rename(setting / "base/9", setting / "gone");
  std::filesystem::create_directories(setting / "base/10");  // damaged, which is said when version 8 was found too
  const std::string warning = "warning: half: version 9 goes on: " + (setting / "base/10");
  CHECK(support::soon([&] { return support::read_text(setting / "said").find(warning) != std::string::npos; }));
  CHECK(version_of(server) == "9");
  CHECK(server.connect().post(kPath, body_of(0)).status == 200);
  std::filesystem::rename(setting / "gone", setting / "base/11");
  CHECK(support::soon([&] { return version_of(server) == "11"; }));
}

TEST_CASE("the memory plan has room for a newer version beside the old one") {
  const Setting setting;
  support::write_small_classifier(setting / "base/1");
  serving::ServiceOptions options{.http = {.port = 0}};
  options.model.machine.threads = 1;
  options.versioned = {.name = "half", .base = setting / "base"};
  CHECK(serving::Service(options).memory_plan().find(", a newer version ") != std::string::npos);
  options.versioned.reset();
  options.models = {{.name = "half", .directory = setting / "half"}};
  CHECK(serving::Service(options).memory_plan().find("newer") == std::string::npos);
}

TEST_CASE("a server whose messages nobody reads goes on") {
  const Setting setting;
  support::write_small_classifier(setting / "base/1");
  int broken[2];
  REQUIRE(pipe(broken) == 0);
  close(broken[0]);
  const int before = dup(STDERR_FILENO);
  dup2(broken[1], STDERR_FILENO);
  Server server(
      {"--model-base-path", setting / "base", "--model-name", "half", "--file-system-poll-wait-seconds", "0.05"});
  dup2(before, STDERR_FILENO);
  for (const int file : {broken[1], before}) close(file);
  // A version is said after it is served: whoever serves a third one could not say the second.
  for (const std::string version : {"2", "3"}) {
    support::write_small_classifier(setting / ("next-" + version));
    std::filesystem::rename(setting / ("next-" + version), setting / ("base/" + version));
    REQUIRE(support::soon([&] { return version_of(server) == version; }));
  }
  CHECK(server.connect().post(kPath, body_of(0)).status == 200);
  server.signal(SIGTERM);
  CHECK(server.finish() == 0);
}

TEST_CASE("a health check says whether a server is there") {
  const Setting setting;
  Server server({"--model", setting / "half"});
  CHECK(run_program("serve", {"--check", server.url()}).code == 0);
  CHECK(run_program("serve", {"--check", server.url() + "/v1/models/half"}).code == 0);
  const Outcome none = run_program("serve", {"--check", server.url() + "/none"});
  CHECK(none.code == 5);
  CHECK(none.error.ends_with("expected a healthy server, got HTTP/1.1 404 Not Found\n"));
  server.signal(SIGTERM);
  CHECK(server.finish() == 0);
  const Outcome gone = run_program("serve", {"--check", server.url()});
  CHECK(gone.code == 5);
  CHECK(gone.error.ends_with("expected a healthy server, got Connection refused\n"));
  for (const char* url : {"localhost", "http://127.0.0.1:65537", "http://127.0.0.1:http"})
    CHECK(run_program("serve", {"--check", url}).code == 2);
}

TEST_CASE("flags that fit no server are refused") {
  const Setting setting;
  const auto refusal = [](const std::vector<std::string>& flags, int code = 2) {
    const Outcome outcome = run_program("serve", flags);
    CHECK(outcome.code == code);
    CHECK(outcome.out.empty());
    return outcome.error;
  };
  const std::string half = setting / "half";
  CHECK(refusal({}).starts_with("error: --model: expected a model directory, got none"));
  CHECK(refusal({"--model", half, "--model", half})
            .starts_with("error: --model: expected each name once, got half twice"));
  CHECK(refusal({"--model-base-path", half}).starts_with("error: --model-base-path and --model-name: expected both"));
  CHECK(refusal({"--model-base-path", half, "--model-name", "half", "--port", "0"}, 4)
            .find("expected a directory with a number for its name, got none") != std::string::npos);
  CHECK(
      refusal({"--model", half, "--port", "65536"}).starts_with("error: --port: expected a whole number, 0 to 65535"));
  CHECK(refusal({"--model", half, "--file-system-poll-wait-seconds", "5"}) ==
        "error: --file-system-poll-wait-seconds: expected with --model-base-path, got none\n");
  for (const std::string bytes : {"-1", "0", "10000PB", "1e30"})
    CHECK(refusal({"--model", half, "--max-body", bytes}) ==
          "error: --max-body: expected a number of bytes as 8GiB, 500MB or 1000000, got \"" + bytes + "\"\n");
  CHECK(refusal({"--model", half, "--max-body", "65MiB"}) ==
        "error: --max-body: expected at most 67108864 bytes, got 65MiB\n");
  CHECK(refusal({"--model", half, "--host", ""}).starts_with("error: --host: expected HOST, got an empty value"));
  CHECK(refusal({"--model", setting / "none", "--port", "0"}, 4).starts_with("error: "));
  CHECK(refusal({"--model", half, "--device", "cpu,cpu", "--port", "0"}).starts_with("error: --device: "));
}
