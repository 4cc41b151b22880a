// Passage ranking as a user runs it: triples to train on, candidates to rank, and a long prediction that is stopped.
#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

#include "io/tfrecord.h"
#include "support/small_model.h"
#include "support/small_ranking.h"

using support::Outcome;
using support::read_text;
using support::run_program;
using support::write_text;

namespace {

using Flags = std::vector<std::string>;

struct Setting {
  support::TemporaryDirectory directory;
  Setting() {
    support::write_small_model(directory / "model");
    write_text(at("triples.tsv"), support::small_triples());
    write_text(at("candidates.tsv"), support::small_candidates());
    write_text(at("qrels.tsv"), support::small_judgements() + "77\t0\tp2\t1\n");
  }
  std::string at(const std::string& name) const { return directory / name; }
  std::string file(const std::string& name) const { return read_text(at(name)); }
  Outcome run(const Flags& more) const {
    return run_program("finetune",
                       support::with_defaults({"--task", "msmarco", "--model", at("model"), "--output", at("run"),
                                               "--max-seq-length", "16", "--max-query-length", "8", "--threads", "1"},
                                              more));
  }
  Outcome train(const Flags& more) const {
    return run(support::with_defaults({"--train", at("triples.tsv"), "--eval", at("candidates.tsv"), "--qrels",
                                       at("qrels.tsv"), "--predict", at("candidates.tsv"), "--epochs", "5",
                                       "--learning-rate", "0.01", "--batch-size", "8", "--micro-batch-size", "2"},
                                      more));
  }
  /// Predicts with the model that was trained, in parts of 16 and 14.
  Outcome apply(const std::string& output, const Flags& more) const {
    return run(support::with_defaults(
        {"--model", at("run"), "--predict", at("candidates.tsv"), "--micro-batch-size", "1", "--output", at(output)},
        more));
  }
  /// What a run leaves that is killed after its first part of 16 examples and while it writes the second one. The first
  /// score is not the model's, so that the result shows that the part was taken and not computed. `failing` is what is
  /// left of a run that could not write its results.
  std::string stopped_in_second_part(const std::string& failing) const {
    bertrand::io::RecordReader reader(at(failing + "/predictions.partial"));
    std::string identity, first, second, kept;
    REQUIRE(reader.next(identity));
    REQUIRE(reader.next(first));
    REQUIRE(reader.next(second));
    CHECK(first.size() == 16 * 2 * sizeof(float));
    CHECK(second.size() == 14 * 2 * sizeof(float));
    first[2] = static_cast<char>(first[2] ^ 0x20);
    bertrand::io::append_record(kept, identity);
    bertrand::io::append_record(kept, first);
    return kept + "torn";
  }
  /// Makes `output` what a run leaves that predicts and is killed in its second part.
  void stop(const std::string& output) const {
    std::filesystem::create_directories(at("failing/predictions.tsv/x"));
    write_text(at("failing/predictions.partial"), "");  // stopped before the first part was done
    CHECK(apply("failing", {"--resume"}).code == 5);
    std::filesystem::create_directories(at(output));
    write_text(at(output + "/predictions.partial"), stopped_in_second_part("failing"));
  }
};

/// All but the second line.
std::string other_lines(const std::string& text) {
  const std::size_t first = text.find('\n');
  return text.substr(0, first) + text.substr(text.find('\n', first + 1));
}

}  // namespace

