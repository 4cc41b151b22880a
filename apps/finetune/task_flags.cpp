#include "apps/finetune/task_flags.h"

#include <algorithm>

#include "io/error.h"
#include "io/json.h"
#include "training/run/run_files.h"

namespace bertrand::finetune {
namespace {

/// The flags that some tasks alone understand, and these tasks.
std::vector<std::pair<std::string, std::vector<std::string>>> flags_of_tasks() {
  const std::vector<std::string> custom = {"custom"}, ranking = {"msmarco"},
                                 words = io::name_list(tasks::token_tasks()), spans = {"squad", "squad2"};
  const auto with = [](std::vector<std::string> names, const std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
    return names;
  };
  const std::vector<std::string> columns = with(words, custom);
  std::vector<std::string> classes = with(tasks::task_names(), custom);
  std::erase(classes, "stsb");  // which has numbers
  return {{"--text-column", columns},
          {"--label-column", columns},
          {"--text-pair-column", custom},
          {"--id-column", custom},
          {"--header", custom},
          {"--kind", custom},
          {"--label-separator", custom},
          {"--layout", words},
          {"--label-all-pieces", words},
          {"--doc-stride", with(words, spans)},
          {"--qrels", ranking},
          {"--eval-split", with(with(with(tasks::task_names(), words), custom), spans)},
          {"--on-bad-line", with(tasks::task_names(), custom)},
          {"--language", {"xnli"}},
          {"--max-query-length", with(spans, ranking)},
          {"--n-best-size", spans},
          {"--max-answer-length", spans},
          {"--null-score-diff-threshold", {"squad2"}},
          {"--class-weights", classes},
          {"--label-smoothing", classes}};
}

bool understands(const std::string& task, const std::string& flag) {
  for (const auto& [name, understanding] : flags_of_tasks())
    if (name == flag) return std::ranges::find(understanding, task) != understanding.end();
  return true;
}

/// As on the command line. Throws Error(Failure::model), beginning with `where`, for what no flag has.
std::string text_of(const io::Json& value, const std::string& where) {
  if (value.is_structured() || value.is_null())
    fail(Failure::model, "{}: expected a text, a number, true or false, got {}", where, io::shown(value));
  return value.is_string() ? value.get<std::string>() : value.dump();
}

}  // namespace

void refuse_flags_of_other_tasks(const Options& options) {
  Options given = options, defaults;
  training::FlagTable own, absent;
  add_own_flags(own, given);
  add_own_flags(absent, defaults);
  for (const auto& [name, understanding] : flags_of_tasks()) {
    if (std::ranges::find(understanding, options.task) != understanding.end()) continue;
    const training::Flag& flag = own.flag(name);
    if (flag.target.value() != absent.flag(name).target.value())
      fail(Failure::usage, "{}: expected with --task {}, got --task {}", flag.negative.empty() ? name : flag.negative,
           fmt::join(understanding, ", "), options.task);
  }
}

std::string take_flags_of_model(Options& options) {
  static const std::vector<std::string> columns = {"--text-column", "--text-pair-column", "--label-column", "--header"},
                                        others = {"--layout",
                                                  "--label-separator",
                                                  "--max-query-length",
                                                  "--doc-stride",
                                                  "--n-best-size",
                                                  "--max-answer-length",
                                                  "--null-score-diff-threshold"};
  const std::filesystem::path record = options.model / training::kRunConfig;
  if (!training::is_own_run_config(record)) return "";
  const io::Json settings = io::read_json(record)["settings"];
  const auto has = [&](const std::string& name) { return settings.is_object() && settings.contains(name); };
  const std::string task = has("task") && settings["task"].is_string() ? settings["task"].get<std::string>() : "";
  if (task != options.task && !(options.finds_spans() && understands(task, "--n-best-size"))) return "";

  training::FlagTable table;
  add_own_flags(table, options);
  const auto is_given = [&](const std::string& name) {
    const training::Flag& flag = table.flag(name);
    return training::is_given(name, options.settings.command) ||
           (!flag.negative.empty() && training::is_given(flag.negative, options.settings.command));
  };
  std::vector<std::string> names = others;
  if (options.kind != "multi-label") std::erase(names, "--label-separator");
  if (std::ranges::none_of(columns, is_given)) names.insert(names.begin(), columns.begin(), columns.end());
  std::string taken;
  for (const std::string& name : names) {
    const training::Flag& flag = table.flag(name);
    if (!understands(options.task, name) || is_given(name) || !has(name.substr(2))) continue;
    const std::string where = fmt::format("{}: settings: {}", record.string(), name.substr(2));
    const std::string value = text_of(settings[name.substr(2)], where);
    const std::string before = flag.target.value();
    if (value.empty() || value == before) continue;
    if (flag.type.empty() && value != "true" && value != "false")
      fail(Failure::model, "{}: expected true or false, got {}", where, io::shown(settings[name.substr(2)]));
    try {
      flag.target.set({value});
      options.token_options();  // refuses columns that are no numbers
    } catch (const Error& error) {
      fail(Failure::model, "{}: settings: {}", record.string(), error.what());
    }
    if (flag.target.value() == before) continue;  // 0.0 is 0
    taken += (taken.empty() ? "" : ", ") + (flag.type.empty() ? flag.negative : name + " " + value);
  }
  return taken;
}

}  // namespace bertrand::finetune
