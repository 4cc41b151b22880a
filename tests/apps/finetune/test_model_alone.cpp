// A sweep whose runs keep their model alone is resumed as one whose runs keep checkpoints.
#include <doctest/doctest.h>

#include "apps/finetune/span_setting.h"
#include "support/small_finetuning.h"

using support::Outcome;
using support::read_text;
using support::write_text;

namespace {

using Flags = std::vector<std::string>;

const Flags kSweep = {"--sweep", "seed=1,2", "--save-model-only"};

Flags joined(Flags flags, const Flags& more) {
  flags.insert(flags.end(), more.begin(), more.end());
  return flags;
}

struct Setting : support::SmallFinetuning {
  Setting() : SmallFinetuning(30) {}
  Outcome sweep(const Flags& more) const { return train(joined(kSweep, more)); }
};

/// Those of a sweep of squad2 that is evaluated on these questions, and is resumed with nothing left to do.
struct Tables {
  std::string first, resumed;
};
Tables tables_of(const support::SpanSetting& setting, const nlohmann::json& questions) {
  write_text(setting.at("questions.json"), questions.dump());
  const auto table = [&](const std::string& how) {
    const Outcome outcome =
        setting.run("run", joined(kSweep, {"--eval", setting.at("questions.json"), "--steps", "2", how}));
    REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
    return setting.file("run/sweep.tsv");
  };
  std::string first = table("--overwrite");
  return {.first = std::move(first), .resumed = table("--resume")};
}

}  // namespace

TEST_CASE("the predictions that runs of a sweep with their model alone have not made are made by --resume") {
  const Setting setting;
  const Flags predict = {"--predict", setting.at("dev.csv")};
  const std::string file = setting.at("run/seed=1/predictions.tsv");
  REQUIRE(setting.sweep(predict).code == 0);
  const std::string predictions = read_text(file), model = read_text(setting.at("run/seed=1/model.safetensors"));
  REQUIRE(predictions != "");
  std::filesystem::remove(file);  // as if the run had been killed before it wrote them
  const Outcome outcome = setting.sweep(joined(predict, {"--resume"}));
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  CHECK(read_text(file) == predictions);
  CHECK(read_text(setting.at("run/seed=1/model.safetensors")) == model);
}

TEST_CASE("a sweep takes no run with its model alone of other settings or other data for its own") {
  const Setting setting;
  REQUIRE(setting.sweep({}).code == 0);
  const std::string table = read_text(setting.at("run/sweep.tsv"));
  const auto refuses = [&](const Flags& flags, const std::string& difference) {
    const Outcome outcome = setting.sweep(joined(flags, {"--resume"}));
    CHECK(outcome.code == 2);
    CHECK_MESSAGE(outcome.error.starts_with("error: --resume: expected the settings and files of " +
                                            setting.at("run/seed=1") + ", got others: " + difference + "; hint: "),
                  outcome.error);
    CHECK(outcome.out.empty());
    CHECK(read_text(setting.at("run/sweep.tsv")) == table);
  };
  refuses({"--learning-rate", "0.5"}, "--learning-rate was 5e-05, now 0.5");
  for (const std::string name : {"train.csv", "dev.csv"}) {
    const std::string rows = read_text(setting.at(name));
    write_text(setting.at(name), rows + "\"one, red fishs.\",fish\n");
    refuses({}, setting.at(name) + " has other contents than " + setting.at(name) + " had");
    write_text(setting.at(name), rows);
  }
}

TEST_CASE("a sweep with models alone whose questions all have an answer, or all have none, is resumed") {
  const support::SpanSetting setting;
  for (const bool answered : {true, false}) {
    CAPTURE(answered);
    nlohmann::json questions = support::small_squad(12, true);
    nlohmann::json& paragraphs = questions.at("data").at(0).at("paragraphs");
    nlohmann::json chosen = nlohmann::json::array();
    for (const nlohmann::json& paragraph : paragraphs)
      if (paragraph.at("qas").at(0).at("is_impossible") != answered) chosen.push_back(paragraph);
    paragraphs = chosen;
    const Tables tables = tables_of(setting, questions);
    CHECK((tables.first.find("\teval_has_answer_f1\t") != std::string::npos) == answered);
    CHECK((tables.first.find("\teval_no_answer_f1\t") == std::string::npos) == answered);
    CHECK(tables.resumed == tables.first);
  }
}

TEST_CASE("the table of a sweep with models alone has every column also after a resume") {
  const Tables tables = tables_of(support::SpanSetting(), support::small_squad(12, true));
  CHECK(tables.first.find("\teval_has_answer_total\t") != std::string::npos);  // a count, by which nothing is judged
  CHECK(tables.resumed == tables.first);
}