TEST_CASE("a model that learnt triples ranks the passage that answers first and its files agree with the scorer") {
  const Setting setting;
  const Outcome outcome = setting.train({});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.error ==
        "warning: " + setting.at("qrels.tsv") +
            ": queries without a relevant passage, which score 0: 1 of 10\nwarning: " + setting.at("qrels.tsv") +
            ": queries with relevant passages that are not in the run and do not count: 1\n");
  const auto results = nlohmann::json::parse(setting.file("run/eval_results.json"));
  CHECK(results.at("eval_mrr_at_10") == 0.9);  // the tenth query has no relevant passage
  const auto config = nlohmann::json::parse(setting.file("run/config.json"));
  CHECK(config.at("id2label") == nlohmann::json({{"0", "not_relevant"}, {"1", "relevant"}}));

  const Outcome scored = run_program("evaluate", {"ranking", "--json", "--qrels", setting.at("qrels.tsv"), "--run",
                                                  setting.at("run/eval_msmarco_predictions.tsv")});
  const auto scores = nlohmann::json::parse(scored.out);
  for (const char* name : {"map", "rprec", "mrr", "mrr_at_10", "ndcg"})
    CHECK(scores.at(name) == results.at(std::string("eval_") + name));

  CHECK(setting.file("run/msmarco_predictions.tsv") == setting.file("run/eval_msmarco_predictions.tsv"));
  CHECK(setting.file("run/msmarco_predictions.tsv").starts_with("0\tp2\t1\n"));
  std::istringstream predictions(setting.file("run/predictions.tsv"));
  std::string line;
  std::getline(predictions, line);
  CHECK(line == "query_id\tpassage_id\tscore");
  double loss = 0;
  for (int i = 0; i < 30; ++i) {
    std::string query, passage;
    double score = 0;
    predictions >> query >> passage >> score;
    CHECK(query == std::to_string(i % 10));
    CHECK(passage == "p" + std::to_string(i / 10));
    const bool relevant = passage == "p2" && query != "9";
    loss -= relevant ? score : std::log1p(-std::exp(score));
  }
  CHECK(results.at("eval_loss").get<double>() == doctest::Approx(loss / 30).epsilon(1e-4));
  CHECK_FALSE(std::filesystem::exists(setting.at("run/predictions.partial")));
}

TEST_CASE("a model of one label becomes a ranker of one output whose probability predict gives") {
  const Setting setting;
  auto config = nlohmann::json::parse(setting.file("model/config.json"));
  config["id2label"] = {{"0", "LABEL_0"}};
  config.erase("label2id");
  write_text(setting.at("model/config.json"), config.dump());
  const Outcome outcome = setting.train({});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(nlohmann::json::parse(setting.file("run/eval_results.json")).at("eval_mrr_at_10") == 0.9);
  config = nlohmann::json::parse(setting.file("run/config.json"));
  CHECK(config.at("id2label") == nlohmann::json({{"0", "relevant"}}));
  CHECK(config.at("problem_type") == "multi_label_classification");

  REQUIRE(setting.apply("again", {}).code == 0);
  CHECK(setting.file("again/predictions.tsv") == setting.file("run/predictions.tsv"));
  std::string requests;
  std::istringstream candidates(setting.file("candidates.tsv"));
  for (std::string id, query, passage; std::getline(std::getline(candidates, id, '\t'), id, '\t') &&
                                       std::getline(candidates, query, '\t') && std::getline(candidates, passage);)
    requests += nlohmann::json({{"text", query}, {"text_pair", passage}}).dump() + "\n";
  write_text(setting.at("requests.jsonl"), requests);
  const Outcome asked =
      run_program("predict", {"--model", setting.at("run"), "--input", setting.at("requests.jsonl"), "--threads", "1"});
  REQUIRE_MESSAGE(asked.code == 0, asked.error);
  std::istringstream answers(asked.out), predictions(setting.file("run/predictions.tsv"));
  std::string answer, line;
  std::getline(predictions, line);  // the names of the columns
  int count = 0;
  for (; std::getline(answers, answer) && std::getline(predictions, line); ++count)
    CHECK(std::log(nlohmann::json::parse(answer).at("scores").at("relevant").get<double>()) ==
          doctest::Approx(std::stod(line.substr(line.rfind('\t')))).epsilon(1e-4));
  CHECK(count == 30);
}

TEST_CASE("ranking on several replicas and threads leaves the files of one byte for byte") {
  const Setting setting;
  REQUIRE(setting.train({}).code == 0);
  for (const std::string replicas : {"2", "3"}) {
    // The replicas share the threads unevenly, and one of them at least has several.
    const Flags several = {"--output", setting.at("run" + replicas), "--replicas", replicas, "--threads", "5"};
    REQUIRE(setting.train(several).code == 0);
    for (const std::string name :
         {"model.safetensors", "eval_results.json", "predictions.tsv", "msmarco_predictions.tsv"})
      CHECK_MESSAGE(setting.file("run" + replicas + "/" + name) == setting.file("run/" + name), name);
  }
}

TEST_CASE("a prediction that was stopped goes on where it was and leaves the files of one that was not") {
  const Setting setting;
  REQUIRE(setting.train({}).code == 0);
  REQUIRE(setting.apply("whole", {}).code == 0);
  const std::string whole = setting.file("whole/predictions.tsv");
  CHECK(whole == setting.file("run/predictions.tsv"));
  setting.stop("stopped");
  const Outcome resumed = setting.apply("stopped", {"--resume"});
  REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
  const std::string result = setting.file("stopped/predictions.tsv");
  CHECK(result != whole);
  CHECK(other_lines(result) == other_lines(whole));
  CHECK_FALSE(std::filesystem::exists(setting.at("stopped/predictions.partial")));

  const Outcome finished = setting.apply("stopped", {"--resume"});
  CHECK(finished.code == 2);
  CHECK(finished.error.find("--resume: expected a prediction that was stopped, got predictions.tsv") !=
        std::string::npos);
  CHECK(setting.file("stopped/predictions.tsv") == result);
}

