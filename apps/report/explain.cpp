// A model that explains itself: its texts, the rows of its run, and as much on the page as there is room for.
#include <algorithm>
#include <span>

#include "apps/report/run.h"
#include "bert/explain/explanation.h"
#include "bert/report/report.h"
#include "bert/report/rows.h"
#include "bert/text/utf8.h"
#include "bert/text/vocabulary.h"
#include "io/error.h"
#include "io/file_arguments.h"
#include "io/file_names.h"
#include "io/line_source.h"
#include "tensor/backends.h"

namespace bertrand::report {
namespace {

namespace fs = std::filesystem;
using explain::Text;

/// A text in each line, or a pair of texts with a tab or, as for predict, " ||| " between them. Lines without a visible
/// character are passed over.
std::vector<Text> read_texts(const fs::path& file) {
  io::LineSource lines(file, "text");
  std::vector<Text> texts;
  for (std::string_view line; lines.next(line);) {
    std::string valid;
    const std::string whole = text::drop_invalid_utf8(line, valid).count > 0 ? valid : std::string(line);
    if (text::strip(whole).empty()) continue;
    const std::string_view between = whole.find('\t') != std::string::npos ? "\t" : " ||| ";
    const std::size_t at = between == "\t" ? whole.find(between) : whole.rfind(between);
    Text one{.text = whole.substr(0, at)};
    if (at != std::string::npos) one.pair = whole.substr(at + between.size());
    texts.push_back(std::move(one));
  }
  if (texts.empty()) fail(Failure::input, "{}: expected a text in each line, got none", file.string());
  return texts;
}

std::string shown(const Rows& rows, std::span<const std::int32_t> labels, double number) {
  if (rows.kind == tasks::Kind::regression) return fmt::format("{:.2f}", number);
  std::vector<std::string> names;
  for (const std::int32_t k : labels) names.push_back(rows.labels[static_cast<std::size_t>(k)]);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

/// The rows of an evaluation of texts; none if the run has none, or others.
std::vector<Text> rows_of(const fs::path& run) {
  const fs::path file = run / tasks::kEvaluationRows;
  std::error_code ignored;
  if (run.empty() || !fs::is_regular_file(file, ignored)) return {};
  const std::string lines = io::read_file(file);
  if (!has_texts(lines)) return {};
  const Rows rows = read_rows(lines);
  std::vector<Text> texts;
  for (const Row& row : rows.rows) {
    const Shown said = shown_of(row);
    Text one{.text = said.text, .pair = said.pair};
    one.label = shown(rows, rows.truth(row), row.target);
    one.prediction = shown(rows, rows.predicted(row), row.score);
    texts.push_back(std::move(one));
  }
  return texts;
}

}  // namespace

std::string page_of_model(const Options& options) {
  const fs::path run = options.runs.empty() ? fs::path() : options.runs.front();
  const fs::path directory = options.model.empty() ? run : options.model;
  const std::vector<Text> texts = read_texts(options.texts), rows = rows_of(run);
  const auto backend = open_cpu();
  const explain::Model model(directory, *backend, DType::f32, options.tokenizer);
  const explain::Explanation explanation(model, texts, rows.empty() ? texts : rows);
  if (!options.projector.empty()) explanation.write_projector(io::Files::system(), options.projector);
  const fs::path whole = io::without_slash(fs::absolute(directory).lexically_normal());
  std::string page;
  for (const std::size_t tokens : {64, 56, 48, 40, 32, 24, 16, 12, 8}) {
    io::Json numbers = explanation.json(tokens);
    numbers["name"] = whole.filename().string();
    numbers["model"] = directory.string();
    numbers["file"] = options.texts.string();
    numbers["rows_file"] = (rows.empty() ? options.texts : run / tasks::kEvaluationRows).string();
    page = page_of({{"runs", io::Json::array()}, {"explain", std::move(numbers)}});
    if (page.size() <= kMostBytes) break;
  }
  return page;
}

}  // namespace bertrand::report
