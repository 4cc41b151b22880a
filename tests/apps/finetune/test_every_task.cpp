// What holds for every task: words, answer spans, ranking and choices as for classification.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include "io/safetensors.h"
#include "support/conversation.h"
#include "support/small_choices.h"
#include "support/small_model.h"
#include "support/small_ranking.h"
#include "support/small_squad.h"
#include "support/small_words.h"
#include "support/soon.h"

using support::Outcome;
using support::read_text;
using support::write_text;
namespace fs = std::filesystem;

namespace {

using Flags = std::vector<std::string>;

struct Task {
  std::string name;
  Flags outputs;               ///< files that a run leaves, beside the model
  std::string extension = "";  ///< of its files

  std::string file(const std::string& part) const { return name + "." + part + extension; }
};

const std::vector<Task> kTasks = {
    {"ner", {"eval_results.json", "eval_report.tsv", "predictions.tsv"}},
    {"squad2", {"eval_results.json", "eval_nbest_predictions.json", "predictions.json", "null_odds.json"}},
    {"msmarco", {"eval_results.json", "eval_msmarco_predictions.tsv", "predictions.tsv", "msmarco_predictions.tsv"}},
    {"swag", {"eval_results.json", "eval_report.tsv", "eval_rows.jsonl", "predictions.tsv"}, ".csv"}};

/// A model and the files of every task.
struct Setting {
  support::TemporaryDirectory directory;
  Setting() {
    support::write_small_model(at("model"));
    write_text(at("swag.train.csv"), support::small_choices(30));
    write_text(at("swag.dev.csv"), support::small_choices(13));
    write_text(at("ner.train"), support::small_sentences(30));
    write_text(at("ner.dev"), support::small_sentences(13));
    write_text(at("squad2.train"), support::small_squad(36, true).dump());
    write_text(at("squad2.dev"), support::small_squad(12, true).dump());
    write_text(at("msmarco.train"), support::small_triples());
    write_text(at("msmarco.dev"), support::small_candidates());
    write_text(at("qrels"), support::small_judgements());
  }
  std::string at(const std::string& name) const { return directory / name; }
  std::string file(const std::string& name) const { return read_text(at(name)); }
  /// A run that trains, evaluates and predicts, in four micro-batches a step.
  Flags flags(const Task& task, const std::string& output, const Flags& more) const {
    const std::string dev = at(task.file("dev"));
    Flags all = support::with_defaults({"--task",
                                        task.name,
                                        "--model",
                                        at("model"),
                                        "--train",
                                        at(task.file("train")),
                                        "--eval",
                                        dev,
                                        "--predict",
                                        dev,
                                        "--output",
                                        at(output),
                                        "--max-seq-length",
                                        "16",
                                        "--batch-size",
                                        "8",
                                        "--micro-batch-size",
                                        "2",
                                        "--learning-rate",
                                        "0.01",
                                        "--threads",
                                        "1"},
                                       more);
    if (task.name == "msmarco") all.insert(all.end(), {"--qrels", at("qrels")});
    if (task.name == "msmarco" || task.name == "squad2") all.insert(all.end(), {"--max-query-length", "4"});
    if (task.name == "squad2") all.insert(all.end(), {"--doc-stride", "4"});
    return all;
  }
  Outcome run(const Task& task, const std::string& output, const Flags& more) const {
    Outcome outcome = support::run_program("finetune", flags(task, output, more));
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    return outcome;
  }
  void check_same(const Task& task, const std::string& run, const std::string& expected) const {
    CHECK(file(run + "/model.safetensors") == file(expected + "/model.safetensors"));
    for (const std::string& name : task.outputs) {
      CHECK(!file(expected + "/" + name).empty());
      CHECK_MESSAGE(file(run + "/" + name) == file(expected + "/" + name), name);
    }
  }
};

}  // namespace