TEST_CASE("a prediction that was stopped does not go on with another vocabulary, other added tokens or another file") {
  const Setting setting;
  REQUIRE(setting.train({}).code == 0);
  setting.stop("stopped");
  const auto refusal = [&](const Flags& more) {
    const Outcome outcome = setting.apply("stopped", more);
    CHECK(outcome.code == 2);
    return outcome.error;
  };
  const std::string refused = "error: " + setting.at("stopped/predictions.partial") +
                              ": --resume: expected outputs of this model, file and these lengths, got those of "
                              "another prediction; hint: remove that file, or name another --output\n";
  std::string other_words = support::kSmallVocabulary;
  other_words.replace(other_words.find("one\ntwo"), 7, "two\none");
  write_text(setting.at("vocab.txt"), other_words);
  CHECK(refusal({"--resume", "--vocab-file", setting.at("vocab.txt")}).ends_with(refused));
  write_text(setting.at("run/added_tokens.json"), R"({"one": 10})");
  CHECK(refusal({"--resume"}) == refused);
  std::filesystem::remove(setting.at("run/added_tokens.json"));
  write_text(setting.at("candidates.tsv"), setting.file("candidates.tsv") + "5\tp9\ttwo bird\tone bird\n");
  CHECK(refusal({"--resume"}) == refused);
}

TEST_CASE("a prediction after training that was stopped goes on with the run and is made anew after more training") {
  const Setting setting;
  const Flags flags = {"--train", setting.at("triples.tsv"), "--predict", setting.at("candidates.tsv"), "--batch-size",
                       "8",       "--micro-batch-size",      "1"};
  const auto train = [&](const Flags& more) { return setting.run(support::with_defaults(flags, more)); };
  REQUIRE(train({"--steps", "3"}).code == 0);
  const std::string whole = setting.file("run/predictions.tsv"), model = setting.file("run/model.safetensors");
  std::filesystem::remove(setting.at("run/predictions.tsv"));
  std::filesystem::create_directories(setting.at("run/predictions.tsv/x"));
  CHECK(train({"--steps", "3", "--resume"}).code == 5);
  const std::string kept = setting.stopped_in_second_part("run");
  std::filesystem::remove_all(setting.at("run/predictions.tsv"));

  write_text(setting.at("run/predictions.partial"), kept);
  const Outcome resumed = train({"--steps", "3", "--resume"});
  REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
  CHECK(setting.file("run/predictions.tsv") != whole);
  CHECK(other_lines(setting.file("run/predictions.tsv")) == other_lines(whole));

  write_text(setting.at("run/predictions.partial"), kept);
  const Outcome longer = train({"--steps", "5", "--resume"});
  REQUIRE_MESSAGE(longer.code == 0, longer.error);
  CHECK(setting.file("run/model.safetensors") != model);
  REQUIRE(setting.apply("applied", {}).code == 0);
  CHECK(setting.file("run/predictions.tsv") == setting.file("applied/predictions.tsv"));
  CHECK_FALSE(std::filesystem::exists(setting.at("run/predictions.partial")));
}

TEST_CASE("a candidate whose outputs are not finite is named by its place in the file") {
  const Setting setting;
  REQUIRE(setting.train({}).code == 0);
  support::spoil_embedding(setting.at("run/model.safetensors"), 5);  // of red, which the candidates have from 20 on
  for (const std::string replicas : {"1", "2"}) {
    const Outcome outcome =
        setting.run({"--model", setting.at("run"), "--predict", setting.at("candidates.tsv"), "--output",
                     setting.at("out" + replicas), "--micro-batch-size", "1", "--replicas", replicas});
    CHECK(outcome.code == 6);
    CHECK(outcome.error.starts_with("error: example 20: classifier: expected finite outputs, got nan"));
  }
}

