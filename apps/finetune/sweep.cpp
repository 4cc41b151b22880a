#include "apps/finetune/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <set>

#include "apps/finetune/run.h"
#include "apps/finetune/sweep_directory.h"
#include "bert/report/report.h"
#include "distributed/processes.h"
#include "io/error.h"
#include "io/files.h"
#include "io/say.h"
#include "io/split.h"
#include "io/units.h"
#include "training/run/run_directory.h"

namespace bertrand::finetune {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  Trial trial;
  training::TrainingResult result;
  std::string directory, failure;  ///< why it failed, or ""
};

/// "--learning-rate" of "learning_rate", as on the command line.
std::string flag_name(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name.starts_with("--") ? name : "--" + name;
}

/// Whether runs that differ in this flag are evaluated on different rows, which no sweep may be.
bool decides_rows(const std::string& flag) { return flag.starts_with("--eval-split"); }

const training::Flag& swept_flag(const std::string& name, const training::FlagTable& table) {
  std::vector<std::string> names;
  for (const training::Flag& flag : table.flags()) {
    if (flag.role != training::Role::decisive || flag.type.empty()) continue;
    if (flag.name == name) return flag;
    if (!decides_rows(flag.name)) names.push_back(flag.name);
  }
  const std::string near = io::did_you_mean(name, names);
  fail(Failure::usage, "--sweep: expected one of {}, got {}{}", fmt::join(names, ", "), name,
       near.empty() ? "; hint: report lays runs over each other that differ in other flags" : near);
}

std::string words_of(const Trial& trial) {
  std::string words;
  for (const auto& [flag, value] : trial) words += fmt::format("{}{} {}", words.empty() ? "" : " ", flag, value);
  return words;
}

bool sets(const Trial& trial, const std::string& flag) {
  return std::ranges::any_of(trial, [&](const auto& value) { return value.first == flag; });
}

/// What the runs are compared by.
struct JudgedBy {
  std::string name;
  bool lowest = false;  ///< is the best, so that scores are negatives of it

  double figure(double score) const { return lowest ? 0 - score : score; }
};

/// What decides between two runs, the higher the better: the score, and of equal ones the loss. Small files give many
/// runs the same score, and the first of these is often the one that learnt least.
std::pair<double, double> rank_of(const Outcome& one) {
  const auto loss = std::ranges::find(one.result.evaluation, "eval_loss", &training::Metric::name);
  return {*one.result.score, loss == one.result.evaluation.end() ? 0 : 0 - loss->value};
}

const Outcome* best_of(const std::vector<Outcome>& outcomes) {
  const Outcome* best = nullptr;
  for (const Outcome& one : outcomes)
    if (one.result.score && (!best || rank_of(one) > rank_of(*best))) best = &one;
  return best;
}

/// How many others have the score of the best, and whether its loss decided between them.
std::string text_of_equals(const std::vector<Outcome>& outcomes, const Outcome& best) {
  const auto as_good = [&](const Outcome& one) { return one.result.score == best.result.score; };
  const auto equal = std::ranges::count_if(outcomes, as_good) - 1;
  if (equal == 0) return "";
  const bool decided =
      std::ranges::any_of(outcomes, [&](const Outcome& one) { return as_good(one) && rank_of(one) < rank_of(best); });
  return fmt::format(", as good as {}{}", io::counted(equal, "other"), decided ? ", with a lower loss" : "");
}

