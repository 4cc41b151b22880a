#include "training/run/trainer.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "distributed/exchange.h"
#include "io/signals.h"
#include "io/units.h"
#include "optim/schedule.h"
#include "tensor/profiler.h"
#include "training/report/metrics_log.h"
#include "training/report/progress.h"
#include "training/report/results.h"
#include "training/run/checkpoint.h"
#include "training/run/published_model.h"
#include "training/step/step.h"

namespace bertrand::training {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Steps since the last line of metrics, for rates that leave out evaluating and saving.
struct Interval {
  double seconds = 0;
  std::int64_t examples = 0, tokens = 0;

  void add(const StartedStep& step, double step_seconds) {
    seconds += step_seconds;
    examples += static_cast<std::int64_t>(step.examples.numbers.size());
    tokens += step.tokens;
  }
  double examples_per_second() const { return seconds > 0 ? static_cast<double>(examples) / seconds : 0; }
  double tokens_per_second() const { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }
};

/// A step that the device may still be computing, and what the host knows of it.
struct StepUnderWay {
  StartedStep step;
  double epoch = 0, learning_rate = 0;
  Clock::time_point begin;
};

}  // namespace

/// A run that has its directory and its memory.
class Trainer::Run {
 public:
  Run(const Job& job, const Plan& plan, nn::ParameterSet& parameters)
      : job_(job),
        settings_(job.settings),
        plan_(plan),
        parameters_(parameters),
        store_(settings_.output),
        published_(settings_.output, job.objective, parameters),
        optimizer_(parameters, settings_.optimizer),
        stepper_({job.objective, parameters, optimizer_, job.self},
                 {.seed = settings_.seed, .micro_batch_size = plan.micro_batch_size}) {}

  /// Goes back to the newest checkpoint that verifies, if there is one.
  bool resume();
  /// Puts all replicas where the first one stands.
  void share_beginning();
  /// Throws Error(Failure::io) where not even one checkpoint has room: better now than at the first save.
  void check_space();
  void write_run_config() const;
  void train();
  /// work(), in which a failure of another replica is told with where this one is and the last checkpoint.
  void with_standing(const std::string& where, const std::function<void()>& work);

 private:
  void make_steps();
  [[noreturn]] void refuse_memory(const std::string& what);
  void step();
  void finish_step();
  StepExamples next_examples();
  void move_on(std::size_t examples);
  void log_step(const StepUnderWay& step, const StepResult& result);
  void evaluate();
  void save();
  void write_checkpoint();
  void finish();
  /// From now on a failure of another replica is told with where this one is, and from where the run can go on.
  void set_standing(const std::string& where);
  /// Whether any replica was asked to stop: a decision that all take together.
  bool stop_agreed() const { return distributed::any(job_.self, io::stop_requested()); }
  double epoch() const;
  /// Of the newest checkpoint.
  std::string checkpoint_directory() const {
    return (settings_.output / fmt::format("checkpoint-{}", saved_step_)).string();
  }
  bool due(std::int64_t step, std::int64_t every) const { return step % every == 0 || step == plan_.total_steps; }

  const Job& job_;
  const Settings& settings_;
  const Plan& plan_;
  nn::ParameterSet& parameters_;
  io::Files& files_ = io::Files::system();
  CheckpointStore store_;
  PublishedModel published_;
  optim::Optimizer optimizer_;
  Stepper stepper_;
  std::unique_ptr<MetricsLog> log_;
  Progress progress_;
  RunState state_;
  std::int64_t saved_step_ = 0;  // of the newest checkpoint that is wholly there
  std::int64_t ordered_epoch_ = -1;
  std::vector<std::int64_t> order_;  // of the examples of ordered_epoch_
  std::optional<StepUnderWay> under_way_;
  std::string before_failure_, after_failure_;
  Clock::time_point last_finish_;
  Interval interval_;
  const Clock::time_point begin_ = Clock::now();
};