TEST_CASE("every task in two processes leaves the files of one") {
  if (!fs::exists(bertrand::paths::binary + "/libbertrand_mpi.so") ||
      std::system("command -v mpirun >/dev/null") != 0) {
    MESSAGE("SKIPPED: there is no MPI");
    return;
  }
  const Setting setting;
  for (const Task& task : kTasks) {
    CAPTURE(task.name);
    setting.run(task, task.name + "1", {"--steps", "12"});
    std::string command =
        "mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2 " + bertrand::paths::binary + "/finetune";
    for (const std::string& flag : setting.flags(task, task.name + "2", {"--steps", "12"}))
      command += " '" + flag + "'";
    const std::string log = setting.at("log");
    REQUIRE_MESSAGE(std::system((command + " >" + log + " 2>&1").c_str()) == 0, read_text(log));
    setting.check_same(task, task.name + "2", task.name + "1");
  }
}

TEST_CASE("a profile of every task names the ops of its network and its loss") {
  const Setting setting;
  for (const Task& task : kTasks) {
    CAPTURE(task.name);
    const Outcome outcome =
        setting.run(task, task.name, {"--steps", "2", "--profile", setting.at(task.name + ".trace.json")});
    const auto trace = nlohmann::json::parse(setting.file(task.name + ".trace.json"));
    for (const std::string name : {"attention", "layer_norm", "cross_entropy"}) {
      CHECK_MESSAGE(outcome.out.find(name) != std::string::npos, name);
      const auto is_of = [&](const auto& event) {
        return event.value("name", std::string()).find(name) != std::string::npos;
      };
      CHECK_MESSAGE(std::ranges::any_of(trace.at("traceEvents"), is_of), name);
    }
  }
}

TEST_CASE("every task that is stopped or killed while it trains is resumed to the same bits") {
  const Setting setting;
  for (const Task& task : kTasks) {
    CAPTURE(task.name);
    const Flags more = {"--steps", "150", "--save-every", "10", "--log-every", "5"};
    setting.run(task, task.name, more);
    for (const int signal : {SIGTERM, SIGKILL}) {
      CAPTURE(signal);
      const std::string output = task.name + std::to_string(signal);
      support::Conversation training("finetune", setting.flags(task, output, more));
      REQUIRE(support::soon([&] { return fs::exists(setting.at(output + "/checkpoint-10")); }));
      training.signal(signal);
      CHECK(training.finish() == (signal == SIGTERM ? 75 : 128 + SIGKILL));
      CHECK_FALSE(fs::exists(setting.at(output + "/checkpoint-150")));
      const Outcome resumed = support::run_program("finetune", {"--resume", "--output", setting.at(output)});
      REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
      CHECK(resumed.out.find("resumed from") != std::string::npos);
      setting.check_same(task, output, task.name);
    }
  }
}

