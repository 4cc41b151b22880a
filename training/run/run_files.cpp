#include "training/run/run_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "io/error.h"
#include "io/files.h"
#include "io/json.h"

namespace bertrand::training {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> kModelFiles = {"config.json", "model.safetensors", "vocab.txt",
                                                         "tokenizer_config.json", "added_tokens.json"};
constexpr std::array<std::string_view, 20> kResults = {"metrics.jsonl",
                                                       "eval_results.txt",
                                                       "eval_results.json",
                                                       "eval_report.tsv",
                                                       "eval_illegal_tags.tsv",
                                                       "predictions.tsv",
                                                       "predictions.partial",
                                                       "predictions.json",
                                                       "nbest_predictions.json",
                                                       "null_odds.json",
                                                       "eval_predictions.json",
                                                       "eval_nbest_predictions.json",
                                                       "eval_null_odds.json",
                                                       "msmarco_predictions.tsv",
                                                       "eval_msmarco_predictions.tsv",
                                                       "eval_rows.jsonl",
                                                       "profile.json",
                                                       "report.html",
                                                       "explain.html",
                                                       "samples.jsonl"};
constexpr std::string_view kRunConfig = "run_config.json", kCheckpoint = "checkpoint-", kTemporary = ".tmp-";

/// The number that the whole of `text` is.
std::optional<std::int64_t> number_of(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 0) return {};
  return value;
}

}  // namespace

bool is_result(std::string_view name) { return std::ranges::find(kResults, name) != kResults.end(); }

bool is_account(std::string_view name) {
  return name == "metrics.jsonl" || name == "profile.json" || name == "report.html" || name == "samples.jsonl";
}

std::optional<std::int64_t> checkpoint_step(std::string_view name) {
  if (!name.starts_with(kCheckpoint)) return {};
  return number_of(name.substr(kCheckpoint.size()));
}

bool is_own_checkpoint(const fs::path& path) {
  std::error_code error;
  return checkpoint_step(path.filename().string()) && fs::is_directory(path, error) &&
         (fs::is_regular_file(path / kManifest, error) || fs::is_regular_file(path / kStateFile, error));
}

bool is_own_run_config(const fs::path& path) {
  std::error_code error;
  if (path.filename() != kRunConfig || !fs::is_regular_file(path, error)) return false;
  const std::optional<io::Json> json = io::try_parse_json(io::read_file(path));
  return json && json->is_object() && json->contains("program") && json->contains("settings");
}

bool is_model_file(std::string_view name) { return std::ranges::find(kModelFiles, name) != kModelFiles.end(); }

std::optional<std::int64_t> writer_of_leftover(std::string_view name) {
  const std::size_t at = name.rfind(kTemporary);
  if (at == std::string_view::npos) return {};
  const std::optional<std::int64_t> process = number_of(name.substr(at + kTemporary.size()));
  name = name.substr(0, at);
  // A checkpoint that is to be removed is first called so.
  if (name.ends_with(".old") && checkpoint_step(name.substr(0, name.size() - 4))) return process;
  const bool own =
      name == "model" || name == kRunConfig || checkpoint_step(name) || is_model_file(name) || is_result(name);
  return own ? process : std::nullopt;
}

bool belongs_to_run(const fs::path& path) {
  const std::string name = path.filename().string();
  return is_model_file(name) || is_result(name) || name.starts_with("events.out.tfevents.") ||
         writer_of_leftover(name) || is_own_checkpoint(path) || is_own_run_config(path);
}

}  // namespace bertrand::training
