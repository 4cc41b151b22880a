// Pre-training step by step against figures of transformers and torch in f64.
#include <doctest/doctest.h>

#include "support/golden_trajectory.h"

namespace trajectory = support::trajectory;

TEST_CASE("pre-training on Google's records in file order gives PyTorch's losses, rates, norms and weights") {
  if (!std::filesystem::exists(trajectory::kGolden)) {
    MESSAGE("SKIPPED: " << trajectory::kGolden.string() << " is not there");
    return;
  }
  const support::TemporaryDirectory directory;
  const support::Outcome outcome = trajectory::run(directory / "run", {});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.error);
  trajectory::check_steps(directory / "run/metrics.jsonl", 2e-6, 1e-5);
  const trajectory::Difference f32 = trajectory::weight_difference(directory / "run/model.safetensors");
  CHECK(f32.mean <= 3e-7);
  CHECK(f32.worst <= 3e-5);

  const support::Outcome parts = trajectory::run(directory / "parts", {"--micro-batch-size", "6"});
  REQUIRE_MESSAGE(parts.code == 0, parts.error);
  trajectory::check_steps(directory / "parts/metrics.jsonl", 2e-6, 1e-5);

  const support::Outcome precise = trajectory::run(directory / "f64", {"--precision", "f64"});
  REQUIRE_MESSAGE(precise.code == 0, precise.error);
  trajectory::check_steps(directory / "f64/metrics.jsonl", 1e-9, 1e-9);
  const trajectory::Difference f64 = trajectory::weight_difference(directory / "f64/model.safetensors");
  CHECK(f64.worst <= 2e-7);
}