/// A row for each run: the swept values, what the best is chosen by, all figures, and where it is.
std::string table_of(const std::vector<Outcome>& outcomes, const JudgedBy& judged_by) {
  const Outcome* const best = best_of(outcomes);
  training::Metrics columns = best ? best->result.evaluation : training::Metrics{};
  std::string text;
  for (const auto& [flag, value] : outcomes.front().trial) text += flag.substr(2) + "\t";
  text += judged_by.name;
  for (const training::Metric& column : columns) text += "\t" + column.name;
  text += "\tbest\tdirectory\n";
  for (const Outcome& one : outcomes) {
    for (const auto& [flag, value] : one.trial) text += value + "\t";
    text += one.result.score ? fmt::format("{}", judged_by.figure(*one.result.score)) : "failed";
    for (const training::Metric& column : columns) {
      const auto found = std::ranges::find(one.result.evaluation, column.name, &training::Metric::name);
      text += found == one.result.evaluation.end() ? "\t" : fmt::format("\t{}", found->value);
    }
    text += fmt::format("\t{}\t{}\n", &one == best ? "best" : "", one.directory);
  }
  return text;
}

/// Over the seeds of each combination of the other values: how many runs ended, and the mean and the standard deviation
/// (with n - 1) of what the best is chosen by. "" if seeds are not swept.
std::string seeds_of(const std::vector<Outcome>& outcomes, const JudgedBy& judged_by) {
  if (!sets(outcomes.front().trial, "--seed")) return "";
  std::vector<std::pair<Trial, std::vector<double>>> groups;  // in the order of the runs
  for (const Outcome& one : outcomes) {
    Trial others = one.trial;
    std::erase_if(others, [](const auto& value) { return value.first == "--seed"; });
    auto group = std::ranges::find(groups, others, &std::pair<Trial, std::vector<double>>::first);
    if (group == groups.end()) group = groups.insert(groups.end(), {others, {}});
    if (one.result.score) group->second.push_back(judged_by.figure(*one.result.score));
  }
  std::string text;
  for (const auto& [flag, value] : groups.front().first) text += flag.substr(2) + "\t";
  text += "n\tmean\tdeviation\n";
  for (const auto& [others, figures] : groups) {
    for (const auto& [flag, value] : others) text += value + "\t";
    const auto n = static_cast<double>(figures.size());
    const double mean = std::accumulate(figures.begin(), figures.end(), 0.0) / n;
    double squares = 0;
    for (const double figure : figures) squares += (figure - mean) * (figure - mean);
    text += fmt::format("{}\t{}\t{}\n", figures.size(), n > 0 ? fmt::format("{:.6g}", mean) : "failed",
                        n > 1 ? fmt::format("{:.6g}", std::sqrt(squares / (n - 1))) : "");
  }
  return text;
}

/// All runs over each other.
void write_page(io::Files& files, const std::vector<Outcome>& outcomes, const fs::path& file) {
  std::vector<fs::path> directories;
  for (const Outcome& one : outcomes) directories.emplace_back(one.directory);
  report::write_report(files, directories, file);
  io::say(fmt::format("report: {}\n", file.string()));
}

/// The options of one run of the sweep.
Options options_of(const Options& options, const Trial& trial) {
  Options one = options;
  one.sweep.clear();
  one.settings.output /= name_of(trial);
  one.settings.command = command_of(options.settings.command, trial, one.settings.output.string());
  training::FlagTable table;
  add_flags(table, one);
  for (const auto& [flag, value] : trial) table.flag(flag).target.set({value});
  complete(one);
  return one;
}

/// The values of the swept flags as they were understood.
std::vector<std::string> values_of(Options one, const Trial& trial) {
  training::FlagTable table;
  add_flags(table, one);
  std::vector<std::string> values;
  for (const auto& [flag, value] : trial) values.push_back(table.flag(flag).target.value());
  return values;
}

/// Refuses a swept flag that does not go with one that is given, and says what becomes of one that is also given by
/// itself: by a file of settings or the record of a run, perhaps.
void check_flags(const Trial& trial, const training::FlagTable& table, const std::vector<std::string>& command) {
  for (const auto& [flag, value] : trial) {
    if (decides_rows(flag))
      fail(Failure::usage,
           "--sweep: expected runs that are evaluated on the same rows, got values of {}; hint: give it beside --sweep",
           flag);
    if (training::is_given(flag, command)) io::warn("{}: given by itself too; the values of --sweep are taken", flag);
    for (const training::Flag& other : table.flags())
      if ((other.excludes == flag || table.flag(flag).excludes == other.name) &&
          (training::is_given(other.name, command) || sets(trial, other.name)))
        fail(Failure::usage, "{}, {}: expected one of them, got both", flag, other.name);
  }
}

