#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "support/small_finetuning.h"

using support::read_text;
using support::run_program;
using support::write_text;

namespace {

struct Setting : support::SmallFinetuning {
  Setting() : SmallFinetuning(24) {}
  support::Outcome run(const std::string& output, const std::vector<std::string>& flags) const {
    return finetune(output,
                    support::with_defaults({"--train", directory / "train.csv", "--eval", directory / "train.csv",
                                            "--epochs", "2", "--log-every", "1", "--learning-rate", "0.01"},
                                           flags));
  }
};

nlohmann::json numbers_of(const std::filesystem::path& page) {
  const std::string text = read_text(page), begin = "type=\"application/json\">";
  const std::size_t from = text.find(begin);
  REQUIRE(from != std::string::npos);
  return nlohmann::json::parse(text.substr(from + begin.size(), text.find("</script>", from) - from - begin.size()));
}

}  // namespace

TEST_CASE("a run ends with a page that has its texts, its curves and its time") {
  const Setting setting;
  const auto outcome = setting.run("run", {"--profile", setting.directory / "trace.json"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out.find("report: " + (setting.directory / "run/report.html").string()) != std::string::npos);
  const auto run = numbers_of(setting.directory / "run/report.html").at("runs").at(0);
  CHECK(run.at("program") == "finetune");
  CHECK(run.at("machine").contains("host"));
  CHECK(run.at("curves").at("loss").at("x").size() == 2);
  CHECK(run.at("evaluation").at("rows") == 24);
  CHECK(run.at("evaluation").at("uncertain").at(0).at("text").get<std::string>().size() > 3);
  CHECK(run.at("results").at(0).at("interval").size() == 2);
  CHECK(run.at("profile").at("ops").size() > 5);
  CHECK(run.at("notes").empty());
}

TEST_CASE("a run that diverged has a page too, and ends with its own error") {
  const Setting setting;
  const std::vector<std::string> flags = {"--learning-rate", "1e6", "--weight-decay", "1e6",
                                          "--epochs",        "20",  "--eval-every",   "1000"};
  const auto outcome = setting.run("run", flags);
  CHECK(outcome.code == 6);
  CHECK(outcome.error.find("report") == std::string::npos);
  CHECK(numbers_of(setting.directory / "run/report.html").at("runs").at(0).at("program") == "finetune");
  // There is no checkpoint yet, and a page is no result that a new beginning would replace.
  const auto again = run_program("finetune", {"--resume", "--output", setting.directory / "run"});
  CHECK_MESSAGE(again.code == 6, again.error);
}

TEST_CASE("report lays several runs over each other, and refuses what is no run") {
  const Setting setting;
  REQUIRE(setting.run("a", {}).code == 0);
  REQUIRE(setting.run("b", {"--seed", "7"}).code == 0);
  const std::string a = setting.directory / "a", b = setting.directory / "b", page = setting.directory / "page.html";
  const auto outcome = run_program("report", {a, b, "--output", page});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out == page + "\n");
  CHECK(numbers_of(page).at("runs").size() == 2);
  CHECK(numbers_of(page).at("runs").at(1).at("name") == "b");
  const auto nothing = run_program("report", {a, setting.directory / "none"});
  CHECK(nothing.code == 2);
  CHECK(nothing.error.find("none: expected the directory of a run, got nothing there") != std::string::npos);
  const auto model = run_program("report", {setting.directory / "model"});
  CHECK(model.code == 2);
  CHECK(model.error.find("expected run_config.json, metrics.jsonl or eval_results.json") != std::string::npos);
  const auto parent = run_program("report", {setting.directory / "."});
  CHECK(parent.code == 2);
  CHECK(parent.error.ends_with("; hint: report " + (setting.directory / "./*/").string() +
                               " lays the runs in it over each other\n"));
  const auto folder = run_program("report", {a, "--output", b});
  CHECK(folder.code == 2);
  CHECK(folder.error == "error: --output: expected a file, got the directory " + b + "\n");
}

