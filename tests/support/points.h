// A user's own module, which has nothing of BERT, and runs that train it.
#pragma once
#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "distributed/replica.h"
#include "nn/layers.h"
#include "support/program.h"
#include "tensor/random.h"
#include "training/run/run_training.h"

namespace support {

struct Classifier : bertrand::nn::Module {
  Classifier()
      : hidden(in("hidden"), {.in_features = 2, .out_features = 8, .initializer_range = 1.0}),
        output(in("output"), {.in_features = 8, .out_features = 2, .initializer_range = 0.3}) {}
  bertrand::Variable operator()(const bertrand::Variable& x) const { return output(tanh(hidden(x))); }

  bertrand::nn::Linear hidden;  // [8, 2]
  bertrand::nn::Linear output;  // [2, 8]
};

/// Which points of a square lie inside a circle.
class Points : public bertrand::training::Objective {
 public:
  static constexpr bertrand::Dim kPoints = 64;

  explicit Points(const bertrand::distributed::Replica& self) : backend_(self.backend()) {
    bertrand::Random random(7);
    for (bertrand::Dim i = 0; i < kPoints; ++i) {
      const double x = 2 * random.uniform() - 1, y = 2 * random.uniform() - 1;
      points_.push_back({static_cast<float>(x), static_cast<float>(y)});
      inside_.push_back(x * x + y * y < 0.5 ? 1 : 0);
    }
  }

  bertrand::nn::Module& model() override { return model_; }
  std::int64_t examples(std::int64_t) override { return kPoints; }
  std::int64_t begin_step(const bertrand::training::StepExamples& step, const bertrand::distributed::Share&) override {
    step_ = step;
    return static_cast<std::int64_t>(step.numbers.size());
  }
  std::vector<bertrand::training::LossPart> loss(std::int64_t first, std::int64_t count, std::uint64_t) override {
    std::vector<float> points;
    std::vector<std::int32_t> labels;
    for (std::int64_t i = first; i < first + count; ++i) {
      const auto number = static_cast<std::size_t>(step_.numbers[static_cast<std::size_t>(i)]);
      points.insert(points.end(), points_[number].begin(), points_[number].end());
      labels.push_back(inside_[number]);
    }
    const bertrand::Variable logits =
        model_(bertrand::Variable(bertrand::ops::from_host(points, {count, 2}, backend_)));
    return {{"loss", bertrand::softmax_cross_entropy(logits, bertrand::ops::from_host(labels, {count}, backend_),
                                                     static_cast<double>(step_.numbers.size()))}};
  }
  bertrand::training::Metrics evaluate() override { return {}; }
  std::optional<double> score(const bertrand::training::Metrics&) const override { return std::nullopt; }
  std::unique_ptr<bertrand::training::Objective> largest(const bertrand::distributed::Replica& self,
                                                         std::int64_t) const override {
    return std::make_unique<Points>(self);
  }
  std::size_t data_bytes() const override { return kPoints * 12; }
  std::int64_t tokens(std::int64_t, std::int64_t) const override { return 1; }

 protected:
  bertrand::Backend& backend_;

 private:
  std::vector<std::array<float, 2>> points_;
  std::vector<std::int32_t> inside_;
  Classifier model_;
  bertrand::training::StepExamples step_;
};

/// Something happens while the run makes its 15th step.
struct WatchedPoints : Points {
  using Points::Points;
  inline static std::function<void()> at_step_15;
  int steps = 0;
  std::int64_t begin_step(const bertrand::training::StepExamples& step,
                          const bertrand::distributed::Share& share) override {
    if (++steps == 15) at_step_15();
    return Points::begin_step(step, share);
  }
};

struct PointsRun {
  TemporaryDirectory directory;

  bertrand::training::Settings settings(const std::string& output) const {
    bertrand::training::Settings settings = bertrand::training::finetuning_defaults();
    settings.output = directory / output;
    settings.threads = 1;
    settings.batch_size = 16;
    settings.micro_batch_size = 4;
    settings.epochs = 10;  // 40 steps
    settings.schedule.learning_rate = 0.05;
    return settings;
  }

  /// Trains as these settings say. `afterwards` runs on every replica.
  template <class Problem = Points>
  static void train(bertrand::training::Settings settings,
                    const std::function<void(const bertrand::training::TrainedReplica&)>& afterwards = {},
                    const std::vector<std::filesystem::path>& files = {}) {
    bertrand::training::complete(settings);
    bertrand::training::run_training(
        {.settings = settings,
         .program = "points",
         .files = files,
         .program_files = {.model = {"points.txt"}, .results = {}, .pages = {}},
         .read = [](bertrand::distributed::Collective*) { return bertrand::training::RunIdentity{}; },
         .make_objective = [](const bertrand::distributed::Replica& self) { return std::make_unique<Problem>(self); },
         .afterwards_name = "afterwards",
         .afterwards = afterwards});
  }

  std::string file(const std::string& name) const { return read_text(directory / name); }
  std::vector<nlohmann::json> metrics(const std::string& output) const { return steady_metrics(directory / output); }
};

}  // namespace support