/// Finds what would end the sweep later: a bad value, a flag that does not go with one that is given, runs that cannot
/// be compared. Returns what they are compared by.
JudgedBy check_before(const Options& options, const std::vector<Trial>& trials, const training::FlagTable& table) {
  const training::Settings& settings = options.settings;
  if (settings.is_rehearsal() && !settings.plan_only)
    fail(Failure::usage,
         "--sweep: expected with --plan or with none of --validate-only, --dry-run, --overfit-batch, got one");
  if (!settings.profile.empty())
    fail(Failure::usage, "--profile: expected without --sweep, whose runs would all write {}",
         settings.profile.string());
  if (settings.output.empty() && !settings.plan_only) fail(Failure::usage, "--output: expected a directory, got none");
  check_flags(trials.front(), table, settings.command);
  std::set<std::string> names;
  for (const Trial& trial : trials)
    if (const std::string name = name_of(trial); !names.insert(name).second)
      fail(Failure::usage, "--sweep: expected other values in each run, got {} twice", name);
  JudgedBy judged_by;
  std::map<std::vector<std::string>, std::string> seen;  // 1e-5 is 0.00001
  for (const Trial& trial : trials) {
    const Options one = options_of(options, trial);
    if (const auto [same, is_new] = seen.emplace(values_of(one, trial), name_of(trial)); !is_new)
      fail(Failure::usage, "--sweep: expected other values in each run, got {} and {}", same->second, name_of(trial));
    if (one.train.empty() || !one.evaluates())
      fail(Failure::usage,
           "--sweep: expected with --train and --eval, got {}; hint: --eval-split 0.1 takes a part of --train",
           one.train.empty() ? "no --train" : "no --eval");
    const std::vector<tasks::Figure> figures = one.figures();
    const std::string deciding = tasks::deciding(figures);
    if (!judged_by.name.empty() && deciding != judged_by.name)
      fail(Failure::usage, "--sweep: expected runs that are judged by one figure, got {} and, with {}, {}",
           judged_by.name, words_of(trial), deciding);
    judged_by = {.name = deciding, .lowest = std::ranges::any_of(figures, [](const tasks::Figure& figure) {
                                     return figure.decides && figure.lower_is_better;
                                   })};
  }
  return judged_by;
}

/// Runs of several seeds are evaluated on the rows that the seed beside --sweep draws, and say so in their command.
void keep_split(Options& options, const Trial& trial) {
  if (options.eval_split == 0 || options.eval_split_seed || !sets(trial, "--seed")) return;
  options.eval_split_seed = options.settings.seed;
  options.settings.command.push_back(fmt::format("--eval-split-seed={}", options.settings.seed));
}

/// One run of the sweep.
Outcome run_trial(const Options& options, const Trial& trial, std::string& said_plan) {
  Options one = options_of(options, trial);
  Outcome outcome{.trial = trial, .result = {}, .directory = one.settings.output.string(), .failure = {}};
  try {
    outcome.result = run(one, &said_plan);
  } catch (const Error& error) {
    if (error.failure() != Failure::numerics) throw;
    outcome.failure = error.what();
    io::warn("{}: {}; the sweep goes on", words_of(trial), error.what());
  }
  return outcome;
}

}  // namespace