bool Trainer::Run::resume() {
  store_.remove_leftovers();
  std::vector<std::string> skipped;
  const auto found = store_.newest(skipped);
  for (const std::string& reason : skipped) fmt::print(stderr, "warning: {}; skipped\n", reason);
  if (!found && !skipped.empty())
    fail(Failure::model, "{}: checkpoints: expected one that verifies, got none of {}", settings_.output.string(),
         skipped.size());
  if (!found) {
    progress_.message(fmt::format("no checkpoint in {}: beginning with step 1", settings_.output.string()));
    return false;
  }
  state_ = restore_checkpoint(found->directory, {job_.objective, parameters_, optimizer_}, job_.conditions);
  saved_step_ = found->step;
  // As where a later one was published before the run was killed, and this one, on another device, does not get there.
  if (const std::string fault = published_.fault(state_.best);
      !fault.empty() && state_.steps_done < plan_.total_steps && !published_.is_in_checkpoint(state_.best)) {
    fmt::print(stderr, "warning: {}; the next evaluation decides anew\n", fault);
    state_.best = {};
  }
  progress_.message(fmt::format("resumed from {}", found->directory.string()));
  return true;
}

void Trainer::Run::check_space() {
  if (settings_.overwrite) return;  // a run that goes makes room
  if (state_.steps_done >= plan_.total_steps) return;
  const Training training{job_.objective, parameters_, optimizer_};
  training::check_space(settings_.output, checkpoint_bytes(training));
}

void Trainer::Run::write_run_config() const {
  nlohmann::ordered_json json{{"program", job_.program},
                              {"version", BERTRAND_VERSION},
                              {"command", settings_.command},
                              {"device", job_.self.backend().description()},
                              {"replicas", job_.self.size()}};
  nlohmann::ordered_json& settings = json["settings"];
  for (const auto& [flag, value] : job_.conditions.settings)
    settings[flag.substr(2)] =
        nlohmann::ordered_json::accept(value) ? nlohmann::ordered_json::parse(value) : nlohmann::ordered_json(value);
  settings["precision"] = settings_.precision_name();
  settings["output"] = settings_.output.string();
  settings["device"] = settings_.device;
  settings["replicas"] = settings_.replicas;
  settings["cpu-kernels"] = settings_.cpu_kernels;
  settings["collective-timeout"] = settings_.collective_timeout;
  settings["measured-products"] = settings_.measured_products;
  settings["log-every"] = settings_.log_every;
  settings["save-every"] = settings_.save_every;
  settings["keep"] = settings_.keep;
  // What the run's length came to, in place of the flag that was not given.
  settings["steps"] = plan_.total_steps;
  settings["epochs"] = plan_.epochs;
  settings["warmup-steps"] = plan_.schedule.warmup_steps;
  settings.erase("warmup-ratio");
  for (const InputFile& input : job_.conditions.inputs)
    json["inputs"].push_back({{"path", input.path}, {"bytes", input.bytes}});
  json["parameters"] = plan_.parameters;
  io::replace_file(files_, settings_.output / "run_config.json", json_text(json, 2) + "\n");
}

void Trainer::Run::share_beginning() {
  const std::string text = distributed::broadcast(job_.self, json_text(state_.to_json(job_.conditions)));
  job_.self.collective().broadcast(parameters_.masters(), 0);
  parameters_.round_masters();
  if (!job_.self.first()) state_ = parse_run_state(nlohmann::ordered_json::parse(text), "the first replica");
  if (state_.steps_done == 0) return;
  for (const Tensor& moments : {optimizer_.first_moments(), optimizer_.second_moments()})
    job_.self.collective().broadcast(moments, 0);
  optimizer_.resume(state_.steps_done, state_.loss_scale);
  saved_step_ = state_.steps_done;
}

