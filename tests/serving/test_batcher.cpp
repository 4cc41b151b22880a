// The queue before the model: what is taken together, and what is not run at all.
#include <doctest/doctest.h>

#include <thread>

#include "serving/asked.h"
#include "serving/batcher.h"
#include "support/terminal.h"

using namespace bertrand;
using serving::Batcher;
using serving::Outcome;
using serving::Work;

namespace {

struct Setting {
  Setting() {
    support::write_small_classifier(directory / "model");
    model = support::open_served(directory / "model", "model");
  }

  /// Asks for these texts; the outcome comes into `outcomes` under `name`.
  Work work(const std::string& name, const std::vector<std::string>& texts, bool is_wanted = true) {
    Work work{.model = model,
              .is_wanted = [is_wanted] { return is_wanted; },
              .done =
                  [this, name](Outcome outcome) {
                    order.push_back(name);
                    outcomes[name] = std::move(outcome);
                  }};
    for (const std::string& text : texts) work.queries.push_back(model->predictor().encode({{"text", text}}, name));
    return work;
  }
  /// Computes all that was put.
  void run(Batcher& batcher) const {
    batcher.stop();
    batcher.run();
  }
  /// How often this line is in the metrics.
  bool counts(const std::string& line) const {
    return metrics.text(0, 0).find("\n" + line + "\n") != std::string::npos;
  }

  support::TemporaryDirectory directory;
  serving::Metrics metrics;
  serving::ModelPointer model;
  std::map<std::string, Outcome> outcomes;
  std::vector<std::string> order;
};

}  // namespace

TEST_CASE("all that waits is computed together up to so many tokens") {
  Setting setting;
  Batcher batcher({.max_tokens = 12}, setting.metrics);
  // They have 4, 4, 4 and 3 tokens: the first three fill a batch.
  for (const char* name : {"a", "b", "c"}) CHECK(batcher.put(setting.work(name, {"red fish"})));
  CHECK(batcher.put(setting.work("d", {"red"})));
  CHECK(batcher.waiting() == 4);
  setting.run(batcher);
  CHECK(setting.order.size() == 4);
  CHECK(setting.counts("te_request_inference_duration_count 2"));
  CHECK(setting.counts("te_batch_next_tokens_sum 15"));
  CHECK(setting.counts("te_batch_next_tokens_bucket{le=\"4\"} 1"));
  CHECK(setting.counts("te_request_queue_duration_count 4"));
  CHECK(setting.outcomes["a"].answers == setting.outcomes["c"].answers);
  CHECK(setting.outcomes["a"].answers != setting.outcomes["d"].answers);
}

TEST_CASE("a request larger than a batch is answered whole") {
  Setting setting;
  Batcher batcher({.max_tokens = 8}, setting.metrics);
  const std::vector<std::string> texts = {"red", "fish", "the bird", "one two red", "green"};
  batcher.put(setting.work("all", texts));
  for (const std::string& text : texts) batcher.put(setting.work(text, {text}));
  setting.run(batcher);
  REQUIRE(setting.outcomes["all"].answers.size() == texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i)
    CHECK(setting.outcomes["all"].answers[i] == setting.outcomes[texts[i]].answers.at(0));
}

TEST_CASE("a request larger than a batch keeps nobody waiting for its end") {
  Setting setting;
  Batcher batcher({.max_tokens = 9}, setting.metrics);
  batcher.put(setting.work("large", {"red", "fish", "one", "two", "green"}));  // of 3 tokens each
  batcher.put(setting.work("another", {"red", "fish", "one", "two"}));
  for (const char* name : {"a", "b"}) batcher.put(setting.work(name, {"red"}));
  setting.run(batcher);
  // Three of the first, three of the second, both short ones and the last of the second, the last two of the first.
  CHECK(setting.order == std::vector<std::string>{"a", "b", "large", "another"});
  CHECK(setting.outcomes["large"].answers.size() == 5);
  CHECK(setting.outcomes["large"].answers[0] == setting.outcomes["a"].answers.at(0));
  CHECK(setting.counts("te_request_queue_duration_count 4"));
  CHECK(setting.counts("te_batch_next_tokens_sum 33"));
}

TEST_CASE("a text of more windows than a batch keeps nobody waiting for its end") {
  Setting setting;
  support::write_small_head<bert::ForQuestionAnswering>(setting.directory / "answers",
                                                        {.architecture = "BertForQuestionAnswering"});
  setting.model = support::open_served(setting.directory / "answers", "answers");
  std::string context = "red";
  for (int i = 0; i < 30; ++i) context += " fish";
  const auto work_of = [&](const std::string& name, const std::string& text) {
    Work work = setting.work(name, {});
    work.queries.push_back(setting.model->predictor().encode({{"question", "bird"}, {"context", text}}, name));
    return work;
  };
  const auto ask = [&](std::int64_t max_tokens) {
    Batcher batcher({.max_tokens = max_tokens}, setting.metrics);
    Work large = work_of("large", context);
    CHECK(large.queries[0].sequences.size() > 3);
    batcher.put(std::move(large));
    batcher.put(work_of("short", "red"));
    setting.run(batcher);
    return setting.outcomes["large"].answers;
  };
  const std::vector<io::Json> at_once = ask(4096);
  CHECK(setting.order == std::vector<std::string>{"large", "short"});
  CHECK(ask(24) == at_once);
  CHECK(setting.order == std::vector<std::string>{"large", "short", "short", "large"});
}