std::vector<Trial> trials_of(const std::vector<std::string>& sweep, const training::FlagTable& table) {
  std::vector<Trial> trials = {{}};
  for (const std::string& one : sweep) {
    const std::size_t equals = std::min(one.find('='), one.size());
    const std::string name = flag_name(one.substr(0, equals));
    const std::vector<std::string> values = io::comma_list(one.substr(std::min(equals + 1, one.size())));
    swept_flag(name, table);
    if (std::ranges::count(values, "") > 0) fail(Failure::usage, "--sweep: expected FLAG=VALUE,VALUE…, got {}", one);
    if (sets(trials.front(), name)) fail(Failure::usage, "--sweep: expected each flag once, got {} twice", name);
    std::vector<Trial> longer;
    for (const Trial& trial : trials)
      for (const std::string& value : values) {
        longer.push_back(trial);
        longer.back().emplace_back(name, value);
      }
    trials = std::move(longer);
  }
  return trials;
}

std::string name_of(const Trial& trial) {
  std::string name;
  for (const auto& [flag, value] : trial)
    name += fmt::format("{}{}={}", name.empty() ? "" : ",", flag.substr(2), value);
  std::ranges::replace(name, '/', '_');
  return name;
}

std::vector<std::string> command_of(const std::vector<std::string>& command, const Trial& trial,
                                    const std::string& output) {
  std::vector<std::string> words;
  bool left_out = false;
  for (const std::string& word : command) {
    if (word.starts_with("--")) {
      const std::string name = word.substr(0, word.find('='));
      left_out = name == "--sweep" || name == "--output" || sets(trial, name);
    }
    if (!left_out) words.push_back(word);
  }
  words.push_back("--output=" + output);
  for (const auto& [flag, value] : trial) words.push_back(flag + "=" + value);
  return words;
}

void sweep(Options options) {
  if (distributed::launched().processes > 1)
    fail(Failure::usage, "--sweep: expected one process, got {}; hint: --replicas uses more devices or cores",
         distributed::launched().processes);
  training::FlagTable table;
  add_flags(table, options);
  const std::vector<Trial> trials = trials_of(options.sweep, table);
  keep_split(options, trials.front());
  const JudgedBy judged_by = check_before(options, trials, table);

  const bool plans = options.settings.plan_only;
  std::vector<std::string> names;
  for (const Trial& trial : trials) names.push_back(name_of(trial));
  const auto directory = plans ? nullptr : claim_directory(options.settings, names);
  for (const Trial& trial : trials)
    if (!plans) check(options_of(options, trial));

  if (!plans) remove_earlier_runs(options, *directory);
  const fs::path file = options.settings.output / kTable;
  std::vector<Outcome> outcomes;
  std::string said_plan;
  for (const Trial& trial : trials) {
    io::say(fmt::format("run {} of {}: {}\n", outcomes.size() + 1, trials.size(), words_of(trial)));
    std::fflush(stdout);
    outcomes.push_back(run_trial(options, trial, said_plan));
    if (!plans) io::replace_file(directory->files(), file, table_of(outcomes, judged_by));
  }
  if (plans) return;
  const std::string seeds = seeds_of(outcomes, judged_by);
  const fs::path seeds_file = options.settings.output / kSeeds;
  if (!seeds.empty()) io::replace_file(directory->files(), seeds_file, seeds);
  else directory->files().remove_all(seeds_file);  // of a sweep that is overwritten
  io::say(table_of(outcomes, judged_by));
  if (!seeds.empty()) io::say(fmt::format("over the seeds, {}:\n{}", judged_by.name, seeds));
  training::try_report((options.settings.output / "*/").string(),
                       [&] { write_page(directory->files(), outcomes, options.settings.output / kPage); });
  const Outcome* const best = best_of(outcomes);
  if (!best)
    fail(Failure::numerics, "--sweep: expected a run that ends, got {} that failed, the last one: {}",
         io::counted(outcomes.size(), "run"), outcomes.back().failure);
  io::say(fmt::format("best of {} by {}: {}, {:.4f}{}: {}\n", outcomes.size(), judged_by.name, words_of(best->trial),
                      judged_by.figure(*best->result.score), text_of_equals(outcomes, *best), best->directory));
}

}  // namespace bertrand::finetune