double Trainer::Run::epoch() const {
  if (state_.next.step == 0) return static_cast<double>(state_.next.epoch);  // the next epoch need not be drawn
  const std::int64_t examples = job_.objective.examples(state_.next.epoch);
  const std::int64_t steps = (examples + plan_.batch_size - 1) / plan_.batch_size;
  return static_cast<double>(state_.next.epoch) + static_cast<double>(state_.next.step) / static_cast<double>(steps);
}

/// The examples of the next step.
StepExamples Trainer::Run::next_examples() {
  const Position& next = state_.next;
  if (ordered_epoch_ != next.epoch) {
    order_ = epoch_order(settings_, next.epoch, job_.objective.examples(next.epoch));
    ordered_epoch_ = next.epoch;
  }
  const std::size_t first = static_cast<std::size_t>(next.step * plan_.batch_size);
  const std::size_t last = std::min(order_.size(), first + static_cast<std::size_t>(plan_.batch_size));
  check(first < last, "training: step {} of epoch {} has no examples", next.step, next.epoch);
  const auto begin = order_.begin();
  return {.epoch = next.epoch,
          .numbers = {begin + static_cast<std::ptrdiff_t>(first), begin + static_cast<std::ptrdiff_t>(last)}};
}

/// The position after a step of `examples` examples.
void Trainer::Run::move_on(std::size_t examples) {
  Position& next = state_.next;
  const bool epoch_ended = static_cast<std::size_t>(next.step * plan_.batch_size) + examples == order_.size();
  next = epoch_ended ? Position{next.epoch + 1, 0} : Position{next.epoch, next.step + 1};
}

/// Starts a step, then looks at the one before: so the device has the next when it is done with one. A CPU is done when
/// it has been asked, and its step is looked at at once.
void Trainer::Run::step() {
  StepUnderWay next{.learning_rate = optim::learning_rate(plan_.schedule, state_.steps_done), .begin = Clock::now()};
  const StepExamples examples = next_examples();
  move_on(examples.numbers.size());
  if (state_.steps_done + 1 < plan_.total_steps) stepper_.read_ahead(next_examples());
  next.step = stepper_.start(examples, state_.steps_done + 1, next.learning_rate);
  next.epoch = epoch();
  ++state_.steps_done;
  finish_step();
  under_way_ = std::move(next);
  if (job_.self.backend().device().kind == Device::Kind::cpu) finish_step();
  const bool epoch_ended = state_.next.step == 0;
  state_.evaluation_due = settings_.eval_every > 0 ? due(state_.steps_done, settings_.eval_every)
                                                   : epoch_ended || state_.steps_done == plan_.total_steps;
}

/// Waits for the step under way, if there is one. Whoever looks at the parameters calls this first.
void Trainer::Run::finish_step() {
  if (!under_way_) return;
  const StepUnderWay step = *std::exchange(under_way_, std::nullopt);
  StepResult result;
  try {
    result = stepper_.finish(step.step);
  } catch (const Error& error) {
    if (error.failure() != Failure::numerics || saved_step_ == 0) throw;
    fail(Failure::numerics, "{}; last checkpoint: {}", error.what(), checkpoint_directory());
  }
  interval_.add(step.step, seconds_since(std::max(step.begin, last_finish_)));
  last_finish_ = Clock::now();
  log_step(step, result);
}

void Trainer::Run::log_step(const StepUnderWay& step, const StepResult& result) {
  if (!job_.self.first()) return;
  const ProgressFigures figures{.step = step.step.number,
                                .total_steps = plan_.total_steps,
                                .loss = result.losses[0].value,
                                .learning_rate = step.learning_rate,
                                .examples_per_second = interval_.examples_per_second(),
                                .tokens_per_second = interval_.tokens_per_second(),
                                .memory_bytes = job_.self.backend().memory().peak};
  progress_.update(figures);
  if (!due(step.step.number, settings_.log_every)) return;
  progress_.log(figures);
  LogLine line{.step = step.step.number, .figures = {{"epoch", step.epoch}}};
  for (const Metric& loss : result.losses) line.figures.emplace_back(loss.name, loss.value);
  line.figures.emplace_back("grad_norm", result.grad_norm);
  line.figures.emplace_back("learning_rate", step.learning_rate);
  if (optimizer_.loss_scale().dynamic()) {
    line.figures.emplace_back("loss_scale", result.loss_scale.scale);
    line.figures.emplace_back("skipped_steps", static_cast<double>(result.loss_scale.skipped_steps));
  }
  line.figures.emplace_back("examples_per_second", figures.examples_per_second);
  line.figures.emplace_back("tokens_per_second", figures.tokens_per_second);
  line.figures.emplace_back("memory_bytes", static_cast<double>(figures.memory_bytes));
  log_->write(line);
  interval_ = {};
}