TEST_CASE("more than may wait are refused and who has left is not run and takes no place") {
  Setting setting;
  Batcher batcher({.max_waiting = 2}, setting.metrics);
  bool is_here = true;
  Work leaving = setting.work("leaving", {"red"});
  leaving.is_wanted = [&] { return is_here; };
  CHECK(batcher.put(std::move(leaving)));
  CHECK_FALSE(batcher.is_full());
  CHECK(batcher.put(setting.work("here", {"red"})));
  CHECK(batcher.is_full());
  CHECK_FALSE(batcher.put(setting.work("late", {"red"})));
  is_here = false;
  CHECK_FALSE(batcher.is_full());
  CHECK(batcher.put(setting.work("later", {"red"})));
  CHECK(batcher.is_full());
  setting.run(batcher);
  CHECK(setting.order == std::vector<std::string>{"here", "later"});
  CHECK(setting.counts("te_request_dropped 1"));
  CHECK(setting.counts("te_sequences 2"));
}

TEST_CASE("a request larger than a batch ends when its client leaves") {
  Setting setting;
  Batcher batcher({.max_tokens = 4}, setting.metrics);
  serving::Work work = setting.work("left", {"red", "fish", "the bird", "one two red", "green"});
  int asked = 0;
  work.is_wanted = [&] { return asked++ == 0; };  // when it is taken, and not after its first batch
  batcher.put(std::move(work));
  batcher.put(setting.work("here", {"red"}));
  setting.run(batcher);
  CHECK(setting.order == std::vector<std::string>{"here"});
  CHECK(asked == 2);
  CHECK(setting.counts("te_request_dropped 1"));
}

TEST_CASE("each model computes its own requests and keeps their order") {
  Setting setting;
  Batcher batcher({}, setting.metrics);
  const serving::ModelPointer first = setting.model,
                              second = support::open_served(setting.directory / "model", "second");
  batcher.put(setting.work("a", {"red"}));
  setting.model = second;
  batcher.put(setting.work("b", {"red"}));
  setting.model = first;
  batcher.put(setting.work("c", {"fish"}));
  setting.run(batcher);
  CHECK(setting.order.back() == "b");
  CHECK(setting.outcomes["a"].answers == setting.outcomes["b"].answers);
  CHECK(setting.counts("te_request_inference_duration_count 2"));
}

TEST_CASE("numbers that are not finite fail one request and not its company") {
  Setting setting;
  support::spoil_embedding(setting.directory / "model/model.safetensors", 8);  // fish
  setting.model = support::open_served(setting.directory / "model", "model");
  Batcher batcher({}, setting.metrics);
  batcher.put(setting.work("bad", {"red", "fish", "fish"}));
  batcher.put(setting.work("good", {"red", "bird"}));
  setting.run(batcher);
  CHECK(setting.order.size() == 2);
  CHECK(setting.outcomes["bad"].status == 500);
  CHECK(setting.outcomes["bad"].error.starts_with("bad: outputs: expected finite numbers"));
  CHECK(setting.outcomes["good"].status == 200);
  CHECK(setting.outcomes["good"].answers.size() == 2);
}

TEST_CASE("the first request of a version that fails is told on standard error, and no other") {
  Setting setting;
  support::spoil_embedding(setting.directory / "model/model.safetensors", 8);  // fish
  setting.model = support::open_served(setting.directory / "model", "model");
  Batcher batcher({}, setting.metrics);
  const auto said = support::on_standard_error([&] {
    for (const char* name : {"a", "b"}) batcher.put(setting.work(name, {"fish"}));
    setting.run(batcher);
    setting.model = support::open_served(setting.directory / "model", "model", 2);
    batcher.put(setting.work("c", {"fish"}));
    setting.run(batcher);
  });
  const std::string rest = ": outputs: expected finite numbers, got nan; hint: --precision f32, or damaged weights\n";
  CHECK(said == "error: model: version 1: a" + rest + "error: model: version 2: c" + rest);
}

