#include <doctest/doctest.h>

#include "support/small_model.h"

using support::read_text;
using support::run_program;
using support::write_text;

namespace {

/// A model and a file to learn; `flags` come last.
struct Setting {
  support::TemporaryDirectory directory;
  Setting() {
    support::write_small_model(directory / "model");
    write_text(directory / "train.csv", support::animals(24));
  }
  support::Outcome finetune(const std::string& output, const std::vector<std::string>& flags) const {
    return run_program("finetune", support::with_defaults({"--task",           "custom",
                                                           "--label-column",   "kind",
                                                           "--max-seq-length", "16",
                                                           "--model",          directory / "model",
                                                           "--train",          directory / "train.csv",
                                                           "--eval",           directory / "train.csv",
                                                           "--epochs",         "2",
                                                           "--threads",        "1",
                                                           "--log-every",      "1",
                                                           "--learning-rate",  "0.01",
                                                           "--output",         directory / output},
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
  const auto outcome = setting.finetune("run", {"--profile", setting.directory / "trace.json"});
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
  const auto outcome = setting.finetune("run", flags);
  CHECK(outcome.code == 6);
  CHECK(outcome.error.find("report") == std::string::npos);
  CHECK(numbers_of(setting.directory / "run/report.html").at("runs").at(0).at("program") == "finetune");
  // There is no checkpoint yet, and a page is no result that a new beginning would replace.
  const auto again = run_program("finetune", {"--resume", "--output", setting.directory / "run"});
  CHECK_MESSAGE(again.code == 6, again.error);
}

TEST_CASE("report lays several runs over each other, and refuses what is no run") {
  const Setting setting;
  REQUIRE(setting.finetune("a", {}).code == 0);
  REQUIRE(setting.finetune("b", {"--seed", "7"}).code == 0);
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
}