TEST_CASE("no program writes over what a run wrote, but its pages") {
  const Setting setting;
  REQUIRE(setting.run("a", {}).code == 0);
  const std::string a = setting.directory / "a", model = setting.directory / "model",
                    texts = setting.directory / "texts", vocabulary = model + "/vocab.txt",
                    checkpoint = "checkpoint-2/model.safetensors";
  write_text(texts, "one text\n");
  std::filesystem::create_symlink(a + "/model.safetensors", setting.directory / "link");
  const auto refused = [&](const char* program, std::vector<std::string> words, const std::string& file) {
    const std::string before = std::filesystem::exists(file) ? read_text(file) : "";
    words.insert(words.end(), {"--output", file});
    const auto outcome = run_program(program, words);
    CHECK(outcome.code == 2);
    CHECK(outcome.error == "error: --output: expected a name that no run writes to, got " + file + "\n");
    CHECK((std::filesystem::exists(file) ? read_text(file) : "") == before);
  };
  REQUIRE(std::filesystem::exists(a + "/" + checkpoint));
  refused("report", {a}, a + "/metrics.jsonl");
  refused("extract", {"--model", model, "--input", texts}, a + "/run_config.json");
  refused("predict", {"--model", model, "--task", "classify", "--input", texts}, a + "/" + checkpoint);
  refused("predict", {"--model", model, "--task", "classify", "--input", texts}, setting.directory / "link");
  refused("predict", {"--model", model, "--task", "classify", "--input", texts},
          a + "/predictions.tsv");  // is not there
  refused("prepare", {"vocab", "--input", texts}, a + "/vocab.txt");
  refused("prepare", {"records", "--input", texts, "--vocab-file", vocabulary}, a + "/model.safetensors");
  refused("prepare", {"squad", "--input", texts, "--vocab-file", vocabulary}, a + "/config.json");
  CHECK(run_program("report", {a, "--output", a + "/report.html"}).code == 0);
  std::filesystem::remove(a + "/run_config.json");  // so that nothing says that it is a run
  for (const std::string& file : {model + "/vocab.txt", a + "/metrics.jsonl"}) {
    const std::string before = read_text(file);
    const auto outcome = run_program("report", {a, "--explain", texts, "--model", model, "--output", file});
    CHECK(outcome.code == 2);
    CHECK(outcome.error == "error: --output: expected another file than the input, got " + file + "\n");
    CHECK(read_text(file) == before);
  }
}

TEST_CASE("report explains a model with texts, and its rows with a map") {
  const Setting setting;
  REQUIRE(setting.run("run", {}).code == 0);
  const std::string run = setting.directory / "run", texts = setting.directory / "texts.txt";
  write_text(texts, "the red fishs .\n\none \xff<b>bird</b>\tgreen bird\n\xff\xfe\n \t\n");
  const auto outcome = run_program("report", {run, "--explain", texts});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(outcome.out == run + "/explain.html\n");
  CHECK(std::filesystem::file_size(run + "/explain.html") < 2'000'000);
  const auto explain = numbers_of(run + "/explain.html").at("explain");
  CHECK(explain.at("texts").size() == 2);
  CHECK(explain.at("texts").at(0).at("tokens") == nlohmann::json({"[CLS]", "the", "red", "fish", "##s", ".", "[SEP]"}));
  CHECK(explain.at("texts").at(0).at("outputs").size() == 2);
  CHECK(explain.at("map").at("label").size() == 24);
  CHECK(explain.at("map").at("near").at(0).size() == 5);
  const auto rows = run_program("report", {run, "--explain", texts, "--projector", setting.directory / "projector"});
  REQUIRE_MESSAGE(rows.code == 0, rows.error);
  CHECK(read_text(setting.directory / "projector/projector_config.pbtxt").find("\"embeddings.tsv\"") !=
        std::string::npos);
  const auto lines = [&](const std::string& name) {
    const std::string text = read_text(setting.directory / ("projector/" + name));
    return std::count(text.begin(), text.end(), '\n');
  };
  CHECK(lines("embeddings.tsv") == 24);
  std::istringstream vectors(read_text(setting.directory / "projector/embeddings.tsv"));
  for (std::string row; std::getline(vectors, row);) CHECK(std::ranges::count(row, '\t') == 15);  // a vector of 16
  CHECK(lines("metadata.tsv") == 25);  // with a line of names
  // A model without a run: its own texts are the map, if there are enough of them.
  write_text(texts, "red fish ||| green\ngreen bird\nblue bird\n");
  const std::string page = setting.directory / "page.html";
  const auto model =
      run_program("report", {"--model", setting.directory / "model", "--explain", texts, "--output", page});
  REQUIRE_MESSAGE(model.code == 0, model.error);
  const auto first = numbers_of(page).at("explain").at("texts").at(0);
  CHECK(first.at("outputs").empty());
  CHECK(first.at("tokens") == nlohmann::json({"[CLS]", "red", "fish", "[SEP]", "green", "[SEP]"}));
  CHECK(numbers_of(page).at("explain").at("map").at("x").size() == 3);
}

