// What a batch is reckoned to take, which serve says when it begins.
#include <doctest/doctest.h>

#include <thread>

#include "serving/asked.h"
#include "serving/client.h"
#include "serving/service.h"
#include "support/limited_space.h"
#include "support/refusal.h"

using namespace bertrand;

TEST_CASE("the memory of a batch grows with its tokens, and with the words of each mask, and has no weights in it") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "classes");
  support::write_small_head<bert::ForPretraining>(directory / "masks", {.architecture = "BertForPreTraining"});
  const serving::ModelPointer classes = support::open_served(directory / "classes", "classes"),
                              masks = support::open_served(directory / "masks", "masks");
  CHECK(classes->batch_bytes(1) < std::filesystem::file_size(directory / "classes/model.safetensors"));
  constexpr std::size_t kTokens = 1000, kHidden = 16, kWords = 15;
  CHECK(classes->batch_bytes(2 * kTokens) - classes->batch_bytes(kTokens) > kTokens * kHidden * sizeof(float));
  // What a batch takes however few its tokens are, as the numbers of its labels.
  CHECK(2 * classes->batch_bytes(kTokens) > classes->batch_bytes(2 * kTokens));
  // Each token may be [MASK], whose outputs are on the device's side and on this one.
  CHECK(masks->batch_bytes(kTokens) > classes->batch_bytes(kTokens) + kTokens * kWords * sizeof(float));
}

TEST_CASE(
    "the memory plan counts each connection and each byte of a body, and a request beyond all memory is refused") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "classes");
  serving::ServiceOptions options{.models = {{.name = "classes", .directory = directory / "classes"}},
                                  .http = {.port = 0, .max_body = 1000, .max_connections = 100},
                                  .batches = {.max_tokens = 1'000'000'000},  // which take more than the model
                                  .max_request_bytes = 2000};
  options.model.machine.threads = 1;
  serving::Service service(options);
  const std::string plan = service.memory_plan();
  CAPTURE(plan);
  CHECK(plan.ends_with(", requests and answers 202 kB, connections 4.1 MB"));
  CHECK(plan.find("e+") == std::string::npos);  // no sum is below zero
  std::thread thread([&] { service.run(); });
  support::Client client(service.url());
  CHECK(client.post("/predict", R"({"inputs": "red"})").status == 200);
  const support::Answer two = client.post("/predict", R"({"inputs": [["red"], ["fish"]]})");
  CHECK(two.status == 413);
  CHECK(two.error() == "expected a smaller request, got one whose answer may take too much memory");
  service.stop();
  thread.join();
}

TEST_CASE("a request for which the system has no memory is answered with 503, and the server goes on") {
  if (support::mapped() > std::size_t{1} << 40) {
    MESSAGE("SKIPPED: a sanitizer has the address space");
    return;
  }
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "classes");
  serving::ServiceOptions options{.models = {{.name = "classes", .directory = directory / "classes"}},
                                  .http = {.port = 0}};
  options.model.machine.threads = 1;
  serving::Service service(options);
  std::thread thread([&] { service.run(); });
  support::Client client(service.url());
  const std::string words = R"({"inputs": ")" + std::string(2'000'000, '.') + "\"}";
  const std::string request = support::Client::post_text("/predict", words);
  const support::LimitedSpace limited(24 << 20);  // the body has room, and not its words
  const support::Answer none = client.ask(request);
  CHECK(none.status == 503);
  CHECK(none.error() == "out of memory");
  CHECK(client.post("/predict", R"({"inputs": "red"})").status == 200);
  service.stop();
  thread.join();
}

TEST_CASE("a server that stops does not wait until it looks for a newer version again") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "base/1");
  serving::ServiceOptions options{.http = {.port = 0}};
  options.model.machine.threads = 1;
  options.versioned = {.name = "classes", .base = directory / "base", .look_every = std::chrono::hours(1)};
  serving::Service service(options);
  std::thread thread([&] { service.run(); });
  CHECK(support::Client(service.url()).get("/health").status == 200);
  service.stop();
  thread.join();
}

TEST_CASE("an answer with more candidates than usual takes what the pairs of positions take that are compared") {
  const support::TemporaryDirectory directory;
  support::write_small_head<bert::ForQuestionAnswering>(directory / "model",
                                                        {.architecture = "BertForQuestionAnswering"});
  std::string context;
  for (int i = 0; i < 10; ++i) context += "red fish ";
  // The bytes of an answer from a window of 24 tokens, less those from a window of 5.
  const auto more = [&](int top_k) {
    serving::ModelOptions options;
    options.machine.threads = 1;
    options.inference = {.top_k = top_k, .windows = {.doc_stride = 2, .max_query_length = 4}};
    const serving::ServedModel model({.name = "model", .directory = directory / "model"}, options);
    const auto bytes = [&](const std::string& text) {
      const inference::Query query = model.predictor().encode({{"question", "bird"}, {"context", text}}, "here");
      CHECK(query.sequences.size() == 1);
      return model.bytes_of(query);
    };
    return bytes(context) - bytes("red");
  };
  CHECK(more(5) == more(20));
  CHECK(more(1000) > more(20) + (24 * 24 - 5 * 5) * 32);
}

TEST_CASE("a model with room for one piece is served, and one with less is refused") {
  const support::TemporaryDirectory directory;
  const auto open = [&](Dim positions) {
    support::write_small_head<support::SmallEncoder>(directory / "model",
                                                     {.architecture = "BertModel", .positions = positions});
    return support::open_served(directory / "model", "model");
  };
  CHECK(open(3)->max_length() == 3);
  CHECK(support::refusal(Failure::model, [&] { open(2); }).ends_with("expected at least 3 to read a text, got 2"));
}

TEST_CASE("a model whose outputs are not finite is not served") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  support::spoil_embedding(directory / "model/model.safetensors", 0);
  CHECK(support::refusal(Failure::numerics, [&] { support::open_served(directory / "model", "pets", 3); }) ==
        "pets: version 3: outputs: expected finite numbers, got nan; hint: --precision f32, or damaged weights");
}

TEST_CASE("the tokens of an answer are made with it, and their memory is counted") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "classes");
  support::Asked asked;
  asked.models.put(support::open_served(directory / "classes", "classes"));
  const auto question_of = [&](const std::string& text) {
    const serving::Request request{.method = "POST", .target = "/answer", .body = R"({"text": ")" + text + R"("})"};
    return std::get<serving::Question>(serving::plan(request, {.models = asked.models, .metrics = asked.metrics}));
  };
  serving::Question question = question_of("red fish"), longer = question_of("red fish red");
  CHECK(longer.bytes == question.bytes + 128);
  // Copies share what they are made from.
  const auto respond = question.respond;
  const std::string text = respond(support::answers_to(question)).body;
  CHECK(nlohmann::json::parse(text).at("tokens").dump() == R"([["[CLS]","red","fish","[SEP]"]])");
  CHECK(text.ends_with(R"("cut":false})"));
}
