// The flags of serve: which option each is, and what those do of which no other test makes use.
#include <doctest/doctest.h>
#include <sys/resource.h>

#include "apps/serve/options.h"
#include "serving/client.h"
#include "support/conversation.h"
#include "support/parsed.h"
#include "support/small_heads.h"

using namespace bertrand;
using support::Flags;
using support::parsed;

TEST_CASE("every flag of serve is the option of its name") {
  const auto given = parsed<serve::Options>(
      "--model a=first --model b=second --model-base-path base --model-name c --file-system-poll-wait-seconds 0.5 "
      "--vocab-file words --cased --task embed --max-seq-length 11 --top-k 12 --pooling cls --normalize "
      "--null-score-diff-threshold 1.5 --host 0.0.0.0 --port 13 --max-batch-tokens 14 --max-waiting 15 "
      "--max-client-batch 16 --max-connections 17 --max-body 18KiB --timeout 2.5 --device cuda:1 --precision tf32 "
      "--threads 19 --cpu-kernels x86-64-v3 --check http://there",
      Flags::every);
  CHECK(given.check == "http://there");
  const serving::ServiceOptions service = complete(given);
  REQUIRE(service.models.size() == 2);
  CHECK(service.models[0].name == "a");
  CHECK(service.models[0].directory == "first");
  CHECK(service.models[1].name == "b");
  CHECK(service.models[1].directory == "second");
  REQUIRE(service.versioned);
  CHECK(service.versioned->name == "c");
  CHECK(service.versioned->base == "base");
  CHECK(service.versioned->look_every == std::chrono::milliseconds(500));

  const serving::ModelOptions& model = service.model;
  CHECK(model.tokenizer.vocab_file == "words");
  CHECK(model.head == inference::Head::embed);
  CHECK(model.inference.max_seq_length == 11);
  CHECK(model.inference.top_k == 12);
  CHECK(model.inference.pooling == inference::Pooling::cls);
  CHECK(model.inference.answers.version_2);
  CHECK(model.inference.answers.null_score_diff_threshold == 1.5);
  CHECK(model.machine.device == "cuda:1");
  CHECK(model.machine.precision_name() == "tf32");
  CHECK(model.machine.threads == 19);
  CHECK(model.machine.cpu_kernels == "x86-64-v3");

  CHECK(service.http.host == "0.0.0.0");
  CHECK(service.http.port == 13);
  CHECK(service.batches.max_tokens == 14);
  CHECK(service.batches.max_waiting == 15);
  CHECK(service.max_texts == 16);
  CHECK(service.http.max_connections == 17);
  CHECK(service.http.max_body == 18 << 10);
  CHECK(service.http.timeout == std::chrono::milliseconds(2500));
}

TEST_CASE("a switch of serve is the option of its name alone, and without flags a question has an answer") {
  for (const std::string flag : {"--cased", "--normalize", "--model m"}) {
    CAPTURE(flag);
    const serving::ModelOptions model = parsed<serve::Options>(flag).service.model;
    CHECK(model.tokenizer.cased == (flag == "--cased"));
    CHECK(model.inference.normalize == (flag == "--normalize"));
  }
  const serving::ServiceOptions service = complete(parsed<serve::Options>("--model m"));
  CHECK_FALSE(service.model.inference.answers.version_2);
  CHECK(service.http.timeout == std::chrono::seconds(30));
}

TEST_CASE("a flag that no model of a server takes is refused, and one that a single model takes is not") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "classes");
  support::write_small_labeller(directory / "words", {"O", "B-X"});
  support::write_small_head<support::SmallEncoder>(directory / "vectors", {.architecture = "BertModel"});
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> flags = {
        "--model", directory / "words", "--model", directory / "classes", "--threads", "1", "--port", "0"};
    flags.insert(flags.end(), more.begin(), more.end());
    return flags;
  };
  const auto refusal = [&](const std::vector<std::string>& flags) {
    REQUIRE(support::Conversation("serve", with(flags)).line().empty());  // one that listens would have no end
    const support::Outcome outcome = support::run_program("serve", with(flags));
    CHECK(outcome.code == 2);
    return outcome.error;
  };
  const std::string rest = ", got --task classify and tokens\n";
  CHECK(refusal({"--normalize"}) == "error: --normalize: expected with --task embed" + rest);
  CHECK(refusal({"--pooling", "cls"}) == "error: --pooling: expected with --task embed" + rest);
  CHECK(refusal({"--top-k", "7"}) == "error: --top-k: expected with --task fill-mask or answer" + rest);
  CHECK(refusal({"--null-score-diff-threshold", "3"}) ==
        "error: --null-score-diff-threshold: expected with --task answer" + rest);
  const support::Conversation server("serve", with({"--model", directory / "vectors", "--pooling", "cls"}));
  CHECK(server.line().starts_with("listening on "));
}

TEST_CASE("a server holds as many connections as its flag says, and as the files of its process leave beside 64") {
  const support::TemporaryDirectory directory;
  support::write_small_classifier(directory / "model");
  struct Case {
    rlim_t most_files;
    std::vector<std::string> flags;
    std::size_t connections;
  };
  for (const Case& c : {Case{64 + 5, {}, 5}, Case{256, {"--max-connections", "3"}, 3}}) {
    CAPTURE(c.connections);
    const pid_t child = fork();  // a limit that is lowered stays so
    if (child == 0) {
      const rlimit files{.rlim_cur = 64 + 2, .rlim_max = c.most_files};  // the server raises the first to the second
      bool is_good = setrlimit(RLIMIT_NOFILE, &files) == 0;
      {
        const support::Conversation server(
            "serve",
            support::with_defaults({"--model", directory / "model", "--port", "0", "--threads", "1"}, c.flags));
        const std::string line = server.line(), url = line.substr(line.find("http://"));
        std::vector<support::Client> clients;
        for (std::size_t i = 0; i < c.connections; ++i) clients.emplace_back(url);
        const auto ask = [&](support::Client& client) { is_good = is_good && client.get("/health").status == 200; };
        for (int times = 0; times < 2; ++times) std::ranges::for_each(clients, ask);
        support::Client more(url);
        ask(more);
        is_good = is_good && clients.front().is_closed();
        ask(clients.back());
      }
      _exit(is_good ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
}
