// An objective whose memory can be counted by hand, and plans of it.
#pragma once
#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "distributed/replica.h"
#include "nn/layers.h"
#include "tensor/backends.h"
#include "training/run/plan.h"

namespace support {

/// 10 examples an epoch, example i of the first of i + 1 tokens unless told otherwise; every second epoch has two more.
/// A token is a thousand points of four numbers. Evaluation takes twelve numbers for a point of `evaluated` tokens.
struct Counted : bertrand::training::Objective {
  bertrand::Backend* backend = nullptr;
  std::int64_t count = 10;
  bertrand::nn::Module root;
  bertrand::nn::Linear linear{{&root, "linear"}, {.in_features = 4, .out_features = 3}};
  bertrand::training::StepExamples step;
  std::function<std::int64_t(std::int64_t example)> length = [](std::int64_t example) { return example + 1; };
  std::int64_t more = 2;  // examples in every second epoch
  std::int64_t evaluated = 0, last_epoch = 0;
  std::size_t of_step_example = 0, outputs = 0;  // bytes

  bertrand::nn::Module& model() override { return root; }
  std::int64_t examples(std::int64_t epoch) override {
    last_epoch = std::max(last_epoch, epoch);
    return count + more * (epoch % 2);
  }
  std::int64_t begin_step(const bertrand::training::StepExamples& examples,
                          const bertrand::distributed::Share&) override {
    step = examples;
    return 0;
  }
  std::vector<bertrand::training::LossPart> loss(std::int64_t first, std::int64_t number, std::uint64_t) override {
    bertrand::Dim points = 0;
    for (std::int64_t i = first; i < first + number; ++i)
      points += 1000 * length(step.numbers[static_cast<std::size_t>(i)]);
    const bertrand::DType type = linear.weight.value().dtype();
    const bertrand::Variable y = linear(bertrand::Variable(bertrand::ops::full({points, 4}, 1, type, *backend)));
    return {{"loss", mse(y, bertrand::ops::full({points, 3}, 0, type, *backend), 1)}};
  }
  bertrand::training::Metrics evaluate() override {
    if (evaluated > 0) bertrand::ops::full({1000 * evaluated, 12}, 1, bertrand::DType::f32, *backend);
    return {};
  }
  std::optional<double> score(const bertrand::training::Metrics&) const override { return std::nullopt; }
  std::unique_ptr<bertrand::training::Objective> largest(const bertrand::distributed::Replica& self,
                                                         std::int64_t number) const override {
    std::vector<std::int64_t> lengths;
    for (std::int64_t i = 0; i < count + more; ++i) lengths.push_back(length(i));
    std::ranges::sort(lengths, std::greater());
    auto largest = std::make_unique<Counted>();
    largest->backend = &self.backend();
    largest->count = std::min(number, count + more);
    largest->more = 0;
    largest->length = [lengths](std::int64_t example) { return lengths[static_cast<std::size_t>(example)]; };
    largest->evaluated = evaluated;
    return largest;
  }
  std::size_t data_bytes() const override { return 5'000'000; }
  std::size_t bytes_of_steps(std::int64_t examples) const override {
    return of_step_example * static_cast<std::size_t>(examples);
  }
  std::size_t bytes_of_outputs() const override { return outputs; }
  std::int64_t tokens(std::int64_t epoch, std::int64_t example) const override { return length(example) + 9 * epoch; }
};

inline bertrand::training::Settings settings_of(std::int64_t batch, std::int64_t micro_batch) {
  bertrand::training::Settings settings = bertrand::training::pretraining_defaults();
  settings.batch_size = batch;
  settings.micro_batch_size = micro_batch;
  settings.shuffle = false;
  settings.steps = 4;
  settings.schedule.warmup_steps = 0;  // as complete() leaves it
  return settings;
}

/// One of several replicas, each in a process of its own on one host.
struct OneOfMany : bertrand::distributed::SoloCollective {
  OneOfMany(bertrand::Backend& backend, int replicas) : SoloCollective(backend), count(replicas) {}
  int size() const override { return count; }
  int processes_on_this_host() const override { return count; }
  int count;
};
inline bertrand::distributed::Replica one_of(int replicas, bertrand::Backend& backend) {
  return {backend, std::make_unique<OneOfMany>(backend, replicas)};
}

inline bertrand::training::Plan plan_of(const bertrand::training::Settings& settings, std::int64_t count = 10) {
  Counted objective;
  objective.count = count;
  const auto backend = bertrand::open_cpu({.threads = 1});
  return bertrand::training::make_plan(settings, objective, bertrand::distributed::Replica(*backend));
}

}  // namespace support
