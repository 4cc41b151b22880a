// Published settings under a name, from the command line to the plan and to the run.
#include "apps/pretrain/options.h"
#include "apps/pretrain/pretrain_setting.h"
#include "apps/pretrain/recipes.h"
#include "io/error.h"
#include "support/refusal.h"

using namespace bertrand;
using support::Outcome;
using support::PretrainSetting;

namespace {

/// The options of a command, as main() makes them.
pretrain::Options parse(const std::vector<std::string>& flags) {
  pretrain::Options options;
  training::FlagTable table;
  pretrain::add_flags(table, options);
  for (std::size_t i = 0; i < flags.size(); i += 2) table.flag(flags[i]).target.set({flags[i + 1]});
  options.settings.command = flags;
  options.settings.plan_only = true;
  options.init = "model";
  pretrain::complete(options);
  return options;
}

std::string plan_lines(const std::string& out) { return out.substr(std::min(out.size(), out.find("  recipe "))); }

}  // namespace

TEST_CASE("every recipe sets flags that exist to values that they print themselves") {
  for (const training::Recipe& recipe : pretrain::recipes()) {
    CAPTURE(recipe.name);
    pretrain::Options options = parse({"--recipe", recipe.name});
    training::FlagTable table;
    pretrain::add_flags(table, options);
    for (const auto& [flag, value] : recipe.settings) CHECK_MESSAGE(table.flag(flag).target.value() == value, flag);
    for (const auto& [flag, value] : recipe.with) table.flag(flag).target.set({value});
    CHECK(pretrain::recipe_text(options, 128) == "  recipe      " + recipe.name + ", as published\n");
  }
}

