// docs/coming_from.md promises that its commands run. They do, in its order, on small data and with fewer steps.
#include <doctest/doctest.h>

#include <regex>
#include <sstream>

#include "support/small_model.h"

using support::read_text;
using support::write_text;
namespace fs = std::filesystem;

namespace {

/// The commands in the blocks of the page.
std::vector<std::string> commands() {
  std::vector<std::string> all;
  std::istringstream page(read_text(bertrand::paths::source + "/docs/coming_from.md"));
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("```")) inside = !inside;
    else if (inside && !line.empty()) all.push_back(line);
  }
  return all;
}

/// What is too large for a test, or not there, made small: shapes, lengths, devices, batches.
std::string made_small(std::string command) {
  const std::pair<const char*, const char*> changes[] = {
      {"--config (base|large)", "--config tiny"},
      {"--device cuda:0\\S*", "--replicas 2"},
      {"--steps \\d+", "--steps 2"},
      {"--epochs \\d+", "--epochs 1"},
      {"epochs=3,4", "epochs=1"},
      {"learning-rate=5e-5,4e-5,3e-5,2e-5", "learning-rate=5e-5,4e-5"},
      {"batch-size=16,32", "batch-size=4"},
      {"--batch-size \\d+", "--batch-size 4"},
      {"--micro-batch-size \\d+", "--micro-batch-size 2"},
      {"--warmup-steps \\d+", "--warmup-steps 1"},
      {"--recipe (\\S+)", "--recipe $1 --steps 2 --batch-size 4 --max-seq-length 32"},
      {"--max-seq-length (384|512)", "--max-seq-length 96"},
      {"--doc-stride 128", "--doc-stride 16"},
      {"--max-query-length 64", "--max-query-length 16"},
      {"--eval-every 50", "--eval-every 1"},
      {"^export ", "env export "},  // the shell has a command of this name
      {"mpirun -n 2", "mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2"}};
  for (const auto& [from, to] : changes) command = std::regex_replace(command, std::regex(from), to);
  // Replicas and processes share micro-batches; other commands take the default.
  if (command.find("finetune") != std::string::npos && command.find("--task squad") != std::string::npos &&
      command.find("--max-seq-length") == std::string::npos)
    command += " --max-seq-length 96";
  return command;
}

/// The files that the page names.
void write_files(const support::TemporaryDirectory& directory) {
  const auto write = [&](const std::string& name, const std::string& text) {
    fs::create_directories((directory / name).parent_path());
    write_text(directory / name, text);
  };
  support::write_small_model(directory / "bert-base", 4, 512);
  write("vocab.txt", support::kSmallVocabulary);
  std::string corpus, mrpc = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n", papers, unlabelled = "id\ttext\n",
                      qqp = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n", sst2 = "sentence\tlabel\n",
                      stsb = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n";
  std::string words, rows, triples, candidates, qrels, topics = "text\tlabels\n", reviews = "text\tlabel\n";
  const std::string animals[] = {"fish", "bird"};
  for (int i = 0; i < 8; ++i) {
    const std::string &one = animals[i % 2], &other = animals[i / 2 % 2], label = std::to_string(i % 2);
    const std::string n = std::to_string(i);
    corpus += "the red " + one + " .\none green " + other + " .\ntwo blue " + one + "s .\n\n";
    mrpc += label + "\t1\t2\tthe " + one + "\tone " + other + "\n";
    papers += n + "\t" + label + "\ta\tthe red " + one + "\n";
    unlabelled += n + "\tthe red " + one + "\n";
    qqp += n + "\t1\t2\tthe " + one + "\ttwo " + other + "\t" + label + "\n";
    sst2 += "the red " + one + "\t" + label + "\n";
    stsb += n + "\tg\tf\ty\t1\ts\ts\tthe " + one + "\tone " + other + "\t" + n + ".5\n";
    words += "the\tO\nred\tB-LOC\n" + one + "\tI-LOC\n\n";
    rows += "the red " + one + "\tO O PERIOD\n";
    triples += "the " + one + "\tred " + one + "\tred " + other + "\n";
    candidates += n + "\tp1\tthe " + one + "\tred " + one + "\n" + n + "\tp2\tthe " + one + "\ttwo " + other + "\n";
    qrels += n + "\t0\tp1\t1\n";
    reviews += "the " + one + "\t" + one + "\n";
    topics += "the " + one + "\t" + one + ",red\n";
  }
  write("corpus.txt", corpus);
  for (const std::string name : {"MRPC/train.tsv", "MRPC/dev.tsv"}) write(name, mrpc);
  for (const std::string name : {"QQP/train.tsv", "QQP/dev.tsv"}) write(name, qqp);
  for (const std::string name : {"SST-2/train.tsv", "SST-2/dev.tsv"}) write(name, sst2);
  for (const std::string name : {"STS-B/train.tsv", "STS-B/dev.tsv"}) write(name, stsb);
  for (const std::string name : {"papers/train.tsv", "papers/dev.tsv"}) write(name, papers);
  for (const std::string name : {"ner/train.conll", "ner/dev.conll"}) write(name, words);
  for (const std::string name : {"PUNCT/train.tsv", "PUNCT/dev.tsv"}) write(name, rows);
  write("papers/test.tsv", unlabelled);
  write("triples.train.tsv", triples);
  write("top1000.dev.tsv", candidates);
  write("qrels.dev.tsv", qrels);
  write("reviews.tsv", reviews);
  write("topics.tsv", topics);
  for (const std::string name : {"lines.txt", "reviews.txt"}) write(name, "the red fish\ntwo birds\n");
  write("masked.txt", "the [MASK] fish\n");
  write("questions.jsonl", R"({"question": "the fish", "context": "the red fish . two birds"})"
                           "\n");
  write("tags.conll", "red B-LOC B-LOC\nfish I-LOC O\n");
  const std::string answer = R"("answers": [{"text": "red fish", "answer_start": 4}])";
  const auto squad = [&](const std::string& more) {
    return R"({"version": "x", "data": [{"title": "t", "paragraphs": [{"context": "the red fish . two birds", "qas": [)"
           R"({"id": "1", "question": "the fish", )" +
           answer + more + "}]}]}]}";
  };
  for (const std::string name : {"squad/train-v1.1.json", "squad/dev-v1.1.json"}) write(name, squad(""));
  for (const std::string name : {"squad/train-v2.0.json", "squad/dev-v2.0.json"})
    write(name, squad(R"(, "is_impossible": false)"));
}

}  // namespace

TEST_CASE("the commands of the page for those who come from other projects run") {
  const support::TemporaryDirectory directory;
  write_files(directory);
  const std::vector<std::string> all = commands();
  REQUIRE(all.size() > 30);
  for (const std::string& command : all) {
    const std::string small = made_small(command);
    const std::string log = directory / "log";
    const int status = std::system(("cd " + (directory / "").string() + " && PATH=" + bertrand::paths::binary +
                                    ":$PATH OMP_NUM_THREADS=1 " + small + " >" + log + " 2>&1")
                                       .c_str());
    CHECK_MESSAGE(status == 0, small, "\n", read_text(log));
  }
}