void Trainer::Run::evaluate() {
  finish_step();
  const NoGrad no_graph;
  const Metrics metrics = job_.objective.evaluate();
  state_.evaluation_due = false;
  if (metrics.empty()) return;
  LogLine line{.step = state_.steps_done, .figures = {{"epoch", epoch()}}};
  std::string text = fmt::format("step {}:", state_.steps_done);
  for (const Metric& metric : metrics) {
    line.figures.emplace_back(metric.name, metric.value);
    text += fmt::format("  {} {:.4f}", metric.name, metric.value);
  }
  if (job_.self.first()) {
    log_->write(line);
    progress_.message(text);
  }

  const std::optional<double> score = job_.objective.score(metrics);
  if (score && state_.best.score && !(*score > *state_.best.score)) return;
  state_.evaluation = metrics;
  if (!score) return;
  state_.best = {.score = score, .step = state_.steps_done};
  if (job_.self.first()) published_.publish(state_.best);
}

void Trainer::Run::save() {
  finish_step();
  const auto note_saved = [&] {
    saved_step_ = state_.steps_done;
    set_standing(fmt::format("step {}", saved_step_ + 1));
  };
  if (job_.self.first()) {
    write_checkpoint();
    note_saved();
  }
  job_.self.collective().barrier();  // until here the others name the one before
  note_saved();
  // From here on nobody does. One whom the end of the first barrier never reached (a cable was cut) is not here.
  job_.self.collective().barrier();
  if (job_.self.first()) store_.remove_old(static_cast<int>(settings_.keep));
}

void Trainer::Run::write_checkpoint() {
  if (optimizer_.loss_scale().dynamic()) state_.loss_scale = optimizer_.loss_scale().read();
  const Training training{job_.objective, parameters_, optimizer_};
  store_.save(state_.steps_done, checkpoint_bytes(training), [&](const std::filesystem::path& staged) {
    return training::write_checkpoint(files_, staged, training, state_, job_.conditions);
  });
}

void Trainer::Run::train() {
  if (job_.self.first()) log_ = std::make_unique<MetricsLog>(settings_.output, state_.steps_done);
  with_standing(fmt::format("step {}", state_.steps_done + 1), [&] {
    try {
      make_steps();
    } catch (const Error& error) {
      if (error.failure() != Failure::memory) throw;
      refuse_memory(error.what());
    }
    set_standing("after the last step");
    if (job_.self.first()) finish();
    job_.self.collective().barrier();  // the others wait here, where a failure is told with the last checkpoint
  });
}

void Trainer::Run::with_standing(const std::string& where, const std::function<void()>& work) {
  set_standing(where);
  try {
    work();
  } catch (const Error& error) {
    if (error.failure() != Failure::distributed) throw;
    fail(Failure::distributed, "{}{}{}", before_failure_, error.what(), after_failure_);
  }
}

void Trainer::Run::set_standing(const std::string& where) {
  before_failure_ = where + ": ";
  after_failure_ = "; last checkpoint: " + (saved_step_ > 0 ? checkpoint_directory() : "none");
  job_.self.collective().set_standing(before_failure_, after_failure_);
}

