#include <doctest/doctest.h>

#include "bert/network/golden_pretraining.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

using namespace bertrand;
using golden::Case;
using golden::check_outputs;
using golden::cpu;
using golden::kFolders;
using golden::Loaded;
using golden::targets_of;

namespace {

struct Named {
  const char* name;
  optim::Method method;
};
const Named kOptimizers[] = {{"adamw-google", optim::Method::adamw_google},
                             {"adamw", optim::Method::adamw},
                             {"lamb", optim::Method::lamb},
                             {"lamb-decayed", optim::Method::lamb_decayed}};

optim::Schedule schedule_of(const std::string& name) {
  if (name == "google") return optim::Schedule::google;
  if (name == "linear") return optim::Schedule::linear;
  REQUIRE(name == "constant");
  return optim::Schedule::constant;
}

/// PyTorch's "constant" run has no warm-up.
optim::ScheduleOptions schedule_options(const nlohmann::json& run) {
  const optim::Schedule schedule = schedule_of(run["schedule"]);
  return {.schedule = schedule,
          .learning_rate = run["learning_rate"],
          .warmup_steps = schedule == optim::Schedule::constant ? 0 : run["warmup_steps"].get<std::int64_t>(),
          .total_steps = run["total_steps"]};
}

void check_steps(const Case& golden, const Named& optimizer_name) {
  const std::string name = optimizer_name.name;
  const nlohmann::json& run = golden.info["optimizers"][name];
  Loaded loaded(golden, DType::f64);
  optim::Optimizer optimizer(loaded.parameters, {.method = optimizer_name.method,
                                                 .epsilon = run["epsilon"],
                                                 .weight_decay = run["weight_decay"],
                                                 .clip_norm = run["clip_norm"]});
  const optim::ScheduleOptions schedule = schedule_options(run);
  const bert::PackedBatch batch = golden.batch();
  const auto targets = targets_of(golden, batch);
  for (std::int64_t step = 0; step < 6; ++step) {
    const nlohmann::json& expected = run["steps"][static_cast<std::size_t>(step)];
    loaded.parameters.zero_gradients();
    const auto result = loaded.model(batch, targets, {}, bert::ForPretraining::Keep::losses);
    const Variable loss = add(result.masked_lm_loss, result.next_sentence_loss);
    CHECK(std::abs(ops::item(loss.value()) - expected["loss"].get<double>()) <= 1e-9);
    backward(loss);
    loaded.parameters.complete_gradients();
    const double rate = optim::learning_rate(schedule, step);
    CHECK(std::abs(rate - expected["learning_rate"].get<double>()) <= 1e-15);
    CHECK(std::abs(optimizer.step(rate) - expected["grad_norm"].get<double>()) <= 1e-9);
    if (step == 1) CHECK(golden.value_difference(loaded.parameters, name + ".after2.") <= 1e-9);
    if (step == 5) CHECK(golden.value_difference(loaded.parameters, name + ".after6.") <= 1e-9);
  }
}

}  // namespace

TEST_CASE("pre-training outputs equal PyTorch's") {
  for (const char* folder : kFolders) {
    if (!golden::present(folder)) return;
    CAPTURE(folder);
    const Case golden(folder);
    check_outputs(golden, DType::f64, 1e-10);
    check_outputs(golden, DType::f32, 2e-5);
  }
}

TEST_CASE("pre-training in half types stays near PyTorch's in f64, outputs and gradients") {
  for (const char* folder : kFolders) {
    if (!golden::present(folder)) return;
    CAPTURE(folder);
    const Case golden(folder);
    golden::check_half_types(golden);
  }
}

TEST_CASE("every gradient of pre-training equals PyTorch's") {
  for (const char* folder : kFolders) {
    if (!golden::present(folder)) return;
    CAPTURE(folder);
    const Case golden(folder);
    Loaded loaded(golden, DType::f64);
    const bert::PackedBatch batch = golden.batch();
    const auto result = loaded.model(batch, targets_of(golden, batch), {}, bert::ForPretraining::Keep::losses);
    backward(add(result.masked_lm_loss, result.next_sentence_loss));
    loaded.parameters.complete_gradients();
    CHECK(golden.gradient_difference(loaded.parameters) <= 1e-9);
    const double norm = ops::item(ops::norm(loaded.parameters.gradients()));
    CHECK(std::abs(norm - golden.info["grad_norm"].get<double>()) <= 1e-9);
  }
}

TEST_CASE("masked words alone have PyTorch's loss, and their gradients are those beside next sentences") {
  for (const char* folder : kFolders) {
    if (!golden::present(folder)) return;
    CAPTURE(folder);
    const Case golden(folder);
    Loaded loaded(golden, DType::f64);
    const bert::PackedBatch batch = golden.batch();
    const bert::ForPretraining::Targets pairs = targets_of(golden, batch);
    bert::ForPretraining::Targets words = pairs;
    words.next_sentence = {};
    const auto alone = loaded.model(batch, words, {}, bert::ForPretraining::Keep::logits);
    CHECK(std::abs(ops::item(alone.masked_lm_loss.value()) - golden.info["masked_lm_loss"].get<double>()) <= 1e-10);
    CHECK(golden.difference(alone.masked_lm_logits.value(), "masked_lm_logits") <= 1e-10);
    CHECK_FALSE(alone.next_sentence_loss);
    CHECK_FALSE(alone.next_sentence_logits);
    // PyTorch's gradients are of both losses.
    backward(alone.masked_lm_loss);
    backward(loaded.model(batch, pairs, {}, bert::ForPretraining::Keep::losses).next_sentence_loss);
    loaded.parameters.complete_gradients();
    CHECK(golden.gradient_difference(loaded.parameters) <= 1e-9);
  }
}

TEST_CASE("six steps of four optimizers move the parameters as PyTorch's do") {
  for (const char* folder : kFolders) {
    if (!golden::present(folder)) return;
    const Case golden(folder);
    for (const Named& optimizer : kOptimizers) {
      CAPTURE(folder);
      CAPTURE(optimizer.name);
      check_steps(golden, optimizer);
    }
  }
}