TEST_CASE("every task that is stopped while it evaluates has saved its steps and is resumed to the same bits") {
  const Setting setting;
  write_text(setting.at("ner.many"), support::small_sentences(5'000));
  write_text(setting.at("squad2.many"), support::small_squad(3'000, true).dump());
  std::string candidates;
  for (int i = 0; i < 200; ++i) candidates += support::small_candidates();
  write_text(setting.at("msmarco.many"), candidates);
  write_text(setting.at("swag.many.csv"), support::small_choices(2'000));
  for (const Task& task : kTasks) {
    CAPTURE(task.name);
    const Flags more = {"--steps", "2", "--log-every", "1", "--eval", setting.at(task.file("many"))};
    setting.run(task, task.name, more);
    const std::string output = task.name + "-stopped";
    const auto lines = [&] {
      return fs::exists(setting.at(output + "/metrics.jsonl"))
                 ? support::read_json_lines(setting.at(output + "/metrics.jsonl")).size()
                 : 0;
    };
    support::Conversation training("finetune", setting.flags(task, output, more));
    REQUIRE(support::soon([&] { return lines() >= 2; }));
    training.signal(SIGTERM);
    CHECK(training.finish() == 75);
    CHECK(lines() == 2);  // the evaluation did not come to its end
    CHECK(fs::exists(setting.at(output + "/checkpoint-2")));
    const Outcome resumed = support::run_program("finetune", {"--resume", "--output", setting.at(output)});
    REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
    setting.check_same(task, output, task.name);
  }
}

TEST_CASE("every task keeps its best model though a later evaluation is worse") {
  const Setting setting;
  // What is evaluated contradicts what is learnt, so that evaluations become worse.
  std::string words = setting.file("ner.dev");
  for (std::size_t at = 0; (at = words.find("\tO", at)) != std::string::npos;) words.replace(at, 2, "\tB-B");
  write_text(setting.at("ner.dev"), words);
  auto questions = support::small_squad(12, true);
  for (auto& paragraph : questions.at("data").at(0).at("paragraphs")) {
    auto& question = paragraph.at("qas").at(0);
    question["is_impossible"] = false;
    question["answers"] = {{{"text", paragraph.at("context")}, {"answer_start", 0}}};
  }
  write_text(setting.at("squad2.dev"), questions.dump());
  write_text(setting.at("qrels"), support::small_judgements("p0"));

  for (const auto& [task, figure] : {std::pair(kTasks[0], "loss"), {kTasks[1], "f1"}, {kTasks[2], "loss"}}) {
    CAPTURE(task.name);
    setting.run(
        task, task.name,
        {"--steps", "24", "--eval-every", "2", "--save-every", "2", "--keep", "99", "--metric-for-best-model", figure});
    const auto results = nlohmann::json::parse(setting.file(task.name + "/eval_results.json"));
    const int best = results.at("global_step");
    CHECK(best < 24);
    const std::string name = std::string("eval_") + figure;
    double last = results.at(name);
    for (const auto& line : support::read_json_lines(setting.at(task.name + "/metrics.jsonl")))
      last = line.value(name, last);
    CHECK(last != results.at(name));
    CHECK((last < results.at(name)) == (name == "eval_f1"));
    CHECK(setting.file(task.name + "/model.safetensors") ==
          setting.file(task.name + "/checkpoint-" + std::to_string(best) + "/model.safetensors"));
  }
}

TEST_CASE("the runs of a sweep of every task are those made alone and the best is by the task's figure") {
  const Setting setting;
  for (const auto& [task, figure] : {std::pair(kTasks[0], "f1"), {kTasks[1], "f1"}, {kTasks[2], "mrr_at_10"}}) {
    CAPTURE(task.name);
    const Outcome outcome = setting.run(task, task.name, {"--steps", "48", "--sweep", "layer-decay=1e-6,1"});
    std::string best;
    double highest = -1;
    for (const std::string decay : {"1e-6", "1"}) {  // of words and answers the second one is the best
      const std::string swept = task.name + "/layer-decay=" + decay, alone = task.name + decay;
      setting.run(task, alone, {"--steps", "48", "--layer-decay", decay});
      setting.check_same(task, swept, alone);
      const double score =
          nlohmann::json::parse(setting.file(alone + "/eval_results.json")).at(std::string("eval_") + figure);
      if (score > highest) highest = score, best = swept;
    }
    CHECK(setting.file(task.name + "1e-6/model.safetensors") != setting.file(task.name + "1/model.safetensors"));
    CHECK(outcome.out.find(std::string("best of 2 by ") + figure + ": --layer-decay ") != std::string::npos);
    CHECK(outcome.out.ends_with(": " + setting.at(best) + "\n"));
    CHECK(setting.file(task.name + "/sweep.tsv").find("\tbest\t" + setting.at(best) + "\n") != std::string::npos);
  }
}

TEST_CASE("every task ends when its patience does") {
  const Setting setting;
  for (const Task& task : kTasks) {
    CAPTURE(task.name);
    const Outcome outcome =
        setting.run(task, task.name, {"--steps", "9", "--learning-rate", "0", "--eval-every", "1", "--patience", "2"});
    CHECK(
        outcome.out.find("stopped early: 2 evaluations without a better model (--patience)\nfinished after 3 steps") !=
        std::string::npos);
    CHECK(outcome.out.find("the best model (step 1)") != std::string::npos);
  }
}

TEST_CASE("every task leaves frozen parts as they were and has the same bits on threads and replicas") {
  const Setting setting;
  const auto tensor = [&](const std::string& model, const std::string& name) {
    const bertrand::io::SafetensorsFile tensors(setting.at(model + "/model.safetensors"));
    const auto* const entry = tensors.find("bert." + name);
    REQUIRE(entry);
    return std::string(reinterpret_cast<const char*>(entry->bytes.data()), entry->bytes.size());
  };
  for (const Task& task : kTasks) {
    CAPTURE(task.name);
    const Flags parts = {"--steps", "6", "--freeze", "embeddings", "--layer-decay", "0.5"};
    const Outcome outcome = setting.run(task, task.name, parts);
    CHECK(outcome.out.find("  frozen      embeddings: ") != std::string::npos);
    CHECK(outcome.out.find("  rates       times: head 1, 0 0.5\n") != std::string::npos);
    const std::string frozen = "embeddings.word_embeddings.weight", trained = "encoder.layer.0.output.dense.weight";
    CHECK(tensor(task.name, frozen) == tensor("model", frozen));
    CHECK(tensor(task.name, trained) != tensor("model", trained));
    Flags several = parts;
    several.insert(several.end(), {"--replicas", "2", "--threads", "5"});  // of one, three threads; of the other, two
    setting.run(task, task.name + "2", several);
    setting.check_same(task, task.name + "2", task.name);
  }
}

TEST_CASE("the plan bounds the memory of a process that fine-tunes, evaluates and predicts") {
  const Setting setting;
  for (const Task& task : kTasks) {
    CAPTURE(task.name);
    const Outcome outcome = setting.run(task, task.name, {"--steps", "6", "--eval-every", "1", "--threads", "2"});
    const std::string line = "process     at most ";
    const std::size_t at = outcome.out.find(line);
    REQUIRE(at != std::string::npos);
    const double planned = std::stod(outcome.out.substr(at + line.size())) * 1e6;
    INFO(planned << " and " << outcome.peak_bytes);
    CHECK(static_cast<double>(outcome.peak_bytes) <= planned);
  }
}

TEST_CASE("a prediction that is stopped says so and leaves no lock and no predictions that are not whole") {
  const Setting setting;
  write_text(setting.at("ner.many"), support::small_sentences(20'000, false));
  write_text(setting.at("squad2.many"), support::small_squad(20'000, true).dump());
  std::string candidates;
  for (int i = 0; i < 600; ++i) candidates += support::small_candidates();
  write_text(setting.at("msmarco.many"), candidates);
  write_text(setting.at("swag.many.csv"), support::small_choices(10'000));
  for (const Task& task : kTasks) {
    CAPTURE(task.name);
    const bool streams = task.name == "msmarco";  // and keeps what it has
    setting.run(task, task.name, {"--steps", "2"});
    Flags flags = setting.flags(
        task, "out",
        {"--model", setting.at(task.name), "--predict", setting.at(task.file("many")), "--output", setting.at("out")});
    for (const std::string flag : {"--train", "--eval", "--qrels", "--learning-rate", "--batch-size"})
      if (const auto at = std::ranges::find(flags, flag); at != flags.end()) flags.erase(at, at + 2);
    support::Conversation predicting("finetune", flags);
    REQUIRE(support::soon([&] {
      return streams ? fs::exists(setting.at("out/predictions.partial"))
                     : predicting.line().find("loaded") != std::string::npos;
    }));
    predicting.signal(SIGTERM);
    CHECK(predicting.finish() == 75);
    CHECK_FALSE(fs::exists(setting.at("out/.lock")));
    for (const char* name : {"predictions.tsv", "predictions.json", "msmarco_predictions.tsv"})
      CHECK_FALSE(fs::exists(setting.at("out/" + std::string(name))));
    CHECK(fs::exists(setting.at("out/predictions.partial")) == streams);
    fs::remove_all(setting.at("out"));
  }
}
