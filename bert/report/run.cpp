// What the files of a run directory say.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "bert/report/curves.h"
#include "bert/report/evaluation.h"
#include "bert/report/report.h"
#include "bert/report/samples.h"
#include "io/file_names.h"
#include "io/input_files.h"
#include "io/units.h"
#include "training/run/flag_table.h"
#include "training/run/run_files.h"

namespace bertrand::report {
namespace {

namespace fs = std::filesystem;

/// A run directory, and what is to be said about files that are not as they should be.
struct Source {
  const fs::path& directory;
  io::Json& notes;

  /// The text of a file. `expected`: it is worth a note if it is not there.
  std::optional<std::string> text(const char* name, bool expected) const {
    std::error_code ignored;
    if (fs::is_regular_file(directory / name, ignored)) return io::read_file(directory / name);
    if (expected) notes.push_back(fmt::format("{}: not there", name));
    return {};
  }
  /// A file that is an object in JSON; an empty one in place of any other.
  io::Json object(const char* name, bool expected) const {
    std::error_code none;  // text() says what is not there
    if (const auto bytes = fs::file_size(directory / name, none); !none && bytes > io::kMostSmallFile) {
      notes.push_back(
          fmt::format("{}: more than {}, and left out", name, io::bytes_text(static_cast<double>(io::kMostSmallFile))));
      return io::Json::object();
    }
    const std::optional<std::string> found = text(name, expected);
    if (!found) return io::Json::object();
    if (auto json = io::try_parse_json(*found); json && json->is_object()) return *std::move(json);
    notes.push_back(fmt::format("{}: damaged, and left out", name));
    return io::Json::object();
  }
};

/// A word as a shell takes it.
std::string quoted(const std::string& word) {
  constexpr std::string_view kPlain = "-_./=:,+@%";
  const bool plain = !word.empty() && std::ranges::all_of(word, [&](unsigned char c) {
    return std::isalnum(c) || c >= 0x80 || kPlain.find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string shown(const io::Json& value) { return value.is_string() ? value.get<std::string>() : io::json_text(value); }

/// The value that the command gives a flag; "" if it gives none.
std::string typed(const std::string& flag, const std::vector<std::string>& command) {
  for (std::size_t i = 0; i < command.size(); ++i) {
    if (command[i].starts_with(flag + "=")) return command[i].substr(flag.size() + 1);
    if (command[i] == flag && i + 1 < command.size()) return command[i + 1];
  }
  return "";
}

/// What run_config.json says: [name, value, whether the command gives it] for each setting.
io::Json configuration(const io::Json& config) {
  io::Json numbers = io::Json::object();
  std::vector<std::string> command;
  if (const auto words = config.find("command"); words != config.end() && words->is_array())
    for (const io::Json& word : *words) command.push_back(shown(word));
  std::vector<std::string> words;
  for (const std::string& word : command) words.push_back(quoted(word));
  numbers["command"] = fmt::format("{}", fmt::join(words, " "));
  const auto take = [&](const char* name, bool (io::Json::*is_kind)() const noexcept) {
    if (const auto value = config.find(name); value != config.end() && (*value.*is_kind)()) numbers[name] = *value;
  };
  for (const char* name : {"program", "version", "directory", "device", "started"}) take(name, &io::Json::is_string);
  for (const char* name : {"replicas", "parameters"}) take(name, &io::Json::is_number);
  take("machine", &io::Json::is_object);
  take("inputs", &io::Json::is_array);
  io::Json settings = io::Json::array();
  if (const auto all = config.find("settings"); all != config.end() && all->is_object())
    for (const auto& [name, value] : all->items()) {
      const std::string flag = fmt::format("--{}", name), text = shown(value), file = typed(flag, command);
      // The record of a file is its checksum, or that there is one.
      const bool is_file = !file.empty() && (text.starts_with("crc32c ") || text == "given");
      settings.push_back(
          {name, is_file ? fmt::format("{} ({})", file, text) : text, training::is_given(flag, command)});
    }
  numbers["settings"] = std::move(settings);
  return numbers;
}

/// Whether a run has curves, as far as is known: an evaluation of a model as it is has no length.
bool trains(const io::Json& config) {
  const auto settings = config.find("settings");
  return settings == config.end() || !settings->is_object() || settings->contains("steps");
}

/// The figures of eval_results.json, each with its interval if the rows are there to draw one from.
io::Json results(const io::Json& figures, const io::Json& evaluation) {
  io::Json list = io::Json::array();
  for (const auto& [name, value] : figures.items()) {
    if (!value.is_number() && !value.is_null()) continue;
    io::Json one{{"name", name}, {"value", value}};
    if (evaluation.contains("intervals") && evaluation["intervals"].contains(name))
      one["interval"] = evaluation["intervals"][name];
    list.push_back(std::move(one));
  }
  return list;
}

/// What is to be said of a file of rows that ends early.
std::optional<std::string> missing_rows(const io::Json& evaluation) {
  const auto rows = evaluation.at("rows").get<std::uint64_t>();
  if (const auto written = evaluation.find("written"); written != evaluation.end())
    return fmt::format("{}: expected {}, got {}", tasks::kEvaluationRows,
                       io::counted(written->get<std::uint64_t>(), "row"), rows);
  if (rows == 0) return fmt::format("{}: expected rows, got none", tasks::kEvaluationRows);
  return {};
}

}  // namespace

io::Json numbers_of_run(const fs::path& directory, const Extent& extent) {
  io::Json notes = io::Json::array();
  const Source source{directory, notes};
  const io::Json config = source.object(training::kRunConfig, true);
  io::Json run = configuration(config);
  const fs::path whole = io::without_slash(fs::absolute(directory).lexically_normal());
  run["name"] = whole.filename().string();
  run["path"] = directory.string();
  run["curves"] = io::Json::object();
  if (const auto lines = source.text(training::kMetricsLog, trains(config))) {
    std::size_t damaged = 0;
    run["curves"] = curves_of(*lines, extent.points, damaged);
    if (damaged > 0)
      notes.push_back(fmt::format("{}: left out {}", training::kMetricsLog, io::counted(damaged, "damaged line")));
  }
  run["evaluation"] = io::Json::object();
  std::error_code ignored;
  if (const fs::path file = directory / tasks::kEvaluationRows; fs::is_regular_file(file, ignored)) {
    const io::MappedFile rows(file);
    try {
      run["evaluation"] = evaluation_of(rows.text(), extent, [&] { rows.let_go(); });
      if (const auto note = missing_rows(run["evaluation"])) notes.push_back(*note);
    } catch (const Error& error) {
      if (error.failure() == Failure::interrupted) throw;
      notes.push_back(error.what());
    }
  }
  run["samples"] = io::Json::object();
  if (const auto lines = source.text(training::kSamples, false)) {
    std::size_t damaged = 0;
    run["samples"] = samples_of(*lines, extent.points < 500 ? 2 : 6, damaged);
    if (damaged > 0)
      notes.push_back(fmt::format("{}: left out {}", training::kSamples, io::counted(damaged, "damaged line")));
  }
  // If words are labelled, types of entities may be judged and not the labels.
  const bool rows = run["evaluation"].contains("classes") && run["evaluation"]["kind"] != "words";
  if (const auto table = rows ? std::nullopt : source.text("eval_report.tsv", false))
    run["evaluation"]["classes"] = classes_of(*table);
  run["results"] = results(source.object(training::kResultsJson, false), run["evaluation"]);
  run["profile"] = source.object(training::kProfile, false);
  run["notes"] = std::move(notes);
  return run;
}

}  // namespace bertrand::report