TEST_CASE("a ranker names its outputs itself whatever the model before it was for") {
  const Setting setting;
  auto config = nlohmann::json::parse(setting.file("model/config.json"));
  config["id2label"] = {{"0", "entailment"}, {"1", "not_entailment"}};
  config["label2id"] = {{"entailment", 0}, {"not_entailment", 1}};
  write_text(setting.at("model/config.json"), config.dump());
  REQUIRE(setting.train({}).code == 0);
  CHECK(nlohmann::json::parse(setting.file("run/config.json")).at("id2label") ==
        nlohmann::json({{"0", "not_relevant"}, {"1", "relevant"}}));
  config = nlohmann::json::parse(setting.file("run/config.json"));
  config["problem_type"] = "multi_label_classification";
  write_text(setting.at("run/config.json"), config.dump());
  const Outcome outcome = setting.run(
      {"--model", setting.at("run"), "--predict", setting.at("candidates.tsv"), "--output", setting.at("other")});
  CHECK(outcome.code == 4);
  CHECK(outcome.error.find("problem_type: expected single_label_classification for --task msmarco") !=
        std::string::npos);
}

TEST_CASE("a classifier of three labels is refused without training, and with it gets the head of the task") {
  const Setting setting;
  write_text(setting.at("three.tsv"), "text\tkind\nred\tr\ngreen\tg\nblue\tb\n");
  REQUIRE(run_program("finetune", {"--task", "custom", "--text-column", "text", "--label-column", "kind", "--model",
                                   setting.at("model"), "--train", setting.at("three.tsv"), "--output",
                                   setting.at("three"), "--epochs", "1", "--threads", "1"})
              .code == 0);
  const Outcome refused = setting.run({"--model", setting.at("three"), "--predict", setting.at("candidates.tsv")});
  CHECK(refused.code == 4);
  CHECK(refused.error ==
        "error: " + setting.at("three/config.json") +
            ": id2label: expected 1 or 2 labels for --task msmarco, got {b,g,r}; hint: --train makes another "
            "model of it\n");
  const Outcome trained = setting.train({"--model", setting.at("three"), "--epochs", "1"});
  REQUIRE_MESSAGE(trained.code == 0, trained.error);
  CHECK(trained.out.find("classifier.weight: expected [2, 16] (the task), got [3, 16]") != std::string::npos);
}

TEST_CASE("a candidate that comes again for its query is named in a warning") {
  const Setting setting;
  write_text(setting.at("candidates.tsv"), setting.file("candidates.tsv") + "3\tp2\ttwo bird\tred bird\n");
  const Outcome outcome = setting.train({});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  const std::string warning =
      "warning: " + setting.at("candidates.tsv") +
      ": passages that come again for their query: 1, the first p2 of query 3; ndcg counts each of them, as metrics.py "
      "does\n";
  CHECK(outcome.error.starts_with(warning + warning));  // of --eval and --predict
}

TEST_CASE("ranking is learnt in half types and takes the memory that the plan says") {
  const Setting setting;
  for (const std::string precision : {"f32", "bf16", "f16"}) {
    CAPTURE(precision);
    const Outcome outcome =
        setting.train({"--precision", precision, "--log-every", "1", "--eval-every", "6", "--overwrite"});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    CHECK(nlohmann::json::parse(setting.file("run/eval_results.json")).at("eval_mrr_at_10") == 0.9);
    const double planned = std::stod(outcome.out.substr(outcome.out.find("memory      ") + 12)) * 1e3;
    double most = 0;
    for (const auto& line : support::read_json_lines(setting.at("run/metrics.jsonl")))
      most = std::max(most, line.value("memory_bytes", 0.0));
    CHECK(most > 0.5 * planned);
    CHECK(most <= 1.01 * planned);
  }
}

TEST_CASE("flags of ranking that do not fit are refused") {
  const Setting setting;
  CHECK(setting.run({"--eval", setting.at("candidates.tsv")}).error ==
        "error: --qrels: expected together with --eval, got --eval alone\n");
  CHECK(setting.run({"--train", setting.at("triples.tsv"), "--qrels", setting.at("qrels.tsv")}).error ==
        "error: --qrels: expected together with --eval, got --qrels alone\n");
  CHECK(setting.run({"--train", setting.at("triples.tsv"), "--max-query-length", "15"}).error ==
        "error: --max-seq-length: expected at least --max-query-length + 2 = 17, got 16\n");
  write_text(setting.at("triples.tsv"), "the fish\tred fish\t\n");
  const Outcome empty = setting.run({"--train", setting.at("triples.tsv")});
  CHECK(empty.code == 3);
  CHECK(empty.error == "error: " + setting.at("triples.tsv") +
                           ":1: column 3: expected query, relevant passage and other passage with a text each, got an "
                           "empty one\n");
}