TEST_CASE("what ends a batch is told once to each of its requests, and those after it are computed") {
  Setting setting;
  Batcher batcher({}, setting.metrics);
  Work bad = setting.work("bad", {"red"});
  bad.queries[0].sequences[0].token_ids[1] = 1'000'000;  // which no dialect lets through
  batcher.put(std::move(bad));
  batcher.put(setting.work("company", {"red", "fish"}));
  setting.run(batcher);
  batcher.put(setting.work("later", {"red"}));
  setting.run(batcher);
  CHECK(setting.order == std::vector<std::string>{"bad", "company", "later"});
  CHECK(setting.outcomes["bad"].status == 500);
  CHECK(setting.outcomes["company"].status == 500);
  CHECK_FALSE(setting.outcomes["bad"].error.empty());
  CHECK(setting.outcomes["company"].error == setting.outcomes["bad"].error);
  CHECK(setting.outcomes["later"].status == 200);
}

TEST_CASE("an answer for which there is no memory becomes 503, and the next request is answered") {
  Setting setting;
  Batcher batcher({}, setting.metrics);
  const auto failing = [&](const std::string& name, int times) {
    Work work = setting.work(name, {"red"});
    work.done = [done = work.done, times](Outcome outcome) mutable {
      if (times-- > 0) throw std::bad_alloc();
      done(std::move(outcome));
    };
    return work;
  };
  batcher.put(failing("bad", 1));
  batcher.put(setting.work("company", {"red"}));
  setting.run(batcher);
  CHECK(setting.outcomes["bad"].status == 503);
  CHECK(setting.outcomes["company"].status == 200);
  batcher.put(failing("never", 9));
  setting.run(batcher);
  batcher.put(setting.work("later", {"red"}));
  setting.run(batcher);
  CHECK(setting.order == std::vector<std::string>{"bad", "company", "later"});
}

TEST_CASE("a request that has failed is not computed further") {
  Setting setting;
  support::spoil_embedding(setting.directory / "model/model.safetensors", 8);  // fish
  setting.model = support::open_served(setting.directory / "model", "model");
  Batcher batcher({.max_tokens = 4}, setting.metrics);
  Work work = setting.work("bad", {"fish fish fish", "red"});  // the first one is computed alone
  work.queries[1].sequences[0].token_ids[1] = 1'000'000;
  batcher.put(std::move(work));
  setting.run(batcher);
  CHECK(setting.order == std::vector<std::string>{"bad"});
  CHECK(setting.outcomes["bad"].error.starts_with("bad: outputs: expected finite numbers"));
}

TEST_CASE("requests are counted as answered with what they asked for or as failed by their status") {
  Setting setting;
  for (int i = 0; i < 5; ++i) setting.metrics.request();
  for (const int status : {200, 299, 300, 429, 429}) setting.metrics.response(status, 0.5);
  setting.metrics.refused(408);
  setting.metrics.dropped(2);
  for (const char* line : {"te_request_count 5", "te_request_success 2", "te_request_failure{err=\"300\"} 1",
                           "te_request_failure{err=\"429\"} 2", "te_request_failure{err=\"408\"} 1",
                           "te_request_dropped 2", "te_request_duration_count 2", "te_request_duration_sum 1"}) {
    CAPTURE(line);
    CHECK(setting.counts(line));
  }
}

TEST_CASE("a model's thread ends when it is told to and nothing waits") {
  Setting setting;
  Batcher batcher({}, setting.metrics);
  std::thread model([&] { batcher.run(); });
  for (int i = 0; i < 20; ++i) batcher.put(setting.work(std::to_string(i), {"red"}));
  batcher.stop();
  model.join();
  CHECK(setting.order.size() == 20);
}

TEST_CASE("histograms count the values up to each bound, which are those of the server from the least to the most") {
  serving::Histogram histogram({1, 2.5});
  for (const double value : {1.0, 1.5, 2.5, 7.0}) histogram.add(value);
  CHECK(histogram.text("h", "") ==
        "# HELP h \n# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_bucket{le=\"2.5\"} 3\nh_bucket{le=\"+Inf\"} 4\nh_sum "
        "12\nh_count 4\n");
  Setting setting;
  setting.metrics.queued(0.002);
  setting.metrics.batch(512, 600, 65536, 40);
  for (const char* line :
       {"te_request_queue_duration_bucket{le=\"0.0001\"} 0", "te_request_queue_duration_bucket{le=\"0.001\"} 0",
        "te_request_queue_duration_bucket{le=\"0.002\"} 1", "te_request_inference_duration_bucket{le=\"20\"} 0",
        "te_request_inference_duration_bucket{le=\"50\"} 1", "te_batch_next_size_bucket{le=\"1\"} 0",
        "te_batch_next_size_bucket{le=\"256\"} 0", "te_batch_next_size_bucket{le=\"512\"} 1",
        "te_batch_next_tokens_bucket{le=\"32768\"} 0", "te_batch_next_tokens_bucket{le=\"65536\"} 1",
        "te_sequences 600", "te_tokens 65536"}) {
    CAPTURE(line);
    CHECK(setting.counts(line));
  }
}
