// The lines of metrics, and what a person sees beside them.
#include "training/run/run_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "io/say.h"

namespace bertrand::training {
namespace {

/// Whether a figure of an evaluation is a number of things.
bool is_count(std::string_view name) {
  return name.ends_with("total") || name.ends_with("_tags") || name.ends_with("queries");
}

}  // namespace

void RunLog::open(const RunState& state, io::Files& files, std::int64_t skipped_steps) {
  if (!self_.first()) return;
  metrics_ = std::make_unique<MetricsLog>(
      settings_.output, LogPosition{.step = state.steps_done, .evaluation_due = state.evaluation_due}, files);
  interval_.losses = state.unlogged;
  interval_.skipped_before = skipped_steps;
  begin_ = Clock::now();
}

void RunLog::step(const StartedStep& step, const StepResult& result, bool losses_are_scaled) {
  if (!self_.first()) return;
  const auto now = Clock::now();
  interval_.seconds += std::chrono::duration<double>(now - std::max(step.begin, last_finish_)).count();
  interval_.examples += static_cast<std::int64_t>(step.examples.numbers.size());
  interval_.tokens += step.tokens;
  last_finish_ = now;
  interval_.losses.add(result.losses);
  ProgressFigures figures{.step = step.number,
                          .total_steps = plan_.total_steps,
                          .loss = result.losses[0].value,
                          .learning_rate = step.learning_rate,
                          .examples_per_second = interval_.per_second(interval_.examples),
                          .tokens_per_second = interval_.per_second(interval_.tokens),
                          .memory_bytes = self_.backend().memory().peak,
                          .skipped_steps = result.loss_scale.skipped_steps - interval_.skipped_before};
  const bool for_people = !settings_.quiet && !settings_.json_lines;
  if (for_people) progress_.update(figures);
  if (step.number % settings_.log_every != 0 && step.number != plan_.total_steps) return;
  const Metrics losses = interval_.losses.means();
  figures.loss = losses[0].value;
  if (for_people) progress_.log(figures);
  LogLine line{.step = step.number, .figures = {{"epoch", step.examples.epochs_after}}};
  Metrics& all = line.figures;
  all.insert(all.end(), losses.begin(), losses.end());
  all.insert(all.end(), {{"grad_norm", result.grad_norm}, {"learning_rate", step.learning_rate}});
  if (losses_are_scaled)
    all.insert(all.end(), {{"loss_scale", result.loss_scale.scale},
                           {"skipped_steps", static_cast<double>(result.loss_scale.skipped_steps)}});
  all.insert(all.end(), {{"examples_per_second", figures.examples_per_second},
                         {"tokens_per_second", figures.tokens_per_second},
                         {"memory_bytes", static_cast<double>(figures.memory_bytes)}});
  write(line, "step");
  interval_ = {.losses = {}, .skipped_before = result.loss_scale.skipped_steps};
}

void RunLog::evaluation(std::int64_t step, double epochs, const Metrics& metrics) {
  if (!self_.first()) return;
  LogLine line{.step = step, .figures = {{"epoch", epochs}}};
  line.figures.insert(line.figures.end(), metrics.begin(), metrics.end());
  std::string text = fmt::format("step {}:", step);
  for (const Metric& metric : metrics) {
    text += fmt::format("  {} {:.{}f}", metric.name, metric.value, is_count(metric.name) ? 0 : 4);
  }
  write(line, "evaluation");
  if (!settings_.json_lines) message(text);
}

/// Into the files, and as JSON to standard output.
void RunLog::write(LogLine line, const char* event) {
  line.seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  metrics_->write(line);
  if (!settings_.quiet) io::say_event(event, json_line(line));
}

void RunLog::samples(std::int64_t step, const Samples& samples) {
  if (self_.first()) metrics_->write(step, samples);
}

void RunLog::histograms(std::int64_t step, const nn::ParameterSet& parameters, const Tensor& gradients) {
  if (!self_.first()) return;
  // f32 is widened on the host: no plan counts a copy on the device.
  const auto values = [](const Tensor& part) {
    if (part.dtype() == DType::f64) return ops::to_host<double>(part);
    const std::vector<float> numbers = ops::to_host<float>(part);
    return std::vector<double>(numbers.begin(), numbers.end());
  };
  for (const nn::ParameterSet::Segment& segment : parameters.segments()) {
    metrics_->events().histogram("weights/" + segment.name, step, values(parameters.master(segment)));
    if (segment.rate > 0)
      metrics_->events().histogram("gradients/" + segment.name, step,
                                   values(gradients.window(segment.begin, segment.shape)));
  }
}

void RunLog::message(const std::string& text) {
  if (!self_.first() || settings_.quiet) return;
  if (settings_.json_lines) io::say(text);
  else progress_.message(text);
}

}  // namespace bertrand::training