TEST_CASE("the recipes are what was published") {
  using optim::Method, optim::Schedule;
  struct Published {
    std::string name;
    Method method;
    Schedule schedule;
    double rate;
    std::int64_t warmup_steps;  // or a part of all steps
    std::optional<double> warmup_ratio;
    std::int64_t batch_size, steps;
    int length, predictions;
  };
  const Published rows[] = {
      // Devlin et al. 2018, A.2, and optimization.py of google-research/bert
      {"google-128", Method::adamw_google, Schedule::google, 1e-4, 10'000, {}, 256, 900'000, 128, 20},
      {"google-512", Method::adamw_google, Schedule::google, 1e-4, 10'000, {}, 256, 100'000, 512, 80},
      // run_pretraining.sh of NVIDIA's PyTorch examples
      {"nvidia-phase1", Method::lamb_decayed, Schedule::polynomial, 6e-3, 0, 0.2843, 65'536, 7038, 128, 20},
      {"nvidia-phase2", Method::lamb_decayed, Schedule::polynomial, 4e-3, 0, 0.128, 32'768, 1563, 512, 80},
      // run_pretraining_lamb_phase1.sh and _phase2.sh of Habana's TensorFlow model
      {"habana-phase1", Method::lamb, Schedule::polynomial, 6e-3, 2000, {}, 65'536, 7038, 128, 20},
      {"habana-phase2", Method::lamb, Schedule::polynomial, 4e-3, 200, {}, 32'768, 1564, 512, 80},
  };
  CHECK(pretrain::recipes().size() == std::size(rows));
  for (const Published& row : rows) {
    CAPTURE(row.name);
    const pretrain::Options recipe = parse({"--recipe", row.name});
    const training::Settings& settings = recipe.settings;
    CHECK(settings.optimizer.method == row.method);
    CHECK(settings.schedule.schedule == row.schedule);
    CHECK(settings.schedule.learning_rate == row.rate);
    CHECK(settings.warmup_ratio == row.warmup_ratio);
    if (!row.warmup_ratio) CHECK(settings.schedule.warmup_steps == row.warmup_steps);
    CHECK(settings.batch_size == row.batch_size);
    CHECK(settings.steps == row.steps);
    CHECK(settings.max_seq_length == row.length);
    CHECK(recipe.masking.max_predictions == row.predictions);
    CHECK(settings.optimizer.beta1 == 0.9);
    CHECK(settings.optimizer.beta2 == 0.999);
    CHECK(settings.optimizer.epsilon == 1e-6);
    CHECK(settings.optimizer.weight_decay == 0.01);
    CHECK(settings.optimizer.clip_norm == 1);
  }
}

TEST_CASE("a second phase that begins without the moments is not called as published if it was published with them") {
  CHECK(pretrain::recipe_text(parse({"--recipe", "nvidia-phase2"}), 512) ==
        "  recipe      nvidia-phase2, but for\n"
        "              --keep-moments true in the recipe, false here\n");
}

TEST_CASE("a flag that a recipe does not set and that was published with another value is named in the plan") {
  const std::pair<std::string, std::string> changes[] = {{"--keep-moments", "false in the recipe, true"},
                                                         {"--masked-lm-prob", "0.15 in the recipe, 0.2"},
                                                         {"--no-next-sentence", "false in the recipe, true"},
                                                         {"--short-seq-prob", "0.1 in the recipe, 0.2"},
                                                         {"--whole-word-mask", "false in the recipe, true"},
                                                         {"--freeze", "none in the recipe, embeddings"},
                                                         {"--layer-decay", "1 in the recipe, 0.9"}};
  for (const std::string recipe : {"google-128", "google-512", "nvidia-phase1", "habana-phase1", "habana-phase2"})
    for (const auto& [flag, values] : changes) {
      const std::string value = values.substr(values.rfind(' ') + 1);
      CHECK(pretrain::recipe_text(parse({"--recipe", recipe, flag, value}), 128) ==
            "  recipe      " + recipe + ", but for\n              " + flag + " " + values + " here\n");
    }
}

TEST_CASE("records that are shorter or longer than those of the recipe are not called as published") {
  const auto plan = [](const std::string& recipe, std::int64_t longest) {
    return pretrain::recipe_text(parse({"--recipe", recipe, "--input", "a.tfrecord"}), longest);
  };
  CHECK(plan("habana-phase2", 512) == "  recipe      habana-phase2, as published\n");
  CHECK(plan("habana-phase2", 128) ==
        "  recipe      habana-phase2, but for\n"
        "              --max-seq-length 512 in the recipe, 128 here\n");
  CHECK(plan("habana-phase1", 512) ==
        "  recipe      habana-phase1, but for\n"
        "              --max-seq-length 128 in the recipe, 512 here\n");
}

TEST_CASE("a flag wins over the recipe and the plan names both values") {
  const pretrain::Options options =
      parse({"--recipe", "nvidia-phase1", "--batch-size", "64", "--epochs", "3", "--learning-rate", "6e-3"});
  CHECK(options.settings.batch_size == 64);
  CHECK(!options.settings.steps);  // --epochs stands for it
  CHECK(options.settings.epochs == 3);
  CHECK(pretrain::recipe_text(options, 128) ==
        "  recipe      nvidia-phase1, but for\n"
        "              --batch-size 65536 in the recipe, 64 here\n"
        "              --steps 7038 in the recipe, --epochs 3 here\n");
  // Another flag with the same number is another setting.
  CHECK(pretrain::recipe_text(parse({"--recipe", "nvidia-phase1", "--epochs", "7038"}), 128) ==
        "  recipe      nvidia-phase1, but for\n"
        "              --steps 7038 in the recipe, --epochs 7038 here\n");
  const pretrain::Options steps = parse({"--recipe", "nvidia-phase1", "--warmup-steps", "5"});
  CHECK(!steps.settings.warmup_ratio);
  CHECK(steps.settings.schedule.warmup_steps == 5);
  CHECK(pretrain::recipe_text(steps, 128).find("--warmup-ratio 0.2843 in the recipe, --warmup-steps 5 here") !=
        std::string::npos);
  const pretrain::Options ratio = parse({"--recipe", "google-128", "--warmup-ratio", "0.25"});
  CHECK(ratio.settings.warmup_ratio == 0.25);
  CHECK(pretrain::recipe_text(ratio, 128).find("--warmup-steps 10000 in the recipe, --warmup-ratio 0.25 here") !=
        std::string::npos);
}

TEST_CASE("the rates of NVIDIA's recipe are those of its scheduler when the warm-up is no whole number of steps") {
  const PretrainSetting setting;
  const Outcome outcome =
      setting.run("run", {"--recipe", "nvidia-phase1", "--steps", "10", "--learning-rate", "0.006"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  const auto metrics = setting.metrics("run");
  REQUIRE(metrics.size() == 10);
  for (int step = 1; step <= 10; ++step) {
    const double p = step / 10.0;
    CHECK(metrics[static_cast<std::size_t>(step - 1)].at("learning_rate").get<double>() ==
          doctest::Approx(p < 0.2843 ? 0.006 * p / 0.2843 : 0.006 * std::sqrt(1 - p)).epsilon(1e-12));
  }
}

TEST_CASE("an unknown recipe is refused with the nearest name") {
  CHECK(support::refusal(Failure::usage,
                         [] {
                           parse({"--recipe", "nvidia-phase3"});
                         })
            .starts_with("--recipe: expected one of google-128, google-512, nvidia-phase1, nvidia-phase2, "
                         "habana-phase1, habana-phase2, got \"nvidia-phase3\"; did you mean nvidia-phase"));
  // Before what else is missing.
  CHECK(support::run_program("pretrain", {"--recipe", "foo"}).error.starts_with("error: --recipe: expected one of "));
}

TEST_CASE("--list-recipes needs no other flag") {
  const Outcome outcome = support::run_program("pretrain", {"--list-recipes"});
  CHECK(outcome.code == 0);
  for (const training::Recipe& recipe : pretrain::recipes())
    CHECK(outcome.out.find(recipe.name + "\n  ") != std::string::npos);
  CHECK(outcome.out.find("--batch-size 65536") != std::string::npos);
}

TEST_CASE("a run of a recipe is resumed with its output alone") {
  const PretrainSetting setting;
  const Outcome begun = setting.run("run", {"--recipe", "habana-phase1", "--steps", "3"});
  REQUIRE_MESSAGE(begun.code == 0, begun.error);
  CHECK(
      plan_lines(begun.out).starts_with("  recipe      habana-phase1, but for\n"
                                        "              --learning-rate 0.006 in the recipe, 0.003 here\n"));
  const Outcome resumed =
      support::run_program("pretrain", {"--output", setting.directory / "run", "--resume", "--steps", "4"});
  REQUIRE_MESSAGE(resumed.code == 0, resumed.error);
  CHECK(resumed.out.find("recipe      habana-phase1") != std::string::npos);
  CHECK(resumed.out.find("step 4/4") != std::string::npos);
}

TEST_CASE("a batch is learnt for 100 steps whatever the recipe has") {
  const PretrainSetting setting;
  const Outcome outcome = setting.run("run", {"--recipe", "google-128", "--overfit-batch", "--max-seq-length", "24"});
  CHECK_MESSAGE(outcome.out.find("100 steps of the first batch") != std::string::npos, outcome.out);
}