TEST_CASE("report explains a model with the words of --vocab-file, with or without capitals") {
  const Setting setting;
  const std::string model = setting.directory / "model", texts = setting.directory / "texts.txt",
                    words = setting.directory / "words", page = setting.directory / "page.html";
  for (const char* name : {"/tokenizer.json", "/tokenizer_config.json"}) std::filesystem::remove(model + name);
  std::filesystem::rename(model + "/vocab.txt", words);
  write_text(texts, "Red fish\n");
  const auto report = [&](const std::vector<std::string>& more) {
    return run_program("report",
                       support::with_defaults({"--model", model, "--explain", texts, "--output", page}, more));
  };
  const auto none = report({});
  CHECK(none.code == 4);
  CHECK(none.error.ends_with("; hint: --vocab-file names one elsewhere\n"));
  const auto tokens = [&] { return numbers_of(page).at("explain").at("texts").at(0).at("tokens"); };
  REQUIRE(report({"--vocab-file", words}).code == 0);
  CHECK(tokens() == nlohmann::json({"[CLS]", "red", "fish", "[SEP]"}));
  REQUIRE(report({"--vocab-file", words, "--cased"}).code == 0);
  CHECK(tokens() == nlohmann::json({"[CLS]", "[UNK]", "fish", "[SEP]"}));
  const auto alone = report({"--cased"});
  CHECK(alone.code == 2);
  CHECK(alone.error.starts_with("error: --cased: expected with --vocab-file, got "));
  const auto onto = report({"--vocab-file", words, "--output", words});
  CHECK(onto.code == 2);
  CHECK(onto.error == "error: --output: expected another file than the input, got " + words + "\n");
}

TEST_CASE("report says what it lacks to explain a model") {
  const Setting setting;
  const std::string texts = setting.directory / "texts.txt", model = setting.directory / "model";
  write_text(texts, "\n \n");
  const auto refused = [](const std::vector<std::string>& arguments, int code, const std::string& why) {
    const auto outcome = run_program("report", arguments);
    CHECK(outcome.code == code);
    CHECK_MESSAGE(outcome.error.find(why) != std::string::npos, outcome.error);
  };
  refused({}, 2, "RUN: expected the directory of a run, got none");
  refused({"--explain", texts}, 2, "RUN: expected the directory of a run or --model, got none");
  refused({"--model", model}, 2, "--model: expected with --explain, got no --explain");
  refused({model, "--vocab-file", model + "/vocab.txt"}, 2, "--vocab-file: expected with --explain, got no --explain");
  refused({model, "--cased"}, 2, "--cased: expected with --explain, got no --explain");
  refused({model, "--projector", "p"}, 2, "--projector: expected with --explain, got no --explain");
  refused({"--model", model, "--explain", texts, "--output", setting.directory / "page"}, 3,
          "texts.txt: expected a text in each line, got none");
  refused({"--model", model, "--explain", texts, "--output", texts}, 2, "texts.txt");
  refused({"--model", model, "--explain", texts, "--projector", texts}, 2,
          "--projector: expected a directory, got the file");
  refused({"--model", model, "--explain", "rows.csv"}, 2,
          "--explain: rows.csv: expected plain text, a text in each line, got .csv; hint: cut out the column");
}