/// Says which micro-batch would have fitted.
void Trainer::Run::refuse_memory(const std::string& what) {
  const Backend& backend = job_.self.backend();
  const std::size_t all = backend.memory().in_use + backend.available_memory();
  fail(Failure::memory, "step {}: {}; {}", state_.steps_done + 1, what,
       fitting_hint(fitting_micro_batch(settings_, plan_, job_.objective, job_.self, plannable(all))));
}

void Trainer::Run::make_steps() {
  while (true) {
    set_standing(fmt::format("step {}", state_.steps_done + 1));
    if (state_.evaluation_due && !stop_agreed()) evaluate();
    const bool stop = stop_agreed();
    if (state_.steps_done > saved_step_ && (stop || due(state_.steps_done, settings_.save_every))) save();
    if (stop && state_.steps_done == 0) fail(Failure::interrupted, "stopped before step 1; hint: --resume goes on");
    if (stop)
      fail(Failure::interrupted, "stopped after step {}: state saved; hint: --resume goes on", state_.steps_done);
    if (state_.steps_done >= plan_.total_steps) break;
    step();
  }
}

void Trainer::Run::finish() {
  if (state_.best.score) published_.mend(state_.best, checkpoint_directory() + " holds the last one");
  else published_.publish(state_.best);
  if (!state_.evaluation.empty()) {
    std::map<std::string, double> results;
    for (const Metric& metric : state_.evaluation) results[metric.name] = metric.value;
    results["global_step"] = static_cast<double>(state_.best.score ? state_.best.step : state_.steps_done);
    write_results(files_, settings_.output, results);
  }
  progress_.message(fmt::format(
      "finished after {} steps, {}: the {} is in {}", state_.steps_done, io::duration_text(seconds_since(begin_)),
      state_.best.score ? fmt::format("best model (step {})", state_.best.step) : "final model",
      settings_.output.string()));
}

Trainer::Trainer(Job job) : job_(std::move(job)) {}
Trainer::~Trainer() = default;

void Trainer::afterwards(const std::string& what, const std::function<void()>& work) {
  run_->with_standing(what, work);
}

bool Trainer::announce() {
  if (job_.self.first()) {
    plan_ = make_plan(job_.settings, job_.objective, job_.self);
    fmt::print("{}", plan_.text());
    std::fflush(stdout);
    if (!job_.settings.plan_only) check_memory(job_.settings, plan_, job_.objective, job_.self);
  }
  plan_ = distributed::broadcast_value(job_.self, plan_);
  return !job_.settings.plan_only;
}

void Trainer::begin(const std::function<void(nn::ParameterSet&)>& initialize) {
  const bool first = job_.self.first();
  parameters_ = std::make_unique<nn::ParameterSet>(
      job_.objective.model(), job_.self.backend(),
      nn::ParameterSet::Options{.dtype = job_.settings.precision, .seed = job_.settings.seed, .initialize = first});
  // What the run starts from is read first: where that fails, no earlier run has been overwritten.
  if (first && initialize && !job_.settings.resume) initialize(*parameters_);
  run_ = std::make_unique<Run>(job_, plan_, *parameters_);
  if (first && job_.settings.resume && !run_->resume() && initialize) initialize(*parameters_);
  if (first) run_->check_space();
  if (first) job_.directory->clear();
  if (first) run_->write_run_config();
  run_->share_beginning();
}

void Trainer::run() {
  auto profiler = std::make_unique<Profiler>();
  const bool profiled = job_.self.first() && !job_.settings.profile.empty();
  if (profiled) job_.self.backend().profiler = profiler.get();
  try {
    run_->train();
  } catch (...) {
    static_cast<void>(profiler.release());  // a sum that goes on in the background may still write to it
    throw;
  }
  job_.self.backend().profiler = nullptr;
  if (!profiled) return;
  fmt::print("{}", profiler->table());
  io::replace_file(io::Files::system(), job_.settings.profile, profiler->chrome_trace());
}

}  // namespace bertrand::training
